"""`POST /v1/calls/ID/stream` toward hosts that only the gateway reaches: its own ports, this machine in every spelling, the network's own
addresses. Nothing connects, and nothing is taken."""
from phones import *

options, arena, chance = arguments()
taps = []
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    tap = socket.socket(family, socket.SOCK_STREAM)
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    tap.bind((host, taps[0].getsockname()[1] if taps else 0))
    tap.listen(50)
    tap.setblocking(False)
    taps.append(tap)
port = taps[0].getsockname()[1]
HOSTS = ["localhost", "localhost.", "LOCALHOST", "ip6-localhost", "127.0.0.1", "127.1", "127.0.0.2", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1",
         "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "169.254.169.254", "[fe80::1]", "10.0.0.1", "192.168.0.1",
         "[fd00:adbe:ef::1]", "trusted.example@127.0.0.1", "127.0.0.1%2f.trusted.example", socket.gethostname()]
URLS = [f"{scheme}://{host}:{at}/call" for host in HOSTS for scheme, at in (("ws", port), ("wss", port))]
URLS += [f"ws://{host}:{arena.admin}/v1/calls" for host in ("localhost", "127.0.0.1", "[::1]")] + ["ws://localhost:1/", "wss://127.0.0.1:22/", "http://127.0.0.1/", "file:///etc/passwd", "wss:///x", "wss://"]
figures = {"asked": 0, "taken": 0, "reached": 0, "odd": 0}


def reached():
    count = 0
    for tap in taps:
        try:
            while True:
                tap.accept()[0].close()
                count += 1
        except BlockingIOError:
            pass
    return count


stream, frames, _ = log_in(arena, "mallory", "good", timeout=5)
trunk, live = Trunk(arena), None
for url in URLS:
    # the stream takes the call from the devices, so the next one needs another
    if live is None or not any(call["call"] == live for call in calls_of(arena, "mallory")):
        trunk.send(trunk.request("INVITE", "+15551230003", sdp=offer("127.0.0.1", 30_006)))
        end, live = time.monotonic() + 5, None
        while live is None and time.monotonic() < end:
            live = next((call["call"] for call in calls_of(arena, "mallory")), None)
    answer = ask(arena, f"/v1/calls/{live}/stream", "calls", "POST", {"url": url, "format": "mulaw"})
    figures["asked"] += 1
    figures["taken"] += 1 if answer.status == 202 else 0
    figures["odd"] += 0 if answer.status in (400, 403, 422) and answer.is_problem else 1
    time.sleep(0.1)
    came = reached()
    figures["reached"] += came
    if came or answer.status not in (400, 403, 422):
        print(url, answer.status, came, file=sys.stderr)
time.sleep(2)
figures["reached"] += reached()
hang_up(arena, "mallory")
stream.close()
report(**figures, crashed=0 if arena.alive() else 1)
