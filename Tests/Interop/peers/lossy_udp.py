"""A UDP path that loses packets: --listen takes one peer's packets and hands them to --to, and back. Seeded; prints what it dropped."""
import argparse, json, random, selectors, signal, socket, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--listen", type=int, required=True)
parser.add_argument("--to", required=True, help="address:port")
parser.add_argument("--loss", type=float, default=0.3)
parser.add_argument("--delay", type=float, default=0, help="seconds, each way")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
host, port = options.to.rsplit(":", 1)
inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inner.bind(("127.0.0.1", 0))
outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
outer.bind(("127.0.0.1", options.listen))
select = selectors.DefaultSelector()
select.register(outer, selectors.EVENT_READ)
select.register(inner, selectors.EVENT_READ)
peer = None
counts = {"passed": 0, "dropped": 0}
running = True


def stop(*_):
    global running
    running = False


signal.signal(signal.SIGTERM, stop)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # whoever started us may have blocked it
print(json.dumps({"event": "listening", "port": options.listen}), flush=True)
waiting = []
while running:
    wait = 0.1 if not waiting else max(0, min(0.1, waiting[0][0] - time.monotonic()))
    for key, _ in select.select(wait):
        packet, source = key.fileobj.recvfrom(65536)
        if chance.random() < options.loss:
            counts["dropped"] += 1
            continue
        counts["passed"] += 1
        if key.fileobj is outer:
            peer = source
            waiting.append((time.monotonic() + options.delay, inner, packet, (host, int(port))))
        elif peer:
            waiting.append((time.monotonic() + options.delay, outer, packet, peer))
    now = time.monotonic()
    while waiting and waiting[0][0] <= now:
        _, out, packet, to = waiting.pop(0)
        try:
            out.sendto(packet, to)
        except ConnectionRefusedError:
            pass
print(json.dumps({"event": "done", **counts}), flush=True)
