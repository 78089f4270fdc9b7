"""Login tokens that are none, over connections that are kept alive, from one address: what their signatures cost."""
from phones import *

options, arena, chance = arguments()
good = arena.token("mallory", "bad")
bad = [good[:-6] + chance.choice("ABCDEFGH") + good[-5:-1] + chance.choice("ABCDEFGH") for _ in range(20)] + [arena.token("mallory", "bad", exp=1)]
counts, ATTACKER = {}, "127.0.5.1"


def client(index):
    stream, asked, until = None, 0, time.monotonic() + options.seconds
    while time.monotonic() < until:
        try:
            stream = stream or connect(arena.app_address, ATTACKER, arena.tls)
            token = bad[asked % len(bad)]
            path = ("/v1/directory", f"/v1/calls/{uuid.uuid4()}/reject")[asked % 2]
            body = b"{}" if asked % 2 else None
            request = get(path, [f"Authorization: Bearer {token}"], "POST" if body else "GET", body=body) * 10
            if not send(stream, request):
                raise OSError("closed")
            data, closed = read(stream, 1, lambda data: data.count(b"HTTP/1.1 ") >= 10)
            asked += 10
            for status in re.findall(rb"HTTP/1\.1 (\d{3})", data):
                counts[status.decode()] = counts.get(status.decode(), 0) + 1
            if closed:
                raise OSError("closed")
        except OSError:
            if stream:
                stream.close()
            stream = None
    return asked


before = sum(arena.thread_seconds().values())
asked = sum(at_once(4, client))
spent = sum(arena.thread_seconds().values()) - before
# the calls beside cost something, too
time.sleep(0.1)
quiet, at = sum(arena.thread_seconds().values()), time.monotonic()
time.sleep(2)
beside = (sum(arena.thread_seconds().values()) - quiet) / (time.monotonic() - at)
login = log_in(arena, "honest", "other", timeout=5)[0]
login.close()
report(
    asked=asked, let_in=counts.get("200", 0), checked=counts.get("401", 0), flood_cpu=round(max(0.0, spent / options.seconds - beside), 3), statuses=counts, crashed=0 if arena.alive() else 1)
