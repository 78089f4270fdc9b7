"""X-Forwarded-For from an address that is no proxy: it must not count as another address."""
from common import *

options, arena, chance = arguments()
source, held, refused = "127.0.4.1", [], 0
for number in range(300):
    try:
        more = [f"X-Forwarded-For: 10.{number // 250}.0.{number % 250 + 1}", f"Forwarded: for=10.9.{number // 250}.{number % 250 + 1}"]
        stream, _ = web_socket(arena, source, more=more)
        held.append(stream)
    except OSError:
        refused += 1
figures = {"asked": 300, "held": len(held), "refused": refused, "crashed": 0 if arena.alive() else 1}
for stream in held:
    stream.close()
report(**figures)
