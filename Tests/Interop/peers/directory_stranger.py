"""A client of trunkline.v1 that is not ours, for directory and history: says each frame of a file as it stands and prints what comes.

After `hello` each line of standard input is sent as it is; each message that comes is printed as {"event": "received", ...}.
"""
import argparse, asyncio, json, sys, uuid
import websockets

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
parser.add_argument("--token", required=True)
parser.add_argument("--device", required=True)
options = parser.parse_args()


def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with websockets.connect(options.url, subprotocols=["trunkline.v1"], ping_interval=None) as socket:
        hello = {"auth": options.token, "device": {"id": options.device}, "caps": ["media.active"]}
        await socket.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": hello}))

        async def listen():
            async for text in socket:
                message = json.loads(text)
                say("received", t=message["t"], re=message.get("re"), call=message.get("call"), d=message.get("d", {}))

        hearing = asyncio.create_task(listen())
        while line := await reader.readline():
            await socket.send(line.decode().strip())
        hearing.cancel()


asyncio.run(main())
