"""HTTP heads and WebSocket frames broken by chance, against the live ports, for --seconds. The seed says which."""
from common import *

options, arena, chance = arguments()
SEEDS = [
    get("/"), get("/healthz"), get("/metrics"), get("/readyz"), get("/v1/calls"), get("/", method="HEAD"), upgrade_request(),
    get("/v1/calls/00000000-0000-4000-8000-000000000000/reject", ["Authorization: Bearer x", "Content-Type: application/json"], method="POST", body=b'{"reason":"busy"}'),
    get("/", ["Transfer-Encoding: chunked"], method="POST") + b"5\r\nhello\r\n0\r\n\r\n", get("/phone.js", ["Range: bytes=0-5", "Accept-Encoding: gzip"]),
    get("/", ["Expect: 100-continue"], method="POST", body=b"x" * 100), get("/v1/calls/x/hangup", method="POST", body=b""),
]
TOKENS = [b"\r\n", b"\n", b"\r", b"\x00", b":", b" ", b"\t", b",", b";", b"=", b"%", b"chunked", b"Content-Length: ", b"Transfer-Encoding: ", b"Upgrade: h2c", b"\r\n\r\n", b"-1", b"0",
          b"ffffffffffffffff", b"HTTP/1.1", b"HTTP/1.0", b"Host: ", b"Connection: close", b"Connection: Upgrade", b"Expect: 100-continue", b"\xff\xfe", b"A" * 5_000]
MESSAGES = [
    b'{"t":"ping"}', b'{"t":"ack","ack":1}', b'{"t":"call.start","id":"00000000-0000-4000-8000-000000000001","seq":1,"call":"00000000-0000-4000-8000-000000000002","d":{"to":{"k":"phone","h":"+1"},"sdp":"v=0","gen":1}}',
    b'{"t":"hist.list","id":"00000000-0000-4000-8000-000000000003","d":{}}', b'{"t":"device.state","id":"00000000-0000-4000-8000-000000000004","d":{"state":"bg"}}', b'{"t":"x","d":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}']


def broken(data):
    data = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        at, kind = chance.randrange(len(data) + 1), chance.randrange(6)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] = chance.randrange(256)
        elif kind == 1:
            data[at:at] = chance.choice(TOKENS)
        elif kind == 2:
            del data[at : at + chance.randrange(1, 20)]
        elif kind == 3:
            data[at:at] = data[chance.randrange(len(data) + 1) :][: chance.randrange(1, 60)]
        elif kind == 4:
            del data[at:]
        else:
            data += chance.choice(SEEDS)
    return bytes(data)


def in_pieces(stream, data):
    while data:
        size = len(data) if chance.randrange(3) == 0 else chance.randrange(1, len(data) + 1)
        if not send(stream, data[:size]):
            return
        data = data[size:]


def one_http(address, tls):
    with connect(address, arena.stranger(), tls) as stream:
        in_pieces(stream, b"".join(broken(chance.choice(SEEDS)) if chance.randrange(4) else chance.choice(SEEDS) for _ in range(chance.randrange(1, 4))))
        if chance.randrange(2) == 0:
            read(stream, 0.03)
        elif chance.randrange(2) == 0 and not tls:
            stream.shutdown(socket.SHUT_WR)
            read(stream, 0.03)


def one_web_socket():
    stream, frames = log_in(arena, device="fuzz", source=arena.stranger())[:2] if chance.randrange(3) else web_socket(arena, arena.stranger())
    with stream:
        for _ in range(chance.randrange(1, 8)):
            kind = chance.randrange(4)
            if kind == 0:
                data = frame(chance.choice(MESSAGES))
            elif kind == 1:
                data = frame(broken(chance.choice(MESSAGES))[:3_000])
            elif kind == 2:
                data = frame(
                    chance.randbytes(chance.choice([0, 1, 125, 126, 300])), chance.randrange(16), chance.randrange(2) == 0, chance.randrange(8) != 0, chance.choice([0, 0, 0, 1, 4]),
                    chance.choice([None, None, None, 0, 126, 65_536, 2**32, 2**63]))
            else:
                data = broken(frame(chance.choice(MESSAGES)))
            if not send(stream, data):
                break
        if chance.randrange(2):
            frames.close_code(0.03)


descriptors, tried, unreached = arena.descriptors(), 0, 0
figures = {"seed": options.seed}
begin = time.monotonic()
while time.monotonic() - begin < options.seconds and arena.alive() and unreached < 50:
    try:
        kind = chance.randrange(4)
        if kind == 0:
            one_http(("127.0.0.1", arena.admin), False)
        elif kind == 1:
            one_web_socket()
        else:
            one_http(arena.app_address, arena.tls)
    except OSError:
        unreached += 1
    tried += 1
figures["crashed"] = 0 if arena.alive() else 1
end = time.monotonic() + 15
while arena.alive() and arena.descriptors() > descriptors + 3 and time.monotonic() < end:
    time.sleep(0.2)
figures |= {"tried": tried, "unreached": unreached, "left_open": max(0, arena.descriptors() - descriptors - 3), "spin": arena.spinning()}
report(**figures)
