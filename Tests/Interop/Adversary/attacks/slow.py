"""Slowloris: an octet a second of a head, of a body, of a WebSocket frame, of a TLS handshake; how long each is borne."""
from common import *

ATTACKS = {
    "head": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 4_000,
    "body": get("/v1/calls/00000000-0000-4000-8000-000000000000/reject", ["Content-Length: 3000"], method="POST") + b"x" * 3_000,
    "chunk": get("/", ["Transfer-Encoding: chunked"], method="POST") + b"5",
    "blank": b"\r\n" * 4_000,
    "hello": bytes.fromhex("1603010200010001fc0303") + b"\x00" * 500,
}


def open_one(kind, index):
    source = f"127.0.3.{index % 100 + 1}"
    if kind == "hello":
        stream = connect(("127.0.0.1", arena.app if arena.tls else arena.siptls), source)
        at = 0
    elif kind == "frame":
        stream, _ = web_socket(arena, source)
        return [stream, frame(hello(arena.token()) + b" " * 3_000), 0, time.monotonic(), kind]
    else:
        stream = connect(arena.app_address, source, arena.tls)
        at = ATTACKS[kind].find(b"\r\n\r\n") + 4 if kind in ("body", "chunk") else 20 if kind == "head" else 1
        send(stream, ATTACKS[kind][:at])
    return [stream, ATTACKS[kind], at, time.monotonic(), kind]


options, arena, chance = arguments(("--each", {"type": int, "default": 60}))
lived, open_now, unreached = {}, [], 0
for kind in [*ATTACKS, "frame"]:
    lived[kind] = 0.0
    for index in range(options.each):
        try:
            open_now.append(open_one(kind, index))
        except OSError:
            unreached += 1
begin, beat = time.monotonic(), 0
while time.monotonic() - begin < options.seconds and arena.alive():
    beat += 1
    for one in list(open_now):
        stream, data, at, since, kind = one
        closed = at >= len(data) or not send(stream, data[at : at + 1])
        one[2] += 1
        if not closed:
            stream.settimeout(0)
            try:
                closed = stream.recv(4096) == b""
            except (BlockingIOError, ssl.SSLWantReadError):
                pass
            except OSError:
                closed = True
            stream.settimeout(2)
        if closed:
            open_now.remove(one)
            stream.close()
            lived[kind] = max(lived[kind], time.monotonic() - since)
    time.sleep(max(0, begin + beat - time.monotonic()))
figures = {"open_end": len(open_now), "unreached": unreached, "crashed": 0 if arena.alive() else 1}
for kind in lived:
    figures[f"left_{kind}"] = sum(1 for one in open_now if one[4] == kind)
    figures[f"{kind}_s"] = round(lived[kind], 1)
for one in open_now:
    one[0].close()
report(**figures)
