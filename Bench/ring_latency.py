"""How soon a call rings: from the INVITE's first octet on the wire to `call.offer` at the app, and to the push at the push service.

    .venv/bin/python Bench/ring_latency.py [--binary PATH] [--rate 100] [--seconds 10] [--users 100]

Starts a gateway of its own, `--users` apps on WebSockets and as many that were killed, then sends INVITEs at `--rate`, in turn to each user.
The apps decline what they are offered. Clocks are one: everything runs here. Prints p50, p99 and the largest of both, and the gateway's own
`trunkline_invite_to_push_seconds`; ends with 1 if a call was offered or pushed not at all, or twice. Goals: 5 ms and 50 ms at p99.
"""
import argparse, asyncio, base64, hashlib, hmac, json, os, random, signal, socket, subprocess, sys, tempfile, time, urllib.request, uuid
import websockets

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--binary", default=".build/release/trunkline")
parser.add_argument("--rate", type=float, default=100)
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--users", type=int, default=100)
options = parser.parse_args()
BINARY = os.path.abspath(options.binary)
LAB = os.path.join(os.path.dirname(BINARY), "trunkline-lab")
KEY = b"0123456789abcdef0123456789abcdef"
HOST = "127.0.0.1"


def free(kind):
    """Below the ports that the kernel assigns: no other socket gets it before its owner binds it."""
    for port in random.sample(range(24_000, 32_760), 8_760):
        with socket.socket(socket.AF_INET, kind) as end:
            try:
                end.bind((HOST, port))
            except OSError:
                continue
            return port
    sys.exit("ring_latency: no free port")


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(user, device):
    claims = {"sub": user, "dev": device, "aud": "trunkline", "exp": int(time.time()) + 3600}
    signed = b64(b'{"alg":"HS256","typ":"JWT"}') + "." + b64(json.dumps(claims).encode())
    return signed + "." + b64(hmac.new(KEY, signed.encode(), hashlib.sha256).digest())


def number(user):
    return f"+15552{user:06d}"


def invite(call, target, port, sip):
    sdp = f"v=0\r\no=c 1 1 IN IP4 {HOST}\r\ns=-\r\nc=IN IP4 {HOST}\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"
    return (
        f"INVITE sip:{target}@{HOST}:{sip} SIP/2.0\r\nVia: SIP/2.0/UDP {HOST}:{port};branch=z9hG4bK{call}\r\nMax-Forwards: 70\r\n"
        f"From: <sip:+15550009999@{HOST}>;tag={call}\r\nTo: <sip:{target}@{HOST}:{sip}>\r\nCall-ID: {call}\r\nCSeq: 1 INVITE\r\n"
        f"Contact: <sip:c@{HOST}:{port}>\r\nContent-Type: application/sdp\r\nContent-Length: {len(sdp)}\r\n\r\n{sdp}").encode()


class Carrier(asyncio.DatagramProtocol):
    """Sends INVITEs and acknowledges what refuses them."""

    def __init__(self, sip):
        self.sip, self.finals, self.patience = sip, {}, 2.0

    def connection_made(self, transport):
        self.transport, self.port = transport, transport.get_extra_info("sockname")[1]

    def call(self, target):
        """Given up after `patience`: a phone that nobody wakes would ring on."""
        call = uuid.uuid4().hex
        at = time.monotonic()
        self.transport.sendto(invite(call, target, self.port, self.sip), (HOST, self.sip))
        asyncio.get_running_loop().call_later(self.patience, self.cancel, call, target)
        return at, call

    def cancel(self, call, target):
        if call not in self.finals:
            text = invite(call, target, self.port, self.sip).decode().split("Contact:")[0].replace("INVITE sip", "CANCEL sip").replace("1 INVITE", "1 CANCEL")
            self.transport.sendto((text + "Content-Length: 0\r\n\r\n").encode(), (HOST, self.sip))

    def datagram_received(self, data, source):
        lines = data.decode().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        code = int(lines[0].split()[1])
        if code < 200 or "INVITE" not in fields["CSeq"]:
            return
        self.finals[fields["Call-ID"]] = code
        target = fields["To"].split(">")[0].split(":")[1]
        ack = [f"ACK sip:{target} SIP/2.0"] + [f"{name}: {fields[name]}" for name in ("Via", "From", "To", "Call-ID")]
        self.transport.sendto("\r\n".join(ack + ["CSeq: 1 ACK", "Max-Forwards: 70", "Content-Length: 0", "", ""]).encode(), (HOST, self.sip))


async def login(app, user, device, push=False):
    end = await websockets.connect(f"ws://{HOST}:{app}/v1/connect", subprotocols=["trunkline.v1"], ping_interval=None, compression=None)
    await end.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": {"auth": token(user, device), "device": {"id": device}}}))
    assert json.loads(await end.recv())["t"] == "welcome"
    if push:
        body = {"push": {"kind": "apns-voip", "token": hashlib.sha256(user.encode()).hexdigest(), "topic": "org.example.phone.voip"}}
        await end.send(json.dumps({"t": "device.put", "id": str(uuid.uuid4()), "d": body}))
        assert json.loads(await end.recv())["t"] == "ok"
        await end.close(1000)
    return end


async def app(end, offered):
    """Notes when it is offered a call, and declines it."""
    sent = 0
    async for text in end:
        at, frame = time.monotonic(), json.loads(text)
        if frame["t"] != "call.offer":
            continue
        offered.append(at)
        sent += 1
        await end.send(json.dumps({"t": "call.reject", "id": str(uuid.uuid4()), "seq": sent, "ack": frame["seq"], "call": frame["call"], "d": {}}))


