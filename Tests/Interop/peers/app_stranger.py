"""app_phone.py whose RTP is not what aiortc makes: stamped by another clock, with losses, key presses of any shape, another codec, other wishes.

The options below are its own, all others are app_phone's. What goes out is rewritten just before it is encrypted; what came in is counted once
decrypted. At the end of the call it says {"event": "rtp", ...}: of the gateway's stream its packets, types, the numbers that are missing
and each step of the timestamps from one packet to the next, with how often it came.
"""
import argparse, json, os, random, re, runpy, struct, sys, time
import aiortc, aiortc.rtcdtlstransport

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--only", help="the one codec of its SDP: PCMU, PCMA or opus")
parser.add_argument("--fmtp", help="of its Opus: usedtx=1")
parser.add_argument("--step", type=int, help="what a packet of 20 ms adds to the timestamp")
parser.add_argument("--lose", type=float, default=0, help="the share of its packets that are lost")
parser.add_argument("--lose-seed", type=int, default=1)
parser.add_argument("--presses", default="[]", help='[{"at": 0.5, "digit": "4", "type": 126, "packets": [[0, 100, true, 0]]}]: seconds after the connect; each packet'
    " in the place of one of audio, 20 ms apart: milliseconds after the first, duration in ms, whether it is an end, and ms that its timestamp is ahead")
parser.add_argument("--events", action="store_true", help="its SDP has telephone-event on both clocks, which aiortc does not know")
own, rest = parser.parse_known_args()
presses = json.loads(own.presses)
chance = random.Random(own.lose_seed)
CODES = "0123456789*#ABCD"
EVENTS = {110: "telephone-event/48000", 126: "telephone-event/8000"}


def say(event, **more):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


def described(sdp):
    """With telephone-event, and without the codecs that are not wanted."""
    maps = dict(re.findall(r"a=rtpmap:(\d+) (\S+)", sdp))
    kept = [kind for kind, name in maps.items() if own.only is None or name.lower().startswith(own.only.lower() + "/")]
    gone = set(maps) - set(kept)
    events = [str(kind) for kind in EVENTS] if own.events else []
    lines = [line for line in sdp.split("\r\n") if not any(re.match(rf"a=(rtpmap|fmtp|rtcp-fb):{kind} ", line) for kind in gone)]
    out = []
    for line in lines:
        if line.startswith("m=audio"):
            out.append(" ".join(line.split(" ")[:3] + kept + events))
            continue
        out.append(line)
        found = re.match(r"a=rtpmap:(\d+) opus/", line)
        if found and own.fmtp:
            out.append(f"a=fmtp:{found.group(1)} {own.fmtp}")
        if line.startswith("a=mid:"):
            out += [f"a=rtpmap:{kind} {EVENTS[int(kind)]}" for kind in events]
    return "\r\n".join(out)


plain = aiortc.RTCPeerConnection.localDescription


def local_description(self):
    own_one = plain.fget(self)
    return own_one and aiortc.RTCSessionDescription(sdp=described(own_one.sdp), type=own_one.type)


aiortc.RTCPeerConnection.localDescription = property(local_description)

first = None
stamps = {}
counts = {"sent": 0, "dropped": 0}
queue = []
base = None


def due(stamp, now):
    """The packet of a press that takes the place of this one of audio: type, marker, timestamp, body."""
    for press in presses:
        while press["packets"] and now >= press.setdefault("begin", first + press["at"]) + press["packets"][0][0] / 1000:
            _, duration, is_end, ahead = press["packets"].pop(0)
            is_first = "stamp" not in press
            clock = 48 if press["type"] == 110 else 8
            scale = press["scale"] = base // 20
            begin = press.setdefault("stamp", stamp)
            body = struct.pack("!BBH", CODES.index(press["digit"]), (0x80 if is_end else 0) | 10, duration * clock)
            return press["type"], is_first, begin + ahead * scale, body
    return None


send_rtp = aiortc.rtcdtlstransport.RTCDtlsTransport._send_rtp


async def rewritten(self, data):
    global first, base
    kind = data[1] & 0x7F
    if 64 <= kind < 96:  # RTCP
        return await send_rtp(self, data)
    number, stamp = struct.unpack("!HI", data[2:8])
    now = time.monotonic()
    if first is None:
        first, stamps["first"] = now, stamp
    usual = 960 if kind >= 96 else 160
    base = own.step or usual
    stamp = ((stamp - stamps["first"]) % 2**32 // usual * base + 7_000) & 0xFFFFFFFF
    counts["sent"] += 1
    if chance.random() < own.lose:
        counts["dropped"] += 1
        return
    press = due(stamp, now)
    if press:
        kind, marker, stamp, body = press
        data = struct.pack("!BBHI", 0x80, kind | (0x80 if marker else 0), number, stamp & 0xFFFFFFFF) + data[8:12] + body
    else:
        data = data[:4] + struct.pack("!I", stamp) + data[8:]
    await send_rtp(self, data)


aiortc.rtcdtlstransport.RTCDtlsTransport._send_rtp = rewritten
came = {"types": {}, "steps": {}, "packets": 0, "markers": 0}
numbers, stamps_of_audio = [], []
handle = aiortc.rtcdtlstransport.RTCDtlsTransport._handle_rtp_data


async def counted(self, data, arrival_time_ms):
    kind, (number, stamp) = data[1] & 0x7F, struct.unpack("!HI", data[2:8])
    came["packets"] += 1
    came["types"][kind] = came["types"].get(kind, 0) + 1
    numbers.append(number)
    if kind not in EVENTS:
        came["markers"] += data[1] >> 7
        stamps_of_audio.append(stamp)
    await handle(self, data, arrival_time_ms)


aiortc.rtcdtlstransport.RTCDtlsTransport._handle_rtp_data = counted
close = aiortc.RTCPeerConnection.close


async def closed(self):
    if numbers:
        distances = sorted((number - numbers[0] + 0x8000) % 0x10000 for number in numbers)
        missing = distances[-1] - distances[0] + 1 - len(set(distances))
        for before, after in zip(stamps_of_audio, stamps_of_audio[1:]):
            step = (after - before + 2**31) % 2**32 - 2**31
            came["steps"][step] = came["steps"].get(step, 0) + 1
        say("rtp", **came, missing=missing, twice=len(numbers) - len(set(numbers)), **counts)
        numbers.clear()
    await close(self)


aiortc.RTCPeerConnection.close = closed
sys.argv[1:] = rest
folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)
runpy.run_path(os.path.join(folder, "app_phone.py"), run_name="__main__")
