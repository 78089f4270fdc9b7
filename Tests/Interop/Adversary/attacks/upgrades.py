"""Every upgrade token of RFC 9110 §7.8 and more, with 0 to 40,000 octets behind it in the same record; HTTP/2 without asking."""
import base64, struct
from common import *

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TOKENS = ["h2c", "h2", "HTTP/2.0", "HTTP/3", "SHTTP/1.3", "IRC/6.9", "RTA/x11", "TLS/1.0", "foo", "h2c, websocket", "websocket, h2c", "", "WebSocket/13"]
SETTINGS = struct.pack("!HIHIHI", 3, 100, 4, 65535, 2, 0)


def frame2(kind, payload, flags=0, stream=0):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def frames2(size, chance):
    """HTTP/2 as it would follow: the preface, SETTINGS, then PINGs, then frames of any kind up to `size` octets."""
    out = PREFACE + frame2(4, SETTINGS)
    while len(out) < size * 3 // 4:
        out += frame2(6, b"12345678")
    while len(out) < size:
        kind = chance.choice([0, 1, 2, 3, 4, 6, 7, 8, 9, 250])
        out += frame2(kind, bytes(chance.randrange(256) for _ in range(chance.choice([0, 4, 5, 8, 100, 1000]))), chance.randrange(256), chance.choice([0, 1, 3]))
    return out[:size]


def requests(chance):
    """(name, bytes of one record)"""
    good = base64.urlsafe_b64encode(SETTINGS).decode().rstrip("=")
    for size in (0, 100, 4_000, 40_000):
        tail = frames2(size, chance)
        for token in TOKENS:
            for path in ("/", "/v1/connect"):
                for settings in ([good] if "h2c" in token else [None]):
                    lines = [f"Upgrade: {token}", "Connection: Upgrade" + (", HTTP2-Settings" if settings else "")]
                    lines += [f"HTTP2-Settings: {settings}"] if settings else []
                    yield f"{token or 'empty'} {path} {size}", get(path, lines) + tail
        yield f"preface {size}", PREFACE + frame2(4, SETTINGS) + tail
        yield f"h2c with POST {size}", get("/", ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", f"HTTP2-Settings: {good}"], method="POST", body=tail)
    for settings in ("A" * 5_000, "A" * 4_096, "", "!!!", "AAMAAABkAAQAAP__"):
        lines = ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", f"HTTP2-Settings: {settings}"]
        yield f"settings of {len(settings)}", get("/", lines) + PREFACE
    yield "settings twice", get("/", ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", f"HTTP2-Settings: {good}", f"HTTP2-Settings: {good}"]) + PREFACE


def attack(name, address, tls, data, alpn=None):
    try:
        stream = connect(address, arena.stranger(), tls=tls, alpn=alpn)
    except OSError:
        figures["unreached"] += 1
        figures.setdefault("unreached_after", last[0])
        return
    last[0] = name
    with stream:
        send(stream, data)
        got, closed = read(stream, 1.0, lambda data: b"\r\n\r\n" in data)
    figures["tried"] += 1
    if got.startswith(b"HTTP/1.1 101") or got[3:5] == b"\x04\x00" or got[:3] == b"\x00\x00\x12":
        figures["switched"] += 1
        print("switched:", name, got[:40], file=sys.stderr)
    elif not got and not closed:
        figures["unanswered"] += 1
        print("unanswered:", name, file=sys.stderr)


options, arena, chance = arguments()
last = [""]
figures = {"tried": 0, "switched": 0, "unanswered": 0, "unreached": 0, "crashed": 0}
for name, data in requests(chance):
    for port, tls in ((arena.app, arena.tls), (arena.admin, False)):
        if arena.alive() and figures["unreached"] < 3:
            attack(name, ("127.0.0.1", port), tls, data)
            if not arena.alive():
                figures.update(crashed=1, crashed_by=f"{name} on {'app' if port == arena.app else 'admin'}")
if arena.tls and arena.alive() and figures["unreached"] < 3:
    attack("ALPN h2", arena.app_address, True, PREFACE + frame2(4, SETTINGS) + frames2(4_000, chance), alpn=["h2", "http/1.1"])
    try:
        with connect(arena.app_address, arena.stranger(), True, alpn=["h2"]) as stream:
            figures["switched"] += 1 if stream.selected_alpn_protocol() == "h2" else 0
    except OSError:
        pass  # refused, as RFC 7301 §3.2 would have it
time.sleep(0.3)
if not arena.alive():
    figures.setdefault("crashed_by", "what was sent last")
    figures["crashed"] = 1
report(**figures)
