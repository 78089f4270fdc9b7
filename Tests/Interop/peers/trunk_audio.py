"""The media of a carrier whose signalling is sipp's: RTP on one port, G.711, G.722, Opus or L16, plays a WAV file and records what it hears.

It learns where to send from the first packet it gets, and starts to play then. Prints one JSON object a line; ends after --silence seconds
without a packet, or after --seconds.
"""
import argparse, json, random, socket, struct, sys, time
import numpy as np
import audio, codecs_of_trunks

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--play")
parser.add_argument("--record")
parser.add_argument("--codec", type=int, default=0, help="0 PCMU, 8 PCMA, 9 G.722, 96 Opus, 98 L16")
parser.add_argument("--rate", type=int, default=8000, choices=[8000, 16000], help="of the WAV files")
parser.add_argument("--then", default="", help="4:0,8:9: seconds after the first packet from which it sends, and hears, another codec")
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--silence", type=float, default=2)
parser.add_argument("--events", type=int, default=101, help="telephone-event payload type")
parser.add_argument("--digits", default="", help="sent one second after the first packet")
parser.add_argument("--ptime", type=int, default=20, help="milliseconds of a packet that is sent")
parser.add_argument("--send-from", type=int, help="sends from this port, not from the one that the SDP names")
parser.add_argument("--loss", type=float, default=0)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)


def say(event, **more):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((options.address, options.port))
other = None
if options.send_from:
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind((options.address, options.send_from))
    other.setblocking(False)
sizes = {}
say("listening", port=options.port)
codec = codecs_of_trunks.codec(options.codec)
turns = [(float(at), int(kind)) for at, kind in (turn.split(":") for turn in options.then.split(",") if turn)]
known = {kind: codecs_of_trunks.codec(kind) for kind in {kind for _, kind in turns} - {options.codec}} | {options.codec: codec}
speech = audio.read_wav(options.play, options.rate) if options.play else np.zeros(0, dtype=np.int16)
speech = {kind: codecs_of_trunks.resample(speech, options.rate, known[kind].rate) for kind in known}
hearing = dict(known)
if options.codec in audio.DECODE:  # a G.711 peer hears both laws
    hearing |= {payload_type: codecs_of_trunks.G711(payload_type) for payload_type in audio.DECODE}
peer = None
heard = {}
first_stamp = None
digits = {}
begin = time.monotonic()
last = None
sequence, stamp, ssrc = 1000, 160000, 0x7261746B
played = 0  # milliseconds
sending = options.codec
types = {}
noise = []  # dB below full scale, of comfort noise (RFC 3389)
next_send = None
counts = {"received": 0, "sent": 0, "dropped": 0, "strange": 0, "elsewhere": 0}
digit_queue = []
sources = {}


def count(packet):
    """Of each source the numbers that came, from which the lost ones follow."""
    number, source = struct.unpack("!H4xI", packet[2:12])
    highest, numbers = sources.setdefault(source, [number, set()])
    extended = highest + ((number - highest + 0x8000) & 0xFFFF) - 0x8000
    sources[source][0] = max(highest, extended)
    numbers.add(extended)


def lost():
    return sum(max(numbers) - min(numbers) + 1 - len(numbers) for _, numbers in sources.values())


def digit_packets(text):
    codes = "0123456789*#ABCD"
    for letter in text:
        code = codes.index(letter)
        for step in range(1, 11):
            end = step >= 8
            yield code, end, min(step, 8) * 160, step == 1
        for _ in range(5):
            yield None


def send(payload_type, body, marker=False, when=None):
    global sequence
    head = struct.pack("!BBHII", 0x80, payload_type | (0x80 if marker else 0), sequence & 0xFFFF, (stamp if when is None else when) & 0xFFFFFFFF, ssrc)
    sequence += 1
    if chance.random() < options.loss:
        counts["dropped"] += 1
        return
    (other or sock).sendto(head + body, peer)
    counts["sent"] += 1


event_stamp = 0
stamps = options.ptime * codec.clock // 1000
while time.monotonic() - begin < options.seconds:
    now = time.monotonic()
    if last is not None and now - last > options.silence:
        break
    wait = 0.1 if next_send is None else max(0, next_send - now)
    sock.settimeout(max(wait, 0.0005))
    try:
        packet, source = sock.recvfrom(2048)
    except (TimeoutError, ConnectionRefusedError):
        packet = None
    now = time.monotonic()
    if other:
        try:
            while other.recv(2048):
                counts["elsewhere"] += 1
                last = now
        except BlockingIOError:
            pass
    if packet and len(packet) >= 12 and packet[0] >> 6 == 2:
        payload_type, arrived_stamp = packet[1] & 0x7F, struct.unpack("!I", packet[4:8])[0]
        last = now
        count(packet)
        if peer is None:
            peer = source
            next_send = first = now
            digit_queue = [None] * 50 + list(digit_packets(options.digits))
            say("first_packet", source="%s:%d" % source, payload_type=payload_type)
        if payload_type in hearing:
            counts["received"] += 1
            types[payload_type] = types.get(payload_type, 0) + 1
            length = (len(packet) - 12) // 8
            sizes[length] = sizes.get(length, 0) + 1
            if first_stamp is None:
                first_stamp = arrived_stamp
            place = ((arrived_stamp - first_stamp) & 0xFFFFFFFF) * codec.rate // codec.clock
            part = hearing[payload_type].decode(packet[12:])
            heard[place] = codecs_of_trunks.resample(part, hearing[payload_type].rate, codec.rate)
        elif payload_type == options.events and len(packet) >= 16:
            code, flags, duration = struct.unpack("!BBH", packet[12:16])
            if flags & 0x80 and arrived_stamp not in digits:
                digits[arrived_stamp] = "0123456789*#ABCD"[code]
                say("digit", digit=digits[arrived_stamp], durMs=duration // 8)
        elif payload_type == 13 and len(packet) > 12:
            noise.append(packet[12])
        else:
            counts["strange"] += 1
    if next_send is not None and now >= next_send:
        item = digit_queue.pop(0) if digit_queue else None
        if item:
            code, end, duration, fresh = item
            if fresh:
                event_stamp = stamp
            send(options.events, struct.pack("!BBH", code, (0x80 if end else 0) | 10, duration), fresh, event_stamp)
        else:
            if turns and now - first >= turns[0][0]:
                sending = turns.pop(0)[1]
            rate = known[sending].rate
            step, at = options.ptime * rate // 1000, played * rate // 1000
            chunk = speech[sending][at : at + step]
            if len(chunk) < step:
                chunk = np.concatenate([chunk, np.zeros(step - len(chunk), dtype=np.int16)])
            send(sending, known[sending].encode(chunk), marker=played == 0)
            played += options.ptime
        stamp += stamps
        next_send += options.ptime / 1000

if options.record:
    longest = codec.rate * 600
    end = max((at + len(part) for at, part in heard.items() if at < longest), default=0)
    line = np.zeros(end, dtype=np.int16)
    for at, part in heard.items():
        if at < longest:
            line[at : at + len(part)] = part
    audio.write_wav(options.record, codecs_of_trunks.resample(line, codec.rate, options.rate), options.rate)
say("done", **counts, lost=lost(), types=types, digits="".join(digits[key] for key in sorted(digits)), heardMs=sum(map(len, heard.values())) * 1000 // codec.rate, sizes=sizes, noise=noise)
