"""The app's network: every datagram between app and gateway passes here, is lost or waits as told, and is noted with the kernel's time.

One JSON object as argument: host, to ([host, port] of the gateway), network, seed. Prints its port; {"stop": 1, "file": …} ends it. Lost are media
packets alone, so that a call's set-up is not what is measured. What it notes of each media packet: direction (0 to the app), time, time
stamp, payload type, length, SSRC.
"""
import heapq, json, os, select, struct, sys, time
import numpy as np
import arrivals, networks, processes

options = json.loads(sys.argv[1])
processes.be_punctual()
gateway = tuple(options["to"])
network = options["network"]
outer, inner = arrivals.opened(options["host"]), arrivals.opened(options["host"])  # towards the app, towards the gateway
print(json.dumps({"port": outer.getsockname()[1]}), flush=True)
app = None
fate = [networks.fates(network, 10_000, f"{options['seed']} {way}") for way in (0, 1)]
counts = [0, 0]
notes = []
queue = []
order = 0
late = 0.0
poll = select.poll()
for end in (outer, inner):
    poll.register(end, select.POLLIN)
poll.register(0, select.POLLIN)


def forward(way, data):
    try:
        if way == 0:
            if app:
                outer.sendto(data, app)
        else:
            inner.sendto(data, gateway)
    except (BlockingIOError, ConnectionRefusedError):
        pass


def passed(way, data, at):
    global order
    delay = network.get("delay", 0)
    if len(data) >= 12 and 128 <= data[0] < 192 and not 192 <= data[1] < 224:
        number = counts[way]
        counts[way] += 1
        stamp, ssrc = struct.unpack("!II", data[4:12])
        fell = fate[way][number % len(fate[way])] is None
        notes.append((way, at, struct.unpack("!H", data[2:4])[0], stamp, data[1] & 0x7F, len(data), ssrc, fell))
        if fell:
            return
        delay = fate[way][number % len(fate[way])]
    if delay <= 0:
        forward(way, data)
    else:
        order += 1
        heapq.heappush(queue, (at + delay / 1000, order, way, data))


while True:
    wait = 1000 if not queue else max(0, (queue[0][0] - time.time()) * 1000)
    for descriptor, _ in poll.poll(wait):
        if descriptor == 0:
            line = sys.stdin.readline()
            message = json.loads(line) if line else {"stop": 1}
            if message.get("file"):
                names = ("way", "at", "sequence", "stamp", "type", "length", "ssrc", "fell")
                columns = zip(*notes) if notes else [[]] * len(names)
                np.savez(message["file"], late=late, **{name: np.array(column) for name, column in zip(names, columns)})
            print(json.dumps({"toApp": counts[0], "toGateway": counts[1], "late_ms": round(late * 1000, 2)}), flush=True)
            os._exit(0)
        end = outer if descriptor == outer.fileno() else inner
        for data, at, source in arrivals.waiting(end):
            late = max(late, time.time() - at)
            if end is outer:
                app = source
                passed(1, data, at)
            else:
                passed(0, data, at)
    while queue and queue[0][0] <= time.time():
        _, _, way, data = heapq.heappop(queue)
        forward(way, data)
