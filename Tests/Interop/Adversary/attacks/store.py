"""Whoever can write to the shared store: forged grants, leases and messages, good ones in another place, at another time, by the key of before."""
from shared_store import *

options, arena, chance = arguments()
redis = Redis(arena.redis)
ROWS, LEASE = "tl:{grants}:rows", "tl:{nodes}:lease:"
NUMBER = "+15560000001"
figures = {"forged": 0, "misrouted": 0, "own": 0, "named": 0, "withheld": 0, "crashed": 0}


def granted(user, device, numbers):
    stream, frames = web_socket(arena)
    send(stream, frame(hello(arena.token(user, device, iat=int(time.time()), trunkline={"numbers": numbers}), device)))
    messages, _ = heard(frames, 1)
    assert any(one["t"] == "welcome" for one in messages), messages
    return stream, frames


def rung(*sessions):
    """Which of the sessions a call to the number rings; then it is cancelled. A session that says nothing for long is none."""
    for stream, _ in sessions:
        send(stream, frame(b'{"t":"ping"}'))
    trunk = Trunk(arena)
    invite = trunk.request("INVITE", NUMBER, sdp=offer("127.0.0.1", 30_008), branch="z9hG4bK" + uuid.uuid4().hex[:12])
    trunk.send(invite)
    heard_by = [heard(frames, 1.5) for _, frames in sessions]
    out = [any(one["t"] == "call.offer" for one in messages) for messages, _ in heard_by]
    if any(code is not None for _, code in heard_by):
        print("a session was closed:", [code for _, code in heard_by], file=sys.stderr)
    hang_up(arena, "ann")
    hang_up(arena, "mallory")
    for _, frames in sessions:
        heard(frames, 0.3)
    trunk.close()
    return out


def put(user, row):
    """A row as the script writes it, and the word that there is one."""
    position = int(redis("HINCRBY", "tl:{grants}:state", "position", 1))
    redis("HSET", ROWS, user, row)
    redis("ZADD", "tl:{grants}:order", position, user)
    redis("ZADD", "tl:{grants}:seen", int(time.time() * 1000), user)
    redis("PUBLISH", "tl:all", b'{"f":"%s","v":1,"k":"grants","u":""}' % incarnation())
    figures["forged"] += 1
    time.sleep(0.7)


def incarnation():
    match = re.search(rb'"i":"([^"]+)"', redis("GET", LEASE + "n1") or b"")
    return match.group(1) if match else b"n1.1"


def page():
    return http(connect(arena.app_address), get("/", close=True)).partition(b"\r\n\r\n")[0]


ann, mallory = granted("ann", "phone", [NUMBER]), log_in(arena, "mallory", "bad", timeout=5)[:2]
figures["own"] += 1 if rung(ann, mallory) == [True, False] else 0
row = redis.hash(ROWS)[b"ann"]
line = row.partition(b"\n")[2]
later = int(re.match(rb'\{"t":(\d+)', line).group(1)) + 60_000
OWN = NUMBER.encode()[1:] + b"\n"
GRANTS = {
    "unsigned": OWN + b'{"t":%d,"s":%d,"v":1,"g":{"numbers":["%s"]}}' % (later, later, NUMBER.encode()),
    "a number before nothing": OWN,
    "ann's, at mallory's place": row,
    "ann's with another time": re.sub(rb'"t":\d+', b'"t":%d' % later, row),
    "signed with nothing": row.replace(b'"v":1', b'"v":1,"h":"","sig":"","mac":""', 1),
}
for name, forged in GRANTS.items():
    put("mallory", forged)
    got = rung(ann, mallory)
    if got != [True, False]:
        figures["misrouted"] += 1
        print("grant:", name, got, file=sys.stderr)
    redis("HDEL", ROWS, "mallory")

# A row with one octet changed takes her number from nobody.
put("ann", re.sub(rb"\+1556000000\d", b"+15560000002", row))
if rung(ann, mallory) != [True, False]:
    figures["withheld"] += 1
    print("ann's own row, with another number", file=sys.stderr)
put("ann", row)

# Leases: a node that is none, a node's own with another address, one that a process with another cluster.key writes.
lease = redis("GET", LEASE + "n1")
evil = lease.replace(b"n1.phone.example.com", b"evil.example").replace(b'"n1.', b'"evil.')
for name, value in (("evil", evil), ("n2", lease), ("n1", lease.replace(b"n1.phone.example.com", b"evil.example"))):
    redis("SADD", "tl:{nodes}:names", name)
    redis("SET", LEASE + name, value, "PX", 20_000)
    figures["forged"] += 1
    end = time.monotonic() + 3
    while time.monotonic() < end:
        if b"evil.example" in page():
            figures["named"] += 1
            print("lease:", name, file=sys.stderr)
            break
        time.sleep(0.2)
    redis("DEL", LEASE + name)

# One that has the key of before.
config = open(arena.folder + "/gateway.yaml").read()
for port in {arena.sip, arena.siptls, arena.app, arena.admin}:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        config = config.replace(f":{port}", f":{free.getsockname()[1]}")
config = config.replace("node: n1", "node: n3").replace("n1.phone.example.com", "before.example").replace("cluster.key", "before.key")
config = config.replace("app_port: 21998, trunk_ports: 20000-20999", "app_port: 23998, trunk_ports: 22000-22099")
os.makedirs(arena.folder + "/before", exist_ok=True)
for name in os.listdir(arena.folder):
    if name.endswith((".key", ".token", ".pem", ".secret")) or name == "password":
        open(f"{arena.folder}/before/{name}", "wb").write(open(f"{arena.folder}/{name}", "rb").read())
open(arena.folder + "/before/before.key", "w").write(uuid.uuid4().hex * 2)
open(arena.folder + "/before/gateway.yaml", "w").write(config)
with open(arena.folder + "/before/log", "w") as log:
    before = subprocess.Popen([arena.binary, "serve", "--config", "gateway.yaml"], cwd=arena.folder + "/before", stdout=log, stderr=log)
    end = time.monotonic() + 12
    while time.monotonic() < end and before.poll() is None:
        if b"before.example" in page():
            figures["named"] += 1
            print("lease: of the key of before", file=sys.stderr)
            break
        time.sleep(0.3)
    figures["before_ran"] = 1 if before.poll() is None else 0
    before.kill()
    before.wait()

# Values that are none, in every key, and messages.
keys = redis("KEYS", "tl:*")
JUNK = [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"{" * 5_000, b'{"v":1}', b'{"t":1e400,"v":1}', b'{"t":-1,"m":-1,"s":-1,"v":99,"g":{}}', b"a" * 1_000_000]
for key in keys:
    for junk in chance.sample(JUNK, 4):
        kind = redis("TYPE", key)
        try:
            if kind == b"hash":
                redis("HSET", key, chance.choice([b"x", b"ann", b"desk", b"place"]), junk)
            elif kind == b"string":
                redis("SET", key, junk, "KEEPTTL")
            else:
                redis("SADD" if kind == b"set" else "SET", key, junk)
        except ValueError:
            pass
        redis("PUBLISH", "tl:all", junk[:10_000])
        redis("PUBLISH", "tl:to:n1", junk[:10_000])
        figures["forged"] += 1
time.sleep(3)
figures["crashed"] = 0 if arena.alive() else 1
ann[0].close()
mallory[0].close()
redis("FLUSHALL")
time.sleep(4)
report(**figures)
