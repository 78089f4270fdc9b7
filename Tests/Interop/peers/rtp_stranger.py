"""A carrier's media that does what strangers do: several sources, codecs and payload types on one leg, ports that move.

Plays tones as streams and key presses as telephone-event, in the order of --streams and --events; what has one SSRC shares its numbers. It learns where to send
from the first packet it gets. Prints one JSON object a line; ends after --silence seconds without a packet.
"""
import argparse, json, math, socket, struct, time
import numpy as np
import audio, codecs_of_trunks

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--streams", default="[]", help='[{"type": 0, "law": 0, "ssrc": 1, "from": 0, "to": 3, "hertz": 440, "port": 0, "jump": 0, "every": 1}], seconds; law 96: Opus; null: "octets" (20) of no codec, each "fill" (7)')
parser.add_argument("--events", default="[]", help='[{"at": 1, "digits": "42", "type": 101, "ssrc": 1}]')
parser.add_argument("--hear", type=int, default=101, help="the telephone-event payload type that is heard")
parser.add_argument("--clock", type=int, default=8000, help="of the timestamps of all streams; durations of events are in 1/8 ms")
parser.add_argument("--silence", type=float, default=1)
parser.add_argument("--seconds", type=float, default=30)
options = parser.parse_args()
CODES = "0123456789*#ABCD"


def say(event, **more):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


def bound(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


streams, events = json.loads(options.streams), json.loads(options.events)
sockets = {0: bound(options.port)}
for stream in streams:
    port = stream.get("port", 0)
    if port not in sockets:
        sockets[port] = bound(port)
say("listening", port=options.port)
frame = options.clock // 50
opus = {stream["ssrc"]: codecs_of_trunks.codec(96) for stream in streams if stream.get("law", 0) == 96}
numbers, types, presses, places = {}, {}, {}, {}
peer = last = first = audio_stamp = None
begin = time.monotonic()
tick = 0


def send(source, kind, stamp, body, marker=False, port=0):
    number = numbers[source] = (numbers.get(source, source * 1000) + 1) & 0xFFFF
    sockets[port].sendto(struct.pack("!BBHII", 0x80, kind | (0x80 if marker else 0), number, stamp & 0xFFFFFFFF, source) + body, peer)


def body(stream):
    law = stream.get("law", 0)
    if law is None:
        return bytes([stream.get("fill", 7)] * stream.get("octets", 20))
    count = 960 if law == 96 else 160
    phase = (np.arange(count) + tick * count) * (2 * math.pi * stream.get("hertz", 440) / (count * 50))
    samples = (8000 * np.sin(phase)).astype(np.int16)
    return opus[stream["ssrc"]].encode(samples) if law == 96 else audio.ENCODE[law](samples).tobytes()


def presses_now(second):
    for event in events:
        step = round((second - event["at"]) * 50)
        digit, place = divmod(step, 16)
        if 0 <= digit < len(event["digits"]) and place < 11:
            start = 700_000 * (1 + events.index(event)) + digit * 16 * frame
            packet = struct.pack("!BBH", CODES.index(event["digits"][digit]), (0x80 if place >= 8 else 0) | 10, min(place + 1, 8) * 160)
            send(event["ssrc"], event["type"], start, packet, place == 0)


while time.monotonic() - begin < options.seconds:
    now = time.monotonic()
    if last is not None and now - last > options.silence:
        break
    for sock in sockets.values():
        try:
            while True:
                packet, source = sock.recvfrom(2048)
                last = now
                kind, stamp = packet[1] & 0x7F, struct.unpack("!I", packet[4:8])[0]
                types[kind] = types.get(kind, 0) + 1
                if peer is None:
                    peer, first = source, now
                    say("first_packet", payload_type=kind)
                if kind == options.hear and len(packet) >= 16:
                    code, flags, duration = struct.unpack("!BBH", packet[12:16])
                    places.setdefault(stamp, None if audio_stamp is None else (stamp - audio_stamp) & 0xFFFFFFFF)
                    presses.setdefault(stamp, []).append([CODES[code], bool(flags & 0x80), duration, bool(packet[1] & 0x80)])
                elif kind != 13:
                    audio_stamp = stamp
        except BlockingIOError:
            pass
        except ConnectionRefusedError:
            pass
    if first is not None and now >= first + tick * 0.02:
        second = tick * 0.02
        for stream in streams:
            if stream.get("from", 0) <= second < stream.get("to", 60) and tick % stream.get("every", 1) == 0:
                send(stream["ssrc"], stream["type"], tick * frame + stream.get("jump", 0), body(stream), port=stream.get("port", 0))
        presses_now(second)
        tick += 1
    time.sleep(0.002)
whole = [
    packets[0][3] and not packets[0][1] and sum(end for _, end, _, _ in packets) == 3 and all(a[2] <= b[2] for a, b in zip(packets, packets[1:]))
    for packets in presses.values()
]
say("done", types={str(kind): count for kind, count in types.items()}, presses="".join(packets[0][0] for _, packets in presses.items()), whole=all(whole), sent=tick,
    milliseconds=[packets[-1][2] // 8 for _, packets in presses.items()], places=list(places.values()))
