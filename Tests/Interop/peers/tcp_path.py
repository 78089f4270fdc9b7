"""A plain TCP path: what comes on --listen goes to --to, and back. Stopped by SIGSTOP it is a network that is gone without a word:
both ends keep their connections, and nothing moves."""
import argparse, asyncio, json

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--listen", type=int, required=True)
parser.add_argument("--to", type=int, required=True)
parser.add_argument("--host", default="127.0.0.1", help="where --to is")
parser.add_argument("--address", default="127.0.0.1", help="where --listen is")
options = parser.parse_args()


async def carry(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def accepted(reader, writer):
    onward, back = await asyncio.open_connection(options.host, options.to)
    await asyncio.gather(carry(reader, back), carry(onward, writer))


async def main():
    server = await asyncio.start_server(accepted, options.address, options.listen)
    print(json.dumps({"event": "listening"}), flush=True)
    await server.serve_forever()


asyncio.run(main())
