"""1 to 5 requests in one connection, with and without bodies, chunked, cut anywhere. Each is answered in its order, or the connection ends with
a 4xx; nothing spins. `--all` takes every order of four kinds in every split, `--seconds` bounds a sample of all kinds by seed."""
import itertools
from common import *

CHUNKED = ["Transfer-Encoding: chunked"]
REJECT = "/v1/calls/00000000-0000-4000-8000-000000000000/reject"
KINDS = {
    "page": ("GET", get("/")), "none": ("GET", get("/nothing")), "head": ("HEAD", get("/", method="HEAD")),
    "health": ("GET", get("/healthz")),
    "empty": ("POST", get(REJECT, method="POST", body=b"")), "body": ("POST", get(REJECT, method="POST", body=b'{"reason":"busy"}')),
    "long": ("POST", get(REJECT, method="POST", body=b"x" * 3_000)),
    "chunked": ("POST", get(REJECT, CHUNKED, method="POST") + b'5\r\n{"rea\r\n4\r\nson"\r\n0\r\n\r\n'),
    "no chunk": ("POST", get(REJECT, CHUNKED, method="POST") + b"0\r\n\r\n"),
    "get with body": ("GET", get("/", body=b"hello")),
}


def splits(data, chance, all):
    """Ways to cut: whole, in two at a place, in eights, octet by octet."""
    yield [data]
    places = range(1, len(data), 7) if all else [chance.randrange(1, len(data))]
    for place in places:
        yield [data[:place], data[place:]]
    step = max(1, len(data) // 8)
    yield [data[at : at + step] for at in range(0, len(data), step)]
    if len(data) < 400 or all:
        yield [data[at : at + 1] for at in range(len(data))]


def play(address, tls, names, pieces, expected):
    """What was wrong; empty if nothing."""
    try:
        stream = connect(address, arena.stranger(), tls=tls)
    except OSError:
        return "unreached"
    methods = [KINDS[name][0] for name in names]
    with stream:
        for piece in pieces:
            if not send(stream, piece):
                break
        data, closed = read(stream, 2.0, lambda data: len(answers(data, methods)) >= len(names) and -1 not in answers(data, methods))
    got = answers(data, methods)
    if len(got) > len(names) or -1 in got:
        return "garbled"
    whole = [status for status, wanted in zip(got, expected)]
    if len(got) == len(names):
        return "" if got == expected else "" if got[-1] // 100 == 4 and got[:-1] == expected[: len(got) - 1] else "wrong order"
    if not closed:
        return "unanswered"
    # Closed before all were answered: fine after a refusal, and after what its own head said would be the last.
    last = got[-1] if got else 0
    return "" if last // 100 in (4, 5) or re.search(rb"(?i)\r\nconnection: close", data) else "closed without a word"


def orders():
    for count in range(1, 6):
        yield from itertools.product(("page", "empty", "body", "chunked"), repeat=count)


options, arena, chance = arguments(("--all", {"action": "store_true"}))
ports = [(("127.0.0.1", arena.app), arena.tls), (("127.0.0.1", arena.admin), False)]
alone = {}
figures = {"sequences": 0, "wrong": 0, "unanswered": 0, "unreached": 0, "spin": 0.0}
for address, tls in ports:
    for name, (method, data) in KINDS.items():
        try:
            stream = connect(address, arena.stranger(), tls=tls)
        except OSError:
            figures["unreached"] += 1
            continue
        with stream:
            send(stream, data)
            got = answers(read(stream, 2.0, lambda data: len(answers(data, [method])) >= 1)[0], [method])
        alone[address, name] = got[0] if got else 0
        if not got:
            figures["unanswered"] += 1


def sample():
    if options.all:
        yield from orders()
    yield from [("page", "body"), ("none", "body", "page"), ("health", "long"), ("body", "body")]
    while True:
        yield tuple(chance.choice(list(KINDS)) for _ in range(chance.randrange(1, 6)))


begin = time.monotonic()
for names in sample():
    if time.monotonic() - begin > options.seconds and not options.all or figures["unanswered"] + figures["unreached"] > 5 or not arena.alive():
        break
    data = b"".join(KINDS[name][1] for name in names)
    for address, tls in ports:
        for pieces in splits(data, chance, options.all):
            wrong = play(address, tls, names, pieces, [alone.get((address, name)) for name in names])
            figures["sequences"] += 1
            if wrong:
                key = wrong if wrong in figures else "wrong"
                figures[key] += 1
                if figures[key] <= 3:
                    print(wrong, names, len(pieces), address, file=sys.stderr)
figures["crashed"] = 0 if arena.alive() else 1
figures["spin"] = arena.spinning()
report(**figures)
