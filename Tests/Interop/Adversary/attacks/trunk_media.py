"""RTP of strangers and of a trunk that changes its SSRC, inside a call of the trunk at 127.0.0.3 (SDES) or 127.0.0.4 (symmetric).

bleed: a third host sends to the trunk ports before the carrier does; it must get nothing, and the carrier everything.
inject: a third host that knows port, SSRC and sequence number sends into a call; nothing of it is taken.
bad_tag: a flood with wrong tags from the peer's own address and SSRC; the good packets beside it are all taken.
ssrcs: a new SSRC again and again, up to --ssrcs; all are heard.
"""
import hashlib, hmac
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from common import *

STRANGER = "127.0.0.66"


class Protected:
    """SRTP with AES_CM_128_HMAC_SHA1_80 (RFC 3711), index below 2^16."""

    def __init__(self, material):
        self.key, self.salt, self.sign = (self.derive(material, label, size) for label, size in ((0, 16), (2, 14), (1, 20)))

    @staticmethod
    def stream(key, iv, size):
        return Cipher(algorithms.AES(key), modes.CTR(iv)).encryptor().update(b"\x00" * size)

    def derive(self, material, label, size):
        salt = int.from_bytes(material[16:30], "big") ^ label << 48
        return self.stream(material[:16], salt.to_bytes(14, "big") + b"\x00\x00", size)

    def seal(self, packet):
        ssrc, sequence = struct.unpack("!I", packet[8:12])[0], struct.unpack("!H", packet[2:4])[0]
        iv = int.from_bytes(self.salt, "big") << 16 ^ ssrc << 64 ^ sequence << 16
        keys = self.stream(self.key, iv.to_bytes(16, "big"), len(packet) - 12)
        out = packet[:12] + bytes(a ^ b for a, b in zip(packet[12:], keys))
        return out + hmac.new(self.sign, out + b"\x00\x00\x00\x00", hashlib.sha1).digest()[:10]


