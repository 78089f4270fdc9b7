"""app_phone.py that sends a bad ClientHello before its good one, from the same address. The first argument says which; `flood` are thousands of
true ones, each of another client, for 4 s."""
import asyncio, os, random, runpy, ssl, struct, sys, time
import aiortc.rtcdtlstransport as dtls
from OpenSSL import SSL

kind = sys.argv.pop(1)
chance = random.Random(7)
honest = dtls.RTCDtlsTransport._write_ssl
unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE


def record(body, epoch=0, sequence=0, content=22, version=0xFEFD):
    return struct.pack("!BHHIHH", content, version, epoch, 0, sequence, len(body)) + body


def other_hello():
    """A true ClientHello of somebody else."""
    context = SSL.Context(SSL.DTLS_METHOD)
    connection = SSL.Connection(context)
    connection.set_connect_state()
    try:
        connection.do_handshake()
    except SSL.Error:
        pass
    return connection.bio_read(1500)


def early():
    hello = other_hello()
    if kind == "truncated":
        return [hello[: len(hello) // 2], record(hello[13 : len(hello) // 2])]
    if kind == "garbage":
        return [record(bytes(chance.randrange(256) for _ in range(150)), content=content) for content in (22, 22, 23, 20)]
    if kind == "version":
        return [hello[:1] + b"\xfe\xff" + hello[3:25] + b"\xfe\xff" + hello[27:]]
    if kind == "other":
        return [hello, hello]
    if kind == "fragment":
        body = hello[13:]
        return [record(body[:1] + struct.pack("!I", 60_000)[1:] + body[4:6] + b"\x00\x00\x00" + struct.pack("!I", 40)[1:] + body[12:52])]
    return [record(b"\x02\x28", content=21), record(b"\x01\x00", content=21)]


async def flood(self):
    hellos, sent, end = [other_hello() for _ in range(100)], 0, time.monotonic() + 4
    while time.monotonic() < end:
        for data in hellos:
            await self.transport._send(data)
        sent += len(hellos)
        await asyncio.sleep(0.01)
    print('{"event": "flooded", "sent": %d}' % sent, flush=True)


async def write(self):
    if not hasattr(self, "began"):
        self.began = True
        if kind == "flood":
            await flood(self)
        else:
            for data in early():
                await self.transport._send(data)
    await honest(self)


dtls.RTCDtlsTransport._write_ssl = write
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "peers")
sys.path.insert(0, folder)
import websockets

connect = websockets.connect
websockets.connect = lambda url, **more: connect(url, **more, **({"ssl": unverified} if url.startswith("wss") else {}))
runpy.run_path(os.path.join(folder, "app_phone.py"), run_name="__main__")
