"""Name look-ups while the name servers say nothing: how many threads wait for them."""
from phones import *

options, arena, chance = arguments()


def threads():
    try:
        return len(os.listdir(f"/proc/{arena.pid}/task"))
    except OSError:
        return 0


before, most, figures = threads(), 0, {"asked": 0, "taken": 0}
stream, frames, _ = log_in(arena, "mallory", "good", timeout=5)
trunk, until, live = Trunk(arena), time.monotonic() + options.seconds, None
while time.monotonic() < until:
    trunk.send(trunk.request("INVITE", "+15551230003", sdp=offer("127.0.0.1", 30_014)))
    end, live = time.monotonic() + 2, None
    while live is None and time.monotonic() < end:
        live = next((call["call"] for call in calls_of(arena, "mallory") if call["state"] != "ended"), None)
    for _ in range(20):
        answer = ask(arena, f"/v1/calls/{live}/stream", "calls", "POST", {"url": f"wss://bot{figures['asked']}.trusted.example/call"}, source=arena.stranger())
        figures["asked"] += 1
        figures["taken"] += 1 if answer.status == 202 else 0
        most = max(most, threads())
        time.sleep(0.005)
        if answer.status in (202, 404, 409):
            break
    hang_up(arena, "mallory")
time.sleep(0.5)
hang_up(arena, "mallory")
stream.close()
report(**figures, threads_before=before, threads_more=max(0, most - before), crashed=0 if arena.alive() else 1)
