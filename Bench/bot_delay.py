"""What a bot's audio waits in the gateway, each way: one process is the carrier (SIP and RTP over UDP) and the bot (a WebSocket server that
sends back each message of audio at once), so both ends have one clock. Nothing but Python's own library.

    bot_delay.py --gateway PORT --listen PORT --bot PORT --to NUMBER --format mulaw|pcm16 --calls N --seconds S

Each packet of 20 ms is one level that names it; a message or a packet that comes is known by the level in its middle. As in speech a pause comes every two
seconds. From when the packet
that holds a sample was sent to when the message that holds it has come, and the same back. Prints one JSON object: milliseconds by call.
"""
import argparse, base64, hashlib, json, select, socket, struct, time

parser = argparse.ArgumentParser(description=__doc__)
for name in ("--gateway", "--listen", "--bot"):
    parser.add_argument(name, type=int, required=True)
parser.add_argument("--to", required=True)
parser.add_argument("--format", choices=["mulaw", "pcm16"], required=True)
parser.add_argument("--calls", type=int, default=1)
parser.add_argument("--seconds", type=float, default=5, help="measured of each call, behind --settle")
parser.add_argument("--settle", type=float, default=1)
options = parser.parse_args()


def expanded(code):
    value = ~code & 0xFF
    magnitude = (((value & 0x0F) << 3) + 0x84) << ((value & 0x70) >> 4)
    return 0x84 - magnitude if value & 0x80 else magnitude - 0x84


# Sixteen levels of µ-law, so far from each other that a filter's ripple is none of the next: packets are told apart over 320 ms.
CODES = [0x80 | (0x7F - step) for step in range(0x37, 0x77, 4)]
LEVELS = [expanded(code) for code in CODES]
NAMES = 16


# of each hundred packets the last twenty are silence, which has no name
WORDS, TURN = 80, 100


def nearest(value):
    if value < LEVELS[0] / 2:
        return None
    return min(range(NAMES), key=lambda name: abs(LEVELS[name] - value))