async def play(carrier, first):
    """Calls at the rate, in turn to `--users` numbers from `first` on; gives when each user's were sent."""
    sent = [[] for _ in range(options.users)]
    begin = time.monotonic()
    for index in range(int(options.rate * options.seconds)):
        await asyncio.sleep(max(0, begin + index / options.rate - time.monotonic()))
        user = index % options.users
        sent[user].append(carrier.call(number(first + user)))
    await asyncio.sleep(3)
    return sent


def delays(sent, seen, what, finals):
    refused = sum(finals.get(call) == 503 for calls in sent for _, call in calls)
    if refused:
        print(f"{refused} calls were refused with 503: the machine is busy")
    sent = [[at for at, call in calls if finals.get(call) != 503] for calls in sent]
    wrong = [user for user in range(options.users) if len(sent[user]) != len(seen[user])]
    if wrong:
        sys.exit(f"{what}: {sum(map(len, sent))} calls, {sum(map(len, seen))} came; of users {wrong[:5]} too few or too many")
    return sorted(1000 * (to - at) for user in range(options.users) for at, to in zip(sent[user], seen[user]))


def show(what, times, goal):
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
    print(f"{what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms (goal {goal}), at most {times[-1]:.2f} ms, {len(times)} calls at {options.rate:g} a second")


def quantile(metrics, family, share):
    rows = [line for line in metrics.splitlines() if line.startswith(family + "_bucket")]
    buckets = [(line.split('le="')[1].split('"')[0], float(line.split()[-1])) for line in rows]
    return next((le for le, count in buckets if buckets[-1][1] > 0 and count >= share * buckets[-1][1]), "none")


async def pushes(stream, begun, seen):
    """What the push service hands to apps: one line for each push."""
    while line := await stream.readline():
        at = time.monotonic()
        push = json.loads(line)
        push = push.get("payload", push)
        if "call" in push and begun.is_set():
            seen.append(at)


async def run(folder):
    sip, admin, own, apns, handed = free(socket.SOCK_DGRAM), free(socket.SOCK_STREAM), free(socket.SOCK_STREAM), free(socket.SOCK_STREAM), free(socket.SOCK_STREAM)
    open(folder + "/jwt.key", "wb").write(KEY + b"\n")
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", folder + "/AuthKey.p8"], check=True, capture_output=True)
    users = "".join(f'  - {{ id: u{user}, numbers: [ "{number(user)}" ] }}\n' for user in range(2 * options.users))
    open(folder + "/gateway.yaml", "w").write(
        f"listen: {{ sip: {{ udp: {HOST}:{sip} }}, app: {{ address: {HOST}:{own} }}, admin: {HOST}:{admin} }}\n"
        f"media: {{ addresses: [ {HOST} ], threads: 2, load_limit: 100, app_port: {free(socket.SOCK_DGRAM)}, trunk_ports: 20000-21999 }}\n"
        "limits: { calls: 2000 }\nauth: { jwt: { key_file: jwt.key } }\ntimers: { ring: 3s }\nlog: { level: error }\n"
        f'trunks: [ {{ name: carrier, peers: [ 127.0.0.0/8 ], uri: "sip:{HOST}:9" }} ]\nusers:\n{users}'
        "routes: { inbound: [ { trunk: carrier, to: users } ] }\n"
        f'push: {{ gateway: "ws://{HOST}:{own}/v1/connect", ca: cert.pem, apns: {{ key_file: AuthKey.p8, key_id: K, team_id: T, url: "https://{HOST}:{apns}" }} }}\n')
    children, kept = [], []
    try:
        sandbox = ["push-sandbox", "--listen", f"{HOST}:{apns}", "--apps", f"{HOST}:{handed}", "--certificate", "cert.pem", "--key", "AuthKey.p8"]
        children.append(subprocess.Popen([LAB] + sandbox, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        while not os.path.exists(folder + "/cert.pem"):
            await asyncio.sleep(0.1)
        children.append(subprocess.Popen([BINARY, "serve", "--config", "gateway.yaml"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(100):
            await asyncio.sleep(0.1)
            try:
                urllib.request.urlopen(f"http://{HOST}:{admin}/readyz").read()
                break
            except OSError:
                continue
        _, carrier = await asyncio.get_running_loop().create_datagram_endpoint(lambda: Carrier(sip), local_addr=(HOST, 0))
        offered = [[] for _ in range(options.users)]
        for user in range(options.users):
            kept.append(asyncio.ensure_future(app(await login(own, f"u{user}", "phone"), offered[user])))
        sent = await play(carrier, 0)
        show("INVITE to call.offer at the app", delays(sent, offered, "call.offer", carrier.finals), "5 ms")
        pushed, begun = [[] for _ in range(options.users)], asyncio.Event()
        for user in range(options.users):
            await login(own, f"u{options.users + user}", "cold", push=True)
            reader, writer = await asyncio.open_connection(HOST, handed)
            writer.write((json.dumps({"token": hashlib.sha256(f"u{options.users + user}".encode()).hexdigest()}) + "\n").encode())
            kept += [writer, asyncio.ensure_future(pushes(reader, begun, pushed[user]))]
        # everybody waits by now
        await asyncio.sleep(1)
        begun.set()
        carrier.patience = 0.3
        sent = await play(carrier, options.users)
        show("INVITE to the push at the app", delays(sent, pushed, "push", carrier.finals), "50 ms")
        metrics = urllib.request.urlopen(f"http://{HOST}:{admin}/metrics").read().decode()
        print(f"INVITE to the request's hand-over, by the gateway: p99 within {quantile(metrics, 'trunkline_invite_to_push_seconds', 0.99)} s")
        for task in kept:
            if isinstance(task, asyncio.Future):
                task.cancel()
        await asyncio.sleep(0.1)
    finally:
        for child in reversed(children):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(run(folder))
