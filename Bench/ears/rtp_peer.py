"""The carrier's media: sends a passage as PCMU, packet by packet at its time, and keeps what comes with the kernel's time of arrival.

One JSON object as argument: host, play (WAV), network (see networks.py), seed. Prints its port; a line {"to": [host, port]} starts it, {"stop": 1}
ends it; then it writes what it sent and heard to the file that the line names and prints its counts.
"""
import json, os, select, struct, sys, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Tests/Interop/peers"))
import numpy as np
import arrivals, audio, networks, processes

options = json.loads(sys.argv[1])
processes.be_punctual()
sock = arrivals.opened(options["host"])
print(json.dumps({"port": sock.getsockname()[1]}), flush=True)

speech = audio.read_wav(options["play"])
octets = audio.ENCODE[0](speech).tobytes()
packets = len(octets) // 160
# A clock that is off by so much sends its packets so much closer together.
step = 0.02 / (1 + options.get("skew_ppm", 0) * 1e-6)
fate = networks.fates(options["network"], packets, options["seed"])
silence = audio.ENCODE[0](np.zeros(160, np.int16)).tobytes()
arrived, sent = [], []
to = None
begin = None
number = 0
queue = []  # (when, packet) of packets that a network delays; sorted


def packet(number):
    body = octets[160 * number : 160 * number + 160] if number < packets else silence
    head = struct.pack("!BBHII", 0x80, 0x80 if number == 0 else 0, (1000 + number) & 0xFFFF, (160000 + 160 * number) & 0xFFFFFFFF, 0x7261746B)
    return head + body


def receive():
    for data, at, _ in arrivals.waiting(sock):
        if len(data) >= 12 and data[0] >> 6 == 2 and data[1] & 0x7F == 0:
            arrived.append((at, struct.unpack("!I", data[4:8])[0], data[12:]))


poll = select.poll()
poll.register(sock, select.POLLIN)
poll.register(0, select.POLLIN)
worst = 0.0
target = None
while True:
    now = time.time()
    due = None
    if begin is not None:
        due = begin + number * step
        if queue and queue[0][0] < due:
            due = queue[0][0]
    # The last stretch is not slept: a timer would come late by what the kernel likes.
    wait = 1000 if due is None else max(0, (due - now) * 1000 - 0.3)
    for descriptor, _ in poll.poll(wait):
        if descriptor == 0:
            line = sys.stdin.readline()
            message = json.loads(line) if line else {"stop": 1}
            if "to" in message:
                to = tuple(message["to"])
                begin = time.time() + 0.005
            if "stop" in message:
                target = message.get("file")
                if target:
                    np.savez(
                        target, begin=begin or 0, step=step, sent_at=np.array([at for at, _ in sent]), sent_number=np.array([n for _, n in sent], int),
                        at=np.array([a for a, _, _ in arrived]), stamp=np.array([s for _, s, _ in arrived], np.int64),
                        payload=np.array([np.frombuffer(p.ljust(160, b"\xff")[:160], np.uint8) for _, _, p in arrived], np.uint8).reshape(-1, 160),
                        dropped=np.array([n for n in range(min(number, packets)) if fate[n] is None], int), worst=worst)
                print(json.dumps({"sent": len(sent), "received": len(arrived), "worst_ms": round(worst * 1000, 2)}), flush=True)
                os._exit(0)
    receive()
    if begin is None:
        continue
    while queue and queue[0][0] <= time.time():
        sock.sendto(queue.pop(0)[1], to)
    due = begin + number * step
    now = time.time()
    if due - now < 0.0004 and number < packets + 1500:
        while time.time() < due:
            pass
        now = time.time()
        worst = max(worst, now - due)
        delay = fate[number] if number < packets else 0
        if delay is not None:
            if delay <= 0:
                try:
                    sock.sendto(packet(number), to)
                except ConnectionRefusedError:
                    pass
            else:
                queue.append((due + delay / 1000, packet(number)))
                queue.sort(key=lambda entry: entry[0])
            sent.append((due, number))
        number += 1
