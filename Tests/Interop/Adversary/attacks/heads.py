"""Heads that two readers understand differently (request smuggling), heads that are no heads, origins, and paths that climb."""
from common import *

SECOND = get("/healthz", ["X-Second: 1"])


def post(*fields, body=b""):
    return ("\r\n".join(["POST /nothing HTTP/1.1", "Host: 127.0.0.1", *fields]) + "\r\n\r\n").encode("latin-1") + body


# Whatever is ambiguous is refused and the connection ends, so that what hides in the body is never a request.
REFUSED = {
    "length and chunked": post("Content-Length: 4", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SECOND),
    "chunked and length": post("Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\n" + SECOND),
    "two lengths": post("Content-Length: 0", f"Content-Length: {len(SECOND)}", body=SECOND),
    "two lengths in one": post(f"Content-Length: 0, {len(SECOND)}", body=SECOND),
    "length +0": post("Content-Length: +0", body=SECOND), "length -1": post("Content-Length: -1", body=SECOND),
    "length 0x0": post("Content-Length: 0x0", body=SECOND), "length 1 2": post("Content-Length: 1 2", body=SECOND),
    "length of 30 digits": post("Content-Length: " + "9" * 30, body=SECOND), "length empty": post("Content-Length:", body=SECOND),
    "xchunked": post("Transfer-Encoding: xchunked", body=SECOND), "chunked, identity": post("Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n" + SECOND),
    "two encodings": post("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=b"0\r\n\r\n" + SECOND),
    "space before colon": post("Content-Length : 0", body=SECOND), "tab before colon": post("Transfer-Encoding\t: chunked", body=b"0\r\n\r\n" + SECOND),
    "folded": post("X-Long: a", " b: c", f"Content-Length: 0", body=SECOND), "folded length": post("Content-Length:", " 0", body=SECOND),
    "bare LF": b"GET /nothing HTTP/1.1\nHost: 127.0.0.1\n\n" + SECOND, "bare CR": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\rX: y\r\n\r\n" + SECOND,
    "LF in a field": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\nContent-Length: 3\r\n\r\n" + SECOND,
    "NUL in a field": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n" + SECOND, "NUL in the name": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nX\x00: a\r\n\r\n" + SECOND,
    "no colon": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nnonsense\r\n\r\n" + SECOND, "empty name": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n: a\r\n\r\n" + SECOND,
    "no host": b"GET /nothing HTTP/1.1\r\n\r\n" + SECOND, "two hosts": b"GET /nothing HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + SECOND,
    "HTTP/1.2.3": b"GET /nothing HTTP/1.2.3\r\nHost: 127.0.0.1\r\n\r\n" + SECOND, "HTTP/2.0": b"GET /nothing HTTP/2.0\r\nHost: 127.0.0.1\r\n\r\n" + SECOND,
    "HTTP/0.9": b"GET /nothing\r\n\r\n" + SECOND, "http/1.1": b"GET /nothing http/1.1\r\nHost: 127.0.0.1\r\n\r\n" + SECOND,
    "two spaces": b"GET  /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + SECOND, "tabs": b"GET\t/nothing\tHTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + SECOND,
    "method of NUL": b"G\x00T /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + SECOND, "CONNECT": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + SECOND,
    "chunk of 2^64": post("Transfer-Encoding: chunked", body=b"10000000000000000\r\n" + SECOND), "chunk of -1": post("Transfer-Encoding: chunked", body=b"-1\r\n" + SECOND),
    "chunk without CRLF": post("Transfer-Encoding: chunked", body=b"1\r\naX0\r\n\r\n" + SECOND), "chunk with LF": post("Transfer-Encoding: chunked", body=b"0\n\n" + SECOND),
    "head of 100 KB": get("/nothing", ["X: " + "a" * 100_000]) + SECOND, "10,000 fields": get("/nothing", ["X: y"] * 10_000) + SECOND,
    "path of 50 KB": get("/" + "a" * 50_000) + SECOND,
}
# Served or not, nothing but a page comes back.
PATHS = ["/../jwt.key", "/..%2fjwt.key", "/%2e%2e/jwt.key", "//etc/passwd", "/....//jwt.key", "/index.html%00.js", "/\\..\\jwt.key", "/v1/connect/../../jwt.key", "/./jwt.key",
         "/?x=" + "a=b&" * 300, "/%", "/%zz", "/\xff"]
ORIGINS = ["https://evil.example", "null", "https://" + "a" * 5_000, "https://127.0.0.1.evil.example", "https://" + "a" * 4_090]


def ask(address, tls, data, seconds=2.0):
    """(statuses, closed, octets)"""
    try:
        stream = connect(address, arena.stranger(), tls=tls)
    except OSError:
        figures["unreached"] += 1
        return [], True, b""
    with stream:
        send(stream, data)
        got, closed = read(stream, seconds)
    return answers(got), closed, got


options, arena, chance = arguments()
key = open(arena.key, "rb").read().strip()
figures = {"heads": 0, "smuggled": 0, "borne": 0, "unreached": 0, "leaked": 0, "origins": 0, "let_in": 0}
for address, tls in ((arena.app_address, arena.tls), (("127.0.0.1", arena.admin), False)):
    for name, data in REFUSED.items():
        statuses, closed, _ = ask(address, tls, data, 1.5)
        figures["heads"] += 1
        # A second answer is a request that hid; an open connection would take the next octets for one.
        if len(statuses) > 1:
            figures["smuggled"] += 1
            print("smuggled:", name, statuses, address[1] == arena.app, file=sys.stderr)
        elif not closed or (statuses and statuses[0] // 100 not in (4, 5)):
            figures["borne"] += 1
            print("borne:", name, statuses, closed, address[1] == arena.app, file=sys.stderr)
    for path in PATHS:
        _, _, got = ask(address, tls, get(path, close=True))
        figures["leaked"] += 1 if key in got or b"root:" in got else 0
for origin in ORIGINS:
    stream = connect(arena.app_address, arena.stranger(), arena.tls)
    send(stream, upgrade_request(more=[f"Origin: {origin}"]))
    got, closed = read(stream, 1.5, lambda data: b"\r\n\r\n" in data)
    stream.close()
    figures["origins"] += 1
    statuses = answers(got)
    if statuses[:1] != [403]:
        figures["let_in"] += 1
        print("origin:", origin[:40], len(origin), statuses, closed, file=sys.stderr)
report(**figures)
