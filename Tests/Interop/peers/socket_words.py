"""A socket that says one hello and keeps what it hears: JSON commands on standard input, JSON answers on standard output.

{"id": 1, "urls": [URL, ...], "hello": {...}, "until": "call.gone", "seconds": 2} says it at all of them at once. The answer has a row for
each: the messages in their order up to one of type `until`, and the code of the close if it closed.
"""
import asyncio, json, sys, time, uuid
import websockets


async def row(url, hello, until, seconds):
    heard, began, code = [], time.monotonic(), None
    try:
        async with websockets.connect(url, subprotocols=["trunkline.v1"], ping_interval=None) as socket:
            await socket.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": hello}))
            try:
                while not (heard and heard[-1]["t"] == until):
                    heard.append(json.loads(await asyncio.wait_for(socket.recv(), max(0, began + seconds - time.monotonic()))))
            except websockets.ConnectionClosed:
                code = socket.close_code
            except asyncio.TimeoutError:
                pass
    except OSError as error:
        return {"url": url, "failed": str(error)}
    return {"url": url, "messages": heard, "code": code, "ms": int((time.monotonic() - began) * 1000)}


async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps({"event": "ready"}), flush=True)
    while line := await reader.readline():
        command = json.loads(line)
        rows = await asyncio.gather(*[
            row(url, command["hello"], command.get("until"), command.get("seconds", 2)) for url in command["urls"]])
        print(json.dumps({"event": "answer", "id": command["id"], "rows": rows}), flush=True)


asyncio.run(main())
