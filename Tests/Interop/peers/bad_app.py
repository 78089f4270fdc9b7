"""An app that behaves badly at the WebSocket. Prints one JSON object a line.

logins: a hello with every kind of bad token, each on its own connection; says what came back.
frames: malformed, oversize, binary and wrong first messages, each on its own connection.
puts: device.put of every wrong kind on one connection of alice's device, then device.del of the same id by bob.
wakes: forged, foreign and late wake tokens made from a good one, then the good one twice.
"""
import argparse, asyncio, base64, hashlib, hmac, json, time, uuid
import websockets

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["logins", "frames", "puts", "wakes"])
parser.add_argument("--url", required=True)
parser.add_argument("--key", required=True, help="the file with the real HS256 key")
parser.add_argument("--wake", help="a good wake token of alice's device cell")
options = parser.parse_args()
KEY = open(options.key, "rb").read().rstrip()


def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(head=None, key=KEY, **changes):
    claims = {"sub": "alice", "dev": "bad", "aud": "trunkline", "exp": int(time.time()) + 600}
    claims.update(changes)
    claims = {name: value for name, value in claims.items() if value is not None}
    head = {"alg": "HS256", "typ": "JWT", **(head or {})}
    signed = b64(json.dumps(head).encode()) + "." + b64(json.dumps(claims).encode())
    return signed + "." + (b64(hmac.new(key, signed.encode(), hashlib.sha256).digest()) if key else "")


def hello(auth, device="bad"):
    body = {"auth": auth, "device": {"id": device, "platform": "linux"}, "caps": [], "state": "fg"}
    return json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": body})


def tampered():
    head, claims, signature = token().split(".")
    return head + "." + b64(json.dumps({"sub": "bob", "dev": "bad", "aud": "trunkline", "exp": int(time.time()) + 600}).encode()) + "." + signature


LOGINS = {
    "good": lambda: hello(token()),
    "expired": lambda: hello(token(exp=int(time.time()) - 600)),
    "no exp": lambda: hello(token(exp=None)),
    "forged": lambda: hello(token(key=b"another key of thirty-two bytes!")),
    "tampered": lambda: hello(tampered()),
    "alg none": lambda: hello(token({"alg": "none"}, key=b"")),
    "alg None, signed": lambda: hello(token({"alg": "None"})),
    "alg HS512": lambda: hello(token({"alg": "HS512"})),
    "alg RS256": lambda: hello(token({"alg": "RS256"})),
    "critical": lambda: hello(token({"crit": ["b64"], "b64": False})),
    "audience": lambda: hello(token(aud="somebody else")),
    "device": lambda: hello(token(dev="another")),
    "nobody": lambda: hello(token(sub="mallory")),
    "not a token": lambda: hello("x.y"),
    "empty": lambda: hello(""),
    "huge": lambda: hello("A" * 60000),
    "resume": lambda: json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": {"resume": {"sid": "made-up", "token": "made-up", "lastSeq": 0}}}),
}


async def answer(socket):
    """The first message that comes, and how the socket was closed."""
    first = None
    try:
        async with asyncio.timeout(7):
            async for text in socket:
                first = first or json.loads(text)
                if first["t"] == "welcome":
                    return first, None
    except (websockets.ConnectionClosed, TimeoutError):
        pass
    return first, socket.close_code


async def connect():
    return await websockets.connect(options.url, subprotocols=["trunkline.v1"], ping_interval=None, max_size=None)


async def logins():
    for name, make in LOGINS.items():
        socket = await connect()
        await socket.send(make())
        first, code = await answer(socket)
        body = (first or {}).get("d", {})
        say("login", name=name, got=(first or {}).get("t"), code=body.get("code"), fatal=body.get("fatal"), close=code)
        await socket.close()


FRAMES = {
    "not json": "{",
    "array": "[]",
    "number": "7",
    "no t": "{}",
    "t is a number": '{"t":7}',
    "too deep": '{"t":"x","d":' + '{"d":' * 40 + "1" + "}" * 40 + "}",
    "deep array": "[" * 5000,
    "huge": json.dumps({"t": "hello", "d": {"x": "y" * 70000}}),
    "binary": b"\x00\x01\x02",
    "other first": '{"t":"ping"}',
    "lone surrogate": '{"t":"\\ud800"}',
    "big numbers": '{"t":"hello","seq":1e400,"ack":-99999999999999999999,"d":{}}',
}
# After a good login: each must leave the session or close it, never more.
AFTER = [
    '{"t":"nonsense","id":"7"}', '{"t":"call.answer","id":"00000000-0000-0000-0000-000000000000","seq":1,"call":"x","d":{}}',
    '{"t":"call.end","id":"%s","seq":1,"call":"%s","d":{"reason":"localEnd"}}' % (uuid.uuid4(), uuid.uuid4()),
    '{"t":"call.start","id":"%s","seq":2,"call":"%s","d":{"to":{"k":"phone","h":"+1"},"sdp":"v=0\\r\\nm=junk","gen":1}}' % (uuid.uuid4(), uuid.uuid4()),
    '{"t":"media.ready","seq":3,"call":"%s","d":{"gen":-1}}' % uuid.uuid4(), '{"t":"media.active","seq":4,"d":{}}',
    '{"t":"ack","ack":9223372036854775807}', '{"t":"call.dtmf","id":"%s","seq":99,"d":{}}' % uuid.uuid4(),
]


