"""TCP connections that never say a word, from 50 IPv4 addresses and one IPv6 /56, opened again as soon as they are closed."""
from common import *


def sources():
    four = [f"127.0.1.{number}" for number in range(1, 51)]
    six = [f"fd00:adbe:ef:{0x100 + number:x}::{number + 1:x}" for number in range(256)] if arena.six else []
    return four + six


options, arena, chance = arguments(("--connections", {"type": int, "default": 5_000}))
port = DEAD_PORT if options.control else arena.app
waiting, opened, refused, most = [], 0, 0, 0
poll = select.epoll()
held = {}
all_sources = sources()
begin = time.monotonic()
index = 0
while time.monotonic() - begin < options.seconds and arena.alive():
    for _ in range(min(200, options.connections - len(held))):
        source = all_sources[index % len(all_sources)]
        index += 1
        stream = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET, socket.SOCK_STREAM)
        stream.setblocking(False)
        try:
            stream.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
            stream.bind((source, 0))
            stream.connect_ex(("::1" if ":" in source else "127.0.0.1", port))
            poll.register(stream, select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR)
            held[stream.fileno()] = stream
            opened += 1
        except OSError:
            refused += 1
            stream.close()
    for fd, _ in poll.poll(0.02, 1_000):
        poll.unregister(fd)
        held.pop(fd).close()
        refused += 1
    most = max(most, len(held))
figures = {"opened": opened, "closed_by_gateway": refused, "held_most": most, "held_end": len(held), "crashed": 0 if arena.alive() else 1}
if arena.alive():
    figures["spin"] = arena.spinning()
for stream in held.values():
    stream.close()
report(**figures)
