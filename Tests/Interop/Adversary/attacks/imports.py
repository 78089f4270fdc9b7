"""Sixteen imports of contacts at once, each as long as one may be: memory, and that each is answered."""
from api import *

options, arena, chance = arguments()
size = arena.fill.get("import", 54_000_000)
lines, length, number = [b"number,label,kind\n"], 18, 0
while length < size:
    line = f"+1558{number:07},{'A long name of somebody ' * 2}{number},\n".encode()
    lines.append(line)
    length += len(line)
    number += 1
body = b"".join(lines)
resident, most, done = arena.resident(), [0.0], threading.Event()


def look():
    while not done.is_set():
        most[0] = max(most[0], arena.resident() - resident)
        time.sleep(0.05)


looker = threading.Thread(target=look)
looker.start()
got = at_once(16, lambda index: ask(arena, f"/v1/directory/user:import{index}", "users", "PUT", body, ["Content-Type: text/csv"], seconds=150, source=f"127.0.9.{index // 8 + 1}"))
done.set()
looker.join()
statuses = [answer.status for answer in got]
report(
    taken=statuses.count(200), refused=statuses.count(429), odd=len([1 for status in statuses if status not in (200, 429)]), body_mb=round(len(body) / 1e6, 1),
    memory_mb=round(most[0], 1), memory_bodies=round(most[0] * 1e6 / len(body), 1), contacts=number, crashed=0 if arena.alive() else 1)
