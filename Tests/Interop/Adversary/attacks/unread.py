"""Clients that ask for the pages over and over and read nothing: what waits for them is bounded."""
from common import *

options, arena, chance = arguments()
block = get("/") * 100
held, asked, resident = [], 0, arena.resident()
for number in range(150):
    try:
        stream = connect(arena.app_address, f"127.0.7.{number % 50 + 1}", arena.tls)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stream.setblocking(False)
        held.append([stream, block])
    except OSError:
        pass
begin, most = time.monotonic(), resident
while time.monotonic() - begin < options.seconds:
    for one in held:
        try:
            count = one[0].send(one[1])
            one[1] = one[1][count:] + block[: count] if count < len(one[1]) else block
            asked += count * 100 // len(block)
        except OSError:
            pass
    most = max(most, arena.resident())
    time.sleep(0.05)
report(held=len(held), asked=asked, grown_each_kb=round((most - resident) * 1024 / max(1, len(held)), 1), crashed=0 if arena.alive() else 1)