class Call:
    """An answered call from the trunk at `ip`; raises if it is not."""

    def __init__(self, ip, protected=False):
        self.trunk, self.socket = Trunk(arena, ip), udp(ip)
        self.ssrc, self.sequence, self.seal = chance.randrange(1, 2**32), 1, lambda packet: packet
        own = os.urandom(30)
        lines = ["a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + base64.b64encode(own).decode()] if protected else []
        self.call = f"adv-{uuid.uuid4().hex[:12]}@{ip}"
        sdp = offer(ip, self.socket.getsockname()[1], lines, "RTP/SAVP" if protected else "RTP/AVP")
        self.invite = self.trunk.request("INVITE", call=self.call, sdp=sdp)
        code, self.answer = self.trunk.ask(self.invite, 15)
        if code != 200:
            raise OSError(f"the call got {code}")
        self.to = media_target(self.answer)
        if protected:
            self.seal = Protected(own).seal

    def packet(self):
        self.sequence += 1
        return self.seal(rtp(self.ssrc, self.sequence, payload=tone(self.sequence)))

    def send(self):
        self.socket.sendto(self.packet(), self.to)

    def end(self):
        bye = self.trunk.request("BYE", call=self.call, cseq=2, to=header(self.answer, "To"))
        self.trunk.ask(bye, 3)
        self.trunk.close()
        self.socket.close()


def waiting(sock):
    """How many datagrams have come."""
    count = 0
    sock.setblocking(False)
    try:
        while True:
            sock.recv(2048)
            count += 1
    except OSError:
        return count


def dropped(reason):
    return arena.metric("trunkline_media_drops_total", f'reason="{reason}"')


def bleed():
    """The stranger sprays every trunk port before the answer and after it; the carrier speaks a second later."""
    strange = udp(STRANGER)
    call = Call("127.0.0.4")
    for index in range(50):
        strange.sendto(rtp(0xBADBAD, index, payload=tone(index)), call.to)
        time.sleep(0.02)
    figures["leaked"] = waiting(strange)
    waiting(call.socket)
    for _ in range(100):
        call.send()
        strange.sendto(rtp(0xBADBAD, call.sequence + 50, payload=tone(0)), call.to)
        time.sleep(0.02)
    figures["leaked"] += waiting(strange)
    figures["heard"] = waiting(call.socket)
    call.end()
    strange.close()


def inject():
    strange = udp(STRANGER)
    call = Call("127.0.0.3" if options.protected else "127.0.0.1", options.protected)
    for _ in range(25):
        call.send()
        time.sleep(0.02)
    time.sleep(0.3)
    waiting(strange)
    waiting(call.socket)
    figures["sent"] = 0
    for _ in range(int(options.seconds * 50)):
        call.send()
        for step in range(1, 5):
            strange.sendto(rtp(call.ssrc, call.sequence + step, payload=tone(step)), call.to)
            figures["sent"] += 1
        time.sleep(0.02)
    figures["leaked"] = waiting(strange)
    figures["heard"] = waiting(call.socket)
    call.end()
    strange.close()
    time.sleep(1.2)
    record = own_record(call.call)
    # What was taken of the trunk's stream is what the carrier sent, not a packet more.
    figures["taken_beyond"] = max(0, record["fromTrunk"]["packets"] - (call.sequence - 1))
    figures["missed"] = record["fromTrunk"]["lost"]


def own_record(call):
    for line in open(arena.folder + "/calls.jsonl"):
        record = json.loads(line)
        if record.get("sipCallId") == call:
            return record
    return {"fromTrunk": {"packets": 0, "lost": 9999}}


def bad_tag():
    call = Call("127.0.0.3", protected=True)
    for _ in range(25):
        call.send()
        time.sleep(0.02)
    due, figures["sent"], begin = 0.0, 0, time.monotonic()
    while (now := time.monotonic() - begin) < options.seconds:
        if now >= due:
            call.send()
            due += 0.02
        for _ in range(20):
            bad = bytearray(call.seal(rtp(call.ssrc, call.sequence + chance.randrange(-5, 50), payload=tone(1))))
            bad[-1 - chance.randrange(10)] ^= 1 + chance.randrange(255)
            call.socket.sendto(bytes(bad), call.to)
            figures["sent"] += 1
        time.sleep(0.001)
    call.end()
    time.sleep(1.2)
    figures["missed"] = own_record(call.call)["fromTrunk"]["lost"]
    figures["good"], figures["taken"] = call.sequence - 1, own_record(call.call)["fromTrunk"]["packets"]


def ssrcs():
    """Slow for the first 40, as a queue of announcements would, then fast."""
    call = Call("127.0.0.3", protected=True)
    time.sleep(1.2)
    before, sent = dropped("bad_tag"), 0
    for number in range(options.ssrcs):
        call.ssrc, call.sequence = chance.randrange(1, 2**32), chance.randrange(100, 30_000)
        for _ in range(5 if number < 40 else 1):
            call.send()
            sent += 1
            time.sleep(0.02 if number < 40 else 0.002)
    time.sleep(1.2)
    figures["ssrcs"], figures["sent"] = options.ssrcs, sent
    figures["refused"] = int(dropped("bad_tag") - before)
    # And the last one goes on: it is heard.
    at = dropped("bad_tag")
    waiting(call.socket)
    for _ in range(75):
        call.send()
        time.sleep(0.02)
    time.sleep(1.2)
    figures["last_refused"] = int(dropped("bad_tag") - at)
    call.end()


options, arena, chance = arguments(("--what", {"required": True}), ("--ssrcs", {"type": int, "default": 400}), ("--protected", {"action": "store_true"}))
figures = {"no_call": 0}
try:
    {"bleed": bleed, "inject": inject, "bad_tag": bad_tag, "ssrcs": ssrcs}[options.what]()
except OSError as problem:
    print(repr(problem), file=sys.stderr)
    figures["no_call"] = 1
report(**figures)
