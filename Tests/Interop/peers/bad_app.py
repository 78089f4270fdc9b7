"""An app that behaves badly at the WebSocket. Prints one JSON object a line.

logins: a hello with every kind of bad token, each on its own connection; says what came back.
frames: malformed, oversize, binary and wrong first messages, each on its own connection.
"""
import argparse, asyncio, base64, hashlib, hmac, json, time, uuid
import websockets

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["logins", "frames"])
parser.add_argument("--url", required=True)
parser.add_argument("--key", required=True, help="the file with the real HS256 key")
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
    '{"t":"media.ready","seq":3,"call":"%s","d":{"gen":-1}}' % uuid.uuid4(), '{"t":"ice.cand","seq":4,"d":{}}',
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


asyncio.run({"logins": logins, "frames": frames}[options.what]())
say("done")
