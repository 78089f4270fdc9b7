"""Users of many regions, each with a device that is connected, for whom a program dials: numbers as they are dialled where the user is.

    dial_numbers.py --admin PORT --app PORT --key FILE --calls 200 REGION…

Prints {"event": "dialled", "user", "text", "expected": E.164 by phonenumbers} for each call, then {"event": "done"}. The user of DE is `de`. Calls of one
round, one of each user, are over before the next begins.
"""
import argparse, asyncio, base64, hashlib, hmac, json, time, urllib.request, uuid
import phonenumbers as p
import websockets

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--admin", type=int, required=True)
parser.add_argument("--app", type=int, required=True)
parser.add_argument("--key", required=True)
parser.add_argument("--calls", type=int, required=True)
parser.add_argument("regions", nargs="+")
options = parser.parse_args()
key = open(options.key).read().strip()


def token(user):
    encode = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=")
    claims = {"aud": "trunkline", "exp": int(time.time()) + 3600, "sub": user, "dev": "d"}
    message = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
    return (message + b"." + encode(hmac.new(key.encode(), message, hashlib.sha256).digest())).decode()


def ask(method, path, body=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{options.admin}{path}", method=method, data=json.dumps(body).encode() if body else None,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def texts(region):
    """National and international spellings, more of them than there are rounds."""
    kinds = [p.PhoneNumberType.FIXED_LINE, p.PhoneNumberType.MOBILE, p.PhoneNumberType.TOLL_FREE]
    own = [p.example_number_for_type(region, kind) for kind in kinds]
    for number in own:
        if number:
            yield p.format_number(number, p.PhoneNumberFormat.NATIONAL)
    for place, other in enumerate(options.regions):
        number = p.example_number_for_type(other, kinds[place % 2])
        if other != region and number:
            yield p.format_out_of_country_calling_number(number, region)
            yield p.format_number(number, p.PhoneNumberFormat.INTERNATIONAL)


async def connect(user):
    socket = await websockets.connect(f"ws://127.0.0.1:{options.app}/v1/connect", subprotocols=["trunkline.v1"], ping_interval=None)
    hello = {"auth": token(user), "device": {"id": "d", "platform": "linux", "sdk": "test"}, "caps": [], "state": "fg"}
    await socket.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": hello}))
    while json.loads(await socket.recv())["t"] != "welcome":
        pass

    async def live():
        async for text in socket:
            if json.loads(text)["t"] == "ping":
                await socket.send('{"t":"pong"}')

    return asyncio.ensure_future(live())


async def main():
    loop = asyncio.get_running_loop()
    devices = [await connect(region.lower()) for region in options.regions]
    spellings = {region: texts(region) for region in options.regions}
    made = 0
    while made < options.calls:
        for region in options.regions[: options.calls - made]:
            text = next(spellings[region])
            expected = p.format_number(p.parse(text, region), p.PhoneNumberFormat.E164)
            body = {"user": region.lower(), "to": text, "first": "number"}
            await loop.run_in_executor(None, ask, "POST", "/v1/calls", body)
            print(json.dumps({"event": "dialled", "user": region.lower(), "text": text, "expected": expected}), flush=True)
            made += 1
        deadline = time.monotonic() + 20
        while (await loop.run_in_executor(None, ask, "GET", "/v1/calls"))["calls"]:
            if time.monotonic() > deadline:
                raise SystemExit("calls of a round are not over")
            await asyncio.sleep(0.05)
    print(json.dumps({"event": "done", "devices": len(devices)}), flush=True)


asyncio.run(main())
