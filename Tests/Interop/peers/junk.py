"""Junk for every UDP port of a gateway: random bytes, and SIP, STUN, DTLS, RTP and RTCP that are nearly right. The same bytes for one seed.

Prints {"event": "done", "sent": N}.
"""
import argparse, json, random, socket, struct, time

parser = argparse.ArgumentParser()
parser.add_argument("--sip", type=int, required=True)
parser.add_argument("--app", type=int, nargs="*", default=[])
parser.add_argument("--trunk", help="first-last")
parser.add_argument("--http", type=int, nargs="*", default=[], help="TCP ports that speak HTTP")
parser.add_argument("--seconds", type=float, default=2)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", 0))
sock.setblocking(False)
me = "127.0.0.1:%d" % sock.getsockname()[1]

GOOD = (
    f"INVITE sip:+15551230001@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP {me};branch=z9hG4bKjunk\r\nFrom: <sip:1@{me}>;tag=1\r\n"
    f"To: <sip:2@127.0.0.1>\r\nCall-ID: junk\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nContact: <sip:1@{me}>\r\n"
    "Content-Type: application/sdp\r\nContent-Length: 10\r\n\r\nv=0\r\nm=x\r\n"
).encode()


def noise(length):
    return bytes(chance.randrange(256) for _ in range(length))


def sip():
    kind = chance.randrange(5)
    if kind == 0:
        return noise(chance.randrange(1, 400))
    if kind == 1:  # cut short
        return GOOD[: chance.randrange(len(GOOD) - 60)]
    if kind == 2:  # headers that are no headers, never an INVITE that could be read
        return GOOD.replace(b"CSeq: 1 INVITE", b"CSeq: 99999999999999 " + noise(8)).replace(b"INVITE", b"OPTIONS", 1)
    if kind == 3:
        return b"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKx\r\nCSeq: 1 INVITE\r\nCall-ID: x\r\nFrom: <sip:a>;tag=1\r\nTo: <sip:b>;tag=2\r\n\r\n"
    return b"\r\n" * chance.randrange(1, 20)


def stun():
    head = struct.pack("!HHI", chance.choice([0x0001, 0x0101, 0x0111, 0x3FFF]), chance.choice([0, 4, 24, 65532]), 0x2112A442) + noise(12)
    user = b"made:up!"
    return head + struct.pack("!HH", 0x0006, len(user)) + user + struct.pack("!HH", 0x0008, 20) + noise(20)


def dtls():
    body = noise(chance.randrange(60))
    return struct.pack("!BHHIHH", chance.choice([20, 21, 22, 23]), 0xFEFD, 0, 0, chance.randrange(9), chance.choice([len(body), 65535])) + body


def rtp():
    head = struct.pack("!BBHII", chance.choice([0x80, 0x8F, 0x90, 0xA0, 0xBF]), chance.choice([0, 8, 77, 101, 127]), chance.randrange(65536), chance.randrange(2**32), 7)
    # Never a whole packet of a codec in use: that would be audio, and heard.
    return head[: chance.randrange(1, 12)] if head[0] in (0x80, 0xA0) else head + noise(chance.choice([0, 1, 3]))


def rtcp():
    return struct.pack("!BBHI", chance.choice([0x80, 0x9F, 0xBF]), chance.choice([200, 201, 202, 203, 207]), chance.choice([0, 6, 65535]), 9) + noise(chance.randrange(40))


def streams():
    """What a TCP port must stand: no boundaries, no end, an absurd length, half a request that never goes on."""
    for port, greeting in [(options.sip, b"INVITE sip:x SIP/2.0\r\n")] + [(port, b"GET / HTTP/1.1\r\n") for port in options.http]:
        for data in [noise(3000), b"A" * 40000, greeting + b"X: y\r\n" * 4000, greeting + b"Content-Length: 99999999999999999999\r\n\r\n",
                     greeting + b"Content-Length: -1\r\n\r\n", greeting + b"\x00\xff: \r\n\r\n", greeting, b"\r\n\r\n" * 500,
                     b"GET /v1/connect HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 99\r\n\r\n"]:
            stream = socket.create_connection(("127.0.0.1", port), timeout=2)
            stream.settimeout(0.05)
            try:
                stream.sendall(data)
                stream.recv(65536)
            except OSError:
                pass  # closed, or silent
            kept.append(stream)


kept = []
trunk = []
if options.trunk:
    first, last = map(int, options.trunk.split("-"))
    trunk = list(range(first, last + 1))
streams()
begin, sent = time.monotonic(), 0
while time.monotonic() - begin < options.seconds:
    batch = [(options.sip, sip())]
    for port in options.app:
        batch += [(port, chance.choice([stun, dtls, rtp, rtcp])()), (port, noise(chance.randrange(1, 1500)))]
    for port in trunk:
        batch.append((port, chance.choice([rtp, rtcp, stun, dtls])()))
    for port, data in batch:
        try:
            sock.sendto(data, ("127.0.0.1", port))
            sent += 1
        except OSError:
            pass  # a port that is closed just now
    time.sleep(0.02)
print(json.dumps({"event": "done", "sent": sent}), flush=True)