def named(samples):
    return nearest(samples[len(samples) // 2])


class Sent:
    """When each name was sent last."""

    def __init__(self):
        self.times = {}

    def sent(self, name, now):
        if name is not None:
            self.times[name] = now

    def delay(self, name, now):
        """Once for each time that it was sent."""
        at = self.times.pop(name, None)
        return None if at is None or now - at > 0.3 else (now - at) * 1000


class Call:
    def __init__(self, number):
        self.sip = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sip.bind(("127.0.0.1", options.listen))
        self.rtp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.rtp.bind(("127.0.0.1", 0))
        self.bot = self.peer = None
        self.number, self.target, self.tag = number, f"sip:{options.to}@127.0.0.1:{options.gateway}", ""
        self.inside, self.outside = Sent(), Sent()
        self.heard, self.said = [], []
        self.bytes = b""
        self.sent = 0

    def request(self, method, cseq, body=""):
        own = f"127.0.0.1:{options.listen}"
        kind = "Content-Type: application/sdp\r\n" if body else ""
        text = (
            f"{method} {self.target} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK-{self.number}-{method}-{time.monotonic_ns()}\r\n"
            f"Max-Forwards: 70\r\nFrom: <sip:+15550000001@{own}>;tag=bench{self.number}\r\n"
            f"To: <sip:{options.to}@127.0.0.1>{self.tag}\r\nCall-ID: bot-{self.number}-{options.format}-{options.listen}\r\n"
            f"CSeq: {cseq} {method}\r\nContact: <sip:bench@{own}>\r\n{kind}Content-Length: {len(body)}\r\n\r\n{body}")
        self.sip.sendto(text.encode(), ("127.0.0.1", options.gateway))

    def invite(self):
        port = self.rtp.getsockname()[1]
        self.request("INVITE", 1, f"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n"
                                  "a=rtpmap:0 PCMU/8000\r\na=ptime:20\r\n")

    def answered(self, text):
        status = int(text.split(" ", 2)[1]) if text.startswith("SIP/2.0") else 0
        if status >= 300:
            raise SystemExit(f"the call was refused: {text.splitlines()[0]}")
        if status != 200 or self.peer or "INVITE" not in text:
            return
        lines = text.split("\r\n")
        find = lambda head: next(line[len(head):].strip() for line in lines if line.lower().startswith(head))
        self.tag = ";tag=" + find("to:").rsplit(";tag=", 1)[1]
        self.target = find("contact:").split("<")[1].split(">")[0]
        self.peer = ("127.0.0.1", int(find("m=audio ").split()[0]))
        self.request("ACK", 1)

    def speak(self, now):
        name = self.sent % NAMES if self.sent % TURN < WORDS else None
        head = struct.pack("!BBHII", 0x80, 0x80 if self.sent == 0 else 0, self.sent & 0xFFFF, self.sent * 160, 0x626F74)
        self.rtp.sendto(head + bytes([0xFF if name is None else CODES[name]]) * 160, self.peer)
        self.inside.sent(name, now)
        self.sent += 1

    def listen(self, packet, now, counted):
        payload = packet[12:]
        if len(payload) != 160:
            return
        delay = self.outside.delay(nearest(expanded(payload[80])), now)
        if counted and delay is not None:
            self.said.append(delay)

    def talk(self, now, counted):
        """The bot's side: frames of RFC 6455 that have come; audio goes back as it came."""
        self.bytes += self.bot.recv(65536)
        while len(self.bytes) >= 2:
            kind, size, at = self.bytes[0] & 15, self.bytes[1] & 127, 2
            if size == 126:
                size, at = struct.unpack("!H", self.bytes[2:4])[0], 4
            elif size == 127:
                size, at = struct.unpack("!Q", self.bytes[2:10])[0], 10
            if len(self.bytes) < at + 4 + size:
                return
            mask, payload, self.bytes = self.bytes[at : at + 4], self.bytes[at + 4 : at + 4 + size], self.bytes[at + 4 + size :]
            key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
            payload = (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")
            if kind == 2:
                samples = struct.unpack(f"<{len(payload) // 2}h", payload)
                back = payload
            elif kind == 1 and json.loads(payload)["event"] == "media":
                message = json.loads(payload)
                samples = [expanded(code) for code in base64.b64decode(message["media"]["payload"])]
                back = json.dumps({"event": "media", "streamSid": message["streamSid"], "media": {"payload": message["media"]["payload"]}}).encode()
            else:
                continue
            name = named(samples)
            delay = self.inside.delay(name, now)
            if counted and delay is not None:
                self.heard.append(delay)
            length = bytes([len(back)]) if len(back) < 126 else b"\x7e" + struct.pack("!H", len(back))
            self.bot.sendall(bytes([0x80 | kind]) + length + back)
            self.outside.sent(name, time.monotonic())

    def accept(self, listener):
        self.bot, _ = listener.accept()
        self.bot.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.bot.recv(4096)
        key = next(line.split(b":", 1)[1].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        self.bot.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")

    def run(self, listener):
        self.invite()
        began, due = time.monotonic(), None
        while True:
            now = time.monotonic()
            if due is None and self.peer and self.bot:
                due = begin = now
            if due is None and now - began > 10:
                raise SystemExit("no call")
            while due is not None and now >= due:
                self.speak(time.monotonic())
                due += 0.02
            if due is not None and now - begin > options.settle + options.seconds:
                break
            counted = due is not None and now - begin > options.settle
            ready = [self.sip, self.rtp, listener] if self.bot is None else [self.sip, self.rtp, self.bot]
            for source in select.select(ready, [], [], 0.1 if due is None else max(0, due - time.monotonic()))[0]:
                now = time.monotonic()
                if source is self.sip:
                    self.answered(self.sip.recv(4096).decode())
                elif source is self.rtp:
                    self.listen(self.rtp.recv(2048), now, counted)
                elif source is listener:
                    self.accept(listener)
                else:
                    self.talk(now, counted)
        self.request("BYE", 2)
        self.sip.settimeout(2)
        while not self.sip.recv(4096).startswith(b"SIP/2.0 200"):
            pass
        for one in (self.sip, self.rtp, self.bot):
            one.close()
        return self.heard, self.said


def main():
    listener = socket.create_server(("127.0.0.1", options.bot))
    calls = [Call(number).run(listener) for number in range(options.calls)]
    expected = options.seconds * 50 * WORDS / TURN
    print(json.dumps({
        "toBot": [[round(x, 3) for x in heard] for heard, _ in calls], "toTrunk": [[round(x, 3) for x in said] for _, said in calls],
        "measured": round(min(min(len(heard), len(said)) for heard, said in calls) / expected, 4)}))


main()
