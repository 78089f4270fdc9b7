"""Connections to the admin port that nobody with a token made, kept alive from one address: probes, metrics and the API have theirs."""
from api import *

options, arena, chance = arguments()
ATTACKER = "127.0.6.1"
held = []


def keep():
    """As many as there is room for, one after the other; each asks again before it is idle for long."""
    for stream in list(held):
        if not send(stream, get("/")) or not read(stream, 1, whole)[0]:
            held.remove(stream)
            stream.close()
    while len(held) < 80:
        try:
            stream = connect(("127.0.0.1", arena.admin), ATTACKER, timeout=1)
        except OSError:
            break
        if not send(stream, get("/")) or not read(stream, 1, whole)[0]:
            stream.close()
            break
        held.append(stream)


figures = {"held": 0, "probes": 0, "probes_failed": 0, "api": 0, "api_failed": 0}
until = time.monotonic() + options.seconds
while time.monotonic() < until:
    keep()
    figures["held"] = max(figures["held"], len(held))
    for path, token in (("/healthz", None), ("/readyz", "read"), ("/metrics", "read")):
        figures["probes"] += 1
        figures["probes_failed"] += 0 if ask(arena, path, token, seconds=3).status == 200 else 1
    # a program with a token, from elsewhere and from the same address
    for source in ("127.0.6.2", ATTACKER):
        figures["api"] += 1
        status = ask(arena, "/v1/calls", "read", seconds=3, source=source).status
        if status != 200:
            figures["api_failed"] += 1
            print("from", source, status, file=sys.stderr)
    time.sleep(0.5)
report(**figures, crashed=0 if arena.alive() else 1)
