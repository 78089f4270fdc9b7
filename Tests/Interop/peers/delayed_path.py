"""A path with delay between an app and the gateway: its WebSocket and its media, each packet half the round trip later, in order.

The gateway's media port in what it sends on the socket is replaced by this relay's, of the same length: frames keep their size.
Prints one JSON object a line: {"event": "listening"}.
"""
import argparse, asyncio, json, socket, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--listen", type=int, required=True, help="TCP port for the app")
parser.add_argument("--app", type=int, required=True, help="the gateway's TCP port")
parser.add_argument("--media", type=int, required=True, help="the gateway's first media port, five digits")
parser.add_argument("--threads", type=int, default=2, help="so many media ports in a row")
parser.add_argument("--rtt", type=float, default=100, help="milliseconds")
options = parser.parse_args()
delay = options.rtt / 2000
HOST = "127.0.0.1"


class Upstream(asyncio.DatagramProtocol):
    """Toward the gateway, one for each address of the app."""

    def __init__(self, relay, app):
        self.relay, self.app = relay, app

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        later(self.relay.transport, data, self.app)


class Relay(asyncio.DatagramProtocol):
    """Toward the app, in the place of one media port of the gateway."""

    def __init__(self, port):
        self.port, self.upstreams = port, {}

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        if address not in self.upstreams:
            self.upstreams[address] = asyncio.ensure_future(asyncio.get_running_loop().create_datagram_endpoint(
                lambda: Upstream(self, address), local_addr=(HOST, 0)))
        task = self.upstreams[address]
        task.add_done_callback(lambda done: later(done.result()[0], data, (HOST, self.port)))


def later(transport, data, address):
    asyncio.get_running_loop().call_later(delay, lambda: transport.is_closing() or transport.sendto(data, address))


async def pump(reader, writer, replace):
    """Bytes in order, each `delay` after it came."""
    queue = asyncio.Queue()

    async def deliver():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - time.monotonic()))
            if not data:
                return writer.close()
            writer.write(data)

    task = asyncio.ensure_future(deliver())
    kept = b""
    while data := await reader.read(65536):
        data = kept + data
        for old, new in replace:
            data = data.replace(old, new)
        # A pattern that is cut at the end of what came waits for the rest.
        cut = max((n for old, _ in replace for n in range(1, len(old)) if data.endswith(old[:n])), default=0)
        cut = cut if cut > 1 else 0
        kept, data = data[len(data) - cut:], data[: len(data) - cut]
        queue.put_nowait((time.monotonic() + delay, data)) if data else None
    queue.put_nowait((time.monotonic() + delay, b""))
    await task


async def main():
    loop = asyncio.get_running_loop()
    replace = []
    for port in range(options.media, options.media + options.threads):
        _, relay = await loop.create_datagram_endpoint(lambda: Relay(port), local_addr=(HOST, five_digits()))
        here = relay.transport.get_extra_info("sockname")[1]
        replace.append((f" {port} typ host".encode(), f" {here} typ host".encode()))

    async def accepted(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(HOST, options.app)
        for each in (writer, far_writer):
            each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(pump(reader, far_writer, []), pump(far_reader, writer, replace), return_exceptions=True)

    server = await asyncio.start_server(accepted, HOST, options.listen)
    print(json.dumps({"event": "listening"}), flush=True)
    async with server:
        await server.serve_forever()


def five_digits():
    """A free port of five digits, like the gateway's."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
        if port >= 10000:
            return port


asyncio.run(main())
