"""Apps that send and never read: each logs in, then asks for a pong again and again until the gateway lets go of it.

Prints {"event": "deaf", "cut": how many were cut, "sent": bytes} at the end.
"""
import argparse, asyncio, json, os, socket, struct, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--token", action="append", required=True, help="user token of device dN, in their order from 0")
parser.add_argument("--seconds", type=float, default=10)
options = parser.parse_args()


def frame(text):
    data, mask = text.encode(), os.urandom(4)
    size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(data))
    return b"\x81" + size + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))


async def deaf(number, token):
    loop = asyncio.get_running_loop()
    end = socket.socket()
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end.setblocking(False)
    await loop.sock_connect(end, ("127.0.0.1", options.port))
    await loop.sock_sendall(end, (
        f"GET /v1/connect HTTP/1.1\r\nHost: 127.0.0.1:{options.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: trunkline.v1\r\n\r\n").encode())
    hello = {"t": "hello", "id": "00000000-0000-4000-8000-%012d" % number, "d": {"auth": token, "device": {"id": f"d{number}"}}}
    await loop.sock_sendall(end, frame(json.dumps(hello)))
    flood, sent, stop = frame('{"t":"ping"}') * 200, 0, time.monotonic() + options.seconds
    try:
        while time.monotonic() < stop:
            # what does not fit within a second will not: the gateway has stopped reading from here
            await asyncio.wait_for(loop.sock_sendall(end, flood), 1)
            sent += len(flood)
            await asyncio.sleep(0.01)
    except asyncio.TimeoutError:
        try:
            while time.monotonic() < stop:
                await asyncio.wait_for(loop.sock_sendall(end, flood), 1)
        except asyncio.TimeoutError:
            pass
        except OSError:
            return True, sent
    except OSError:
        return True, sent
    return False, sent


async def main():
    results = await asyncio.gather(*(deaf(number, token) for number, token in enumerate(options.token)))
    print(json.dumps({"event": "deaf", "cut": sum(cut for cut, _ in results), "sent": sum(sent for _, sent in results)}), flush=True)


asyncio.run(main())