async def frames():
    for name, frame in FRAMES.items():
        socket = await connect()
        try:
            await socket.send(frame)
        except websockets.ConnectionClosed:
            pass
        first, code = await answer(socket)
        say("frame", name=name, got=(first or {}).get("t"), close=code)
        await socket.close()
    for index, frame in enumerate(AFTER):
        socket = await connect()
        await socket.send(hello(token()))
        first, _ = await answer(socket)
        await socket.send(frame)
        await socket.send('{"t":"ping"}')
        code = None
        try:
            async with asyncio.timeout(3):
                async for text in socket:
                    if json.loads(text)["t"] == "pong":
                        break
                else:
                    code = socket.close_code
        except (websockets.ConnectionClosed, TimeoutError):
            code = socket.close_code or 0
        say("after", index=index, close=code)
        await socket.close()


GOOD = {"kind": "apns-voip", "token": "ab" * 32, "env": "production", "topic": "org.example.app.voip"}
PUTS = {
    "no kind": {"push": {"token": "ab" * 32}},
    "unknown kind": {"push": {**GOOD, "kind": "pigeon"}},
    "token is a number": {"push": {**GOOD, "token": 7}},
    "token is empty": {"push": {**GOOD, "token": ""}},
    "token is no hex": {"push": {**GOOD, "token": "zz" * 32}},
    "token too long": {"push": {**GOOD, "token": "ab" * 5000}},
    "token with a line end": {"push": {**GOOD, "token": "ab\r\nx: y"}},
    "env": {"push": {**GOOD, "env": "moon"}},
    "topic with a line end": {"push": {**GOOD, "topic": "a\r\nx: y.voip"}},
    "topic without .voip": {"push": {**GOOD, "topic": "org.example.app"}},
    "push is a list": {"push": [GOOD]},
    "prefs are text": {"push": GOOD, "prefs": "quiet"},
    "seal key": {"push": {**GOOD, "sealKey": "AAAA"}},
    "subscription to a file": {"push": {"kind": "webpush", "token": '{"endpoint":"file:///etc/passwd","keys":{"p256dh":"","auth":""}}'}},
}


async def login(user, device):
    socket = await connect()
    await socket.send(hello(token(sub=user, dev=device), device))
    return socket, (await answer(socket))[0]


async def ask(socket, message, body):
    await socket.send(json.dumps({"t": message, "id": str(uuid.uuid4()), "d": body}))
    async with asyncio.timeout(5):
        async for text in socket:
            if (got := json.loads(text))["t"] in ("ok", "err"):
                return got


async def puts():
    socket, _ = await login("alice", "cell")
    for name, body in PUTS.items():
        got = await ask(socket, "device.put", body)
        say("put", name=name, got=got["t"], code=got.get("d", {}).get("code"), msg=got.get("d", {}).get("msg"))
    await socket.close(1000)
    other, _ = await login("bob", "cell")
    say("deleted", got=(await ask(other, "device.del", {}))["t"])
    await other.close(1000)
    # a message beyond every bound closes its socket, and only that
    socket, _ = await login("alice", "cell")
    await socket.send(json.dumps({"t": "device.put", "id": str(uuid.uuid4()), "d": {"push": {**GOOD, "token": "ab" * 40000}}}))
    say("oversized", close=(await answer(socket))[1])


def hello_wake(wake, device="cell"):
    return json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": {"wake": wake, "device": {"id": device}, "caps": [], "state": "fg"}})


async def wakes():
    head, body, signature = options.wake.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    signed = b64(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()) + "." + body
    other = "A" if signature[5] != "A" else "B"
    bad = {
        "signature": hello_wake(f"{head}.{body}.{signature[:5]}{other}{signature[6:]}"),
        "no signature": hello_wake(f"{head}.{body}."),
        "alg none": hello_wake(b64(b'{"alg":"none"}') + "." + body + "."),
        "signed with the login key": hello_wake(signed + "." + b64(hmac.new(KEY, signed.encode(), hashlib.sha256).digest())),
        "other claims": hello_wake(f"{head}.{b64(json.dumps({**claims, 'extra': 1}).encode())}.{signature}"),
        "another device": hello_wake(options.wake, "tablet"),
        "as a login": hello(options.wake, "cell"),
        "a login as a wake": hello_wake(token(dev="cell")),
        "huge": hello_wake("A" * 60000),
    }
    for name, text in bad.items():
        socket = await connect()
        await socket.send(text)
        first, code = await answer(socket)
        say("wake", name=name, got=(first or {}).get("t"), close=code)
        await socket.close()
    sockets = []
    for turn in (1, 2):
        sockets.append(await connect())
        await sockets[-1].send(hello_wake(options.wake))
        first, _ = await answer(sockets[-1])
        say("good", turn=turn, got=first["t"], calls=[call["call"] for call in first["d"].get("calls") or []])
    async with asyncio.timeout(5):
        await sockets[0].wait_closed()
    say("replaced", close=sockets[0].close_code)
    await sockets[1].close(1000)


asyncio.run({"logins": logins, "frames": frames, "puts": puts, "wakes": wakes}[options.what]())
say("done")
