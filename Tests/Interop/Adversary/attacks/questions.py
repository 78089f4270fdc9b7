"""Questions that cost the asker little and the gateway much: what they take from the threads that calls need."""
from api import *

options, arena, chance = arguments(("--what", {"default": "devices"}))


def source(index):
    """Few from each address: the bounds of one address are not what this is about."""
    return f"127.0.9.{index // 8 + 1}"


def devices():
    """The devices of nobody, at the rate of one token."""
    got = at_once(20, lambda index: ask(arena, "/v1/devices?user=nobody", "slow", seconds=60, source=source(index)))
    return {"answers": len([1 for answer in got if answer.status in (200, 404, 429)]), "worst_s": round(max(answer.seconds for answer in got), 2)}


def list_devices():
    """`trunkline devices list`, to its end."""
    began = time.monotonic()
    done = subprocess.run(
        [arena.binary, "devices", "list", "--config", arena.folder + "/gateway.yaml"], capture_output=True, text=True, timeout=240, errors="replace")
    lines = done.stdout.count("\n")
    print(done.stderr[-300:], file=sys.stderr)
    return {"answers": 1 if done.returncode == 0 else 0, "listed": lines, "missing": max(0, arena.fill["devices"] - lines), "worst_s": round(time.monotonic() - began, 2)}


def looped(*paths, scope="read"):
    """Five clients that ask over and over."""
    until = time.monotonic() + options.seconds

    def client(index):
        good, took, stream = 0, [0], None
        while time.monotonic() < until:
            stream = stream or connect(("127.0.0.1", arena.admin), source(index))
            answer = ask(arena, paths[index % len(paths)], scope, seconds=60, stream=stream)
            good += 1 if answer.status == 200 else 0
            took.append(answer.seconds)
            if answer.closed:
                stream = stream.close()
        return good, took

    got = at_once(5, client)
    return {"answers": sum(good for good, _ in got), "worst_s": round(max(max(took) for _, took in got), 2)}


def calls():
    return looped("/v1/calls")


def everything():
    return looped("/v1/calls", "/v1/devices", "/v1/trunks", "/v1/events?limit=1000", "/metrics")


def events():
    """A filter that fits nothing, as often as connections of one token allow."""
    path = "/v1/events?subject=nothing&limit=1000"
    got = at_once(40, lambda index: ask(arena, path, "slow", seconds=60, source=source(index)))
    return of_events(got)


def each():
    """The same of 63 tokens, once each: all but one of the port's connections, on which each has shown its token before."""
    kept = []
    for index in range(63):
        kept.append(connect(("127.0.0.1", arena.admin), source(index)))
        ask(arena, "/v1/calls/none", f"program{index}", stream=kept[index])
    got = at_once(63, lambda index: ask(arena, "/v1/events?subject=nothing&limit=1000", f"program{index}", seconds=60, stream=kept[index]))
    for stream in kept:
        stream.close()
    return of_events(got)


def of_events(got):
    health = ask(arena, "/healthz", None, seconds=5)
    for answer in got:
        if answer.status not in (200, 429):
            print(f"status {answer.status} after {answer.seconds:.3f} s, closed {answer.closed}: {answer.head[:200]!r} {answer.body[:300]!r}", file=sys.stderr)
    return {"answers": len([1 for answer in got if answer.status in (200, 429)]), "unanswered_questions": len([1 for answer in got if not answer.status]),
            "health_ms": round(health.seconds * 1000, 1), "worst_s": round(max(answer.seconds for answer in got), 2)}


def directory():
    """Every device of one user asks for all contacts, again and again."""
    health, until = [], time.monotonic() + options.seconds

    def device(index):
        stream, frames, _ = log_in(arena, "mallory", f"book{index}", arena.stranger(), timeout=10)
        parts = 0
        while time.monotonic() < until:
            for _ in range(16):
                send(stream, frame(json.dumps({"t": "dir.get", "id": str(uuid.uuid4()), "d": {"have": 0}}).encode()))
            while (got := frames.next(0.5)) not in (None, "closed"):
                parts += 1
                if time.monotonic() > until:
                    break
            if got == "closed":
                break
        stream.close()
        return parts

    def look():
        while time.monotonic() < until:
            health.append(ask(arena, "/healthz", None, seconds=5).status)
            time.sleep(0.1)

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    parts = at_once(15, device)
    looker.join()
    return {"answers": sum(parts), "ill": len([1 for status in health if status != 200]), "looks": len(health)}


figures = beside(arena, options, {"devices": devices, "list": list_devices, "calls": calls, "everything": everything, "events": events, "each": each, "directory": directory}[options.what])
report(**figures, crashed=0 if arena.alive() else 1)
