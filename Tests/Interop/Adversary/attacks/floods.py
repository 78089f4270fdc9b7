"""Floods for --seconds at --rate: SIP junk, SIP requests of strangers, STUN, ClientHellos, RTP at trunk ports, TCP and TLS connections.

With --control the same octets go to a port where nobody listens.
"""
from common import *

options, arena, chance = arguments(("--what", {"required": True}), ("--rate", {"type": float, "default": 20_000}),
                                    ("--sources", {"type": int, "default": 1}))
noise = lambda size: chance.randbytes(size)
where = lambda port: ("127.0.0.1", DEAD_PORT if options.control else port)
STRANGER = "127.0.0.66"


def sip_junk():
    good = Trunk(arena, STRANGER).request("OPTIONS").encode()
    out = [noise(chance.randrange(1, 600)) for _ in range(20)] + [good[: chance.randrange(len(good))] for _ in range(20)]
    out += [b"\r\n" * chance.randrange(1, 20), b"SIP/2.0 200 OK\r\n\r\n", b"INVITE " + b"A" * 1_200]
    return [(arena.sip, data) for data in out]


def sip_requests():
    trunk = Trunk(arena, STRANGER)
    methods = ["INVITE", "OPTIONS", "REGISTER", "BYE", "CANCEL"]
    return [(arena.sip, trunk.request(methods[n % 5], sdp=offer(STRANGER, 9) if n % 5 == 0 else "").encode()) for n in range(400)]


def stun():
    out = []
    for _ in range(400):
        user, ice = noise(4).hex() + ":" + noise(4).hex(), noise(12)
        attributes = struct.pack("!HH", 6, len(user)) + user.encode() + b"\x00" * (-len(user) % 4) + struct.pack("!HHI", 0x24, 4, 1) + struct.pack("!HH", 8, 20) + noise(20)
        out.append(struct.pack("!HHI", 1, len(attributes), 0x2112A442) + ice + attributes)
    return [(arena.media + n % 2, data) for n, data in enumerate(out)]


def hellos():
    body = b"\xfe\xfd" + noise(32) + b"\x00\x00" + struct.pack("!H", 4) + b"\xc0\x2b\xc0\x2f" + b"\x01\x00"
    shake = b"\x01" + struct.pack("!I", len(body))[1:] + b"\x00\x00\x00\x00\x00" + struct.pack("!I", len(body))[1:] + body
    out = [struct.pack("!BHHIHH", 22, 0xFEFD, 0, 0, n, len(shake)) + shake for n in range(100)]
    return [(arena.media + n % 2, data) for n, data in enumerate(out)]


def media():
    first = arena.trunk_ports[0]
    return [(first + 2 * (n % 8) + n % 2, rtp(chance.randrange(2**32), n, payload=noise(160))) for n in range(400)]


def datagrams(make):
    """From 64 sockets of strangers."""
    sockets = [udp(f"127.0.6.{number + 1}") for number in range(64)]
    packets = [(where(port), data) for port, data in make()]

    def one(index):
        try:
            sockets[index % 64].sendto(packets[index % len(packets)][1], packets[index % len(packets)][0])
        except OSError:
            pass

    return paced(options.rate, options.seconds, one)


def streams(port, data):
    """Connections from `--sources` addresses, as fast as they come, each saying `data` and cut. The trunk's are its own."""
    made, end = 0, time.monotonic() + options.seconds
    while time.monotonic() < end and arena.alive():
        batch = []
        for _ in range(50):
            stream = socket.socket()
            stream.setblocking(False)
            if port != arena.sip:
                stream.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
                stream.bind((f"127.0.9.{(made + len(batch)) % options.sources + 1}", 0))
            stream.connect_ex(where(port))
            batch.append(stream)
        ready = select.select([], batch, [], 0.2)[1]
        for stream in batch:
            if stream in ready and data:
                try:
                    stream.send(data)
                except OSError:
                    pass
            made += 1
        time.sleep(len(batch) / options.rate)
        for stream in batch:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
    return made


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


began = arena.thread_seconds()
time.sleep(2)
calls = (sum(arena.thread_seconds().values()) - sum(began.values())) / 2  # what a second of the calls costs
began = arena.thread_seconds()
kinds = {"sip_junk": sip_junk, "sip_requests": sip_requests, "stun": stun, "hellos": hellos, "media": media}
if options.what in kinds:
    sent = datagrams(kinds[options.what])
elif options.what == "connections":
    sent = streams(arena.app, b"")
elif options.what == "sip_connections":
    sent = streams(arena.sip, b"INVITE sip:")
else:
    sent = streams(arena.app if arena.tls else arena.siptls, client_hello())
time.sleep(0.2)
after = arena.thread_seconds()
cost = max(0.0, sum(after.values()) - sum(began.values()) - calls * (options.seconds + 0.2))
report(sent=sent, flood_cpu=round(cost / options.seconds, 3), each_us=round(cost / max(1, sent) * 1e6, 2), crashed=0 if arena.alive() else 1)
