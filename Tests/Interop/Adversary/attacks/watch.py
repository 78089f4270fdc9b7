"""Stands beside an attack as an honest user: logs in every quarter of a second, asks /healthz, watches the process. Ends when its input
does, and prints its figures."""
from common import *

options, arena, chance = arguments()
try:
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
except OSError:
    pass  # late on a busy machine, then
logins, failed, unhealthy, number = [], 0, 0, 0
began, threads, least = time.monotonic(), arena.thread_seconds(), arena.resident()
most = least
print(json.dumps({"event": "watching"}), flush=True)
while not select.select([sys.stdin], [], [], 0.25)[0] or number < 3:
    if not arena.alive():
        break
    number += 1
    before = time.monotonic()
    try:
        stream, _, _ = log_in(arena, "honest", f"watch{number % 4}", timeout=3.0)
        logins.append((time.monotonic() - before) * 1000)
        send(stream, frame(struct.pack("!H", 1000), 8))
        stream.close()
    except (OSError, ValueError) as problem:
        failed += 1
        print("login:", repr(problem), file=sys.stderr)
    if quick_status(("127.0.0.1", arena.admin)) != 200:
        unhealthy += 1
    most = max(most, arena.resident())
seconds = time.monotonic() - began
after = arena.thread_seconds()
shares = {name: round((after[name] - threads.get(name, 0)) / seconds, 3) for name in after}
busiest = {name: share for name, share in sorted(shares.items(), key=lambda pair: -pair[1])[:4]}
logins.sort()
report(
    logins=len(logins), login_failed=failed, login_ms=round(logins[len(logins) * 9 // 10], 1) if logins else 9999.0,
    login_ms_most=round(logins[-1], 1) if logins else 9999.0, unhealthy=unhealthy, cpu=round(sum(shares.values()), 3), threads=busiest,
    grown_mb=round(most - least, 1))
