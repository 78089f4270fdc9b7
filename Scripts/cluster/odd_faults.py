"""Rows of the fault table about what should not be: a wrong clock, a name given twice, two versions, and what a stranger writes into the shared store."""
import base64, hashlib, hmac, json, re, threading, time

from bench import BenchNode, row
from shared_store import Redis, encoded
from shared_store_faults import Outage, pushes
from load import now
from node_faults import after_death


def signed(bench, value, key, field="", counted=""):
    """A JSON object as a node with the cluster's key writes it (docs/design/cluster-shared-store.md, What is signed)."""
    with open(f"{bench.cluster.folder}/cluster.key", "rb") as file:
        secret = file.read()
    value = value if isinstance(value, bytes) else json.dumps(value).encode()
    content = re.sub(rb',"h":"[^"]{22}"$', b"", value[1:-1])
    field = field.decode() if isinstance(field, bytes) else field
    place = f"{key}\n{field}".encode()
    purpose = hmac.digest(hmac.digest(bytes(32), secret, hashlib.sha256), b"trunkline shared store values 1\x01", hashlib.sha256)
    bare = re.sub(rb'^"%s":[0-9]+,' % counted.encode(), b"", content) if counted else content
    tag = hmac.digest(purpose, len(place).to_bytes(4, "big") + place + bare, hashlib.sha256)[:16]
    return b"{" + content + b',"h":"' + base64.urlsafe_b64encode(tag).rstrip(b"=") + b'"}'


def calls_everywhere(bench, name, outage, count=6):
    """By the edge, to users at each node: nearly all come to another node first."""
    users = []
    for node in bench.cluster.nodes:
        spare = [user for user in bench.users_at(node) if user not in outage.connected + outage.ringing + outage.used]
        users += spare[:count // 3]
    outage.used += users
    bench.phones.answers |= set(users)
    since = now()
    carrier = bench.dial(f"everywhere-{name}", users, rate=5, talk=2)
    bench.wait(count / 5 + 12, lambda: not carrier.program.is_running)
    connected = bench.phones.count("connected", users, since)
    bench.check(f"calls by the edge to users at all nodes, {name}", connected, len(users), connected == len(users))


@row("clock", "the clock of one node is an hour ahead, then an hour behind", clock="n1", lines=pushes)
def clock(bench):
    outage = Outage(bench)
    outage.meanwhile("up")
    leaders = [node.json("/v1/nodes")["leads"] for node in bench.cluster.nodes]
    for seconds, name in ((3_600, "an hour ahead"), (-3_600, "an hour behind"), (0, "right again")):
        bench.say(f"n1's clock is {name}")
        bench.cluster.shift(seconds)
        time.sleep(10)
        calls_everywhere(bench, name, outage)
    same = [node.json("/v1/nodes")["leads"] for node in bench.cluster.nodes] == leaders
    bench.check("tasks are led by", "the same nodes" if same else "others", "the same nodes", same)
    outage.back(now())
    outage.finish()


def further(bench, name):
    """One more process beside n2's, under that name."""
    node = BenchNode(name, *bench.places["n2"])
    node.sip, node.app, node.admin, node.token = 5070, 8453, 9091, bench.cluster.admin_token
    text = bench.cluster.configuration(node).replace("app_port: 19998, trunk_ports: 20000-21999", "app_port: 23998, trunk_ports: 22000-23997")
    file = bench.cluster.write(f"twin-{name}/gateway.yaml", text)
    return bench.cluster.start(f"twin-{name}", *node.inside, bench.cluster.gateway, "serve", "--config", file)


def check_refusal(bench, program, *said):
    bench.wait(15, lambda: not program.is_running)
    with open(program.log_path, errors="replace") as file:
        text = file.read()
    status = program.process.poll()
    bench.check("it ends with", status, "2", status == 2)
    missing = [part for part in said if part not in text]
    bench.check("and says", ", ".join(said) if not missing else f"not {', '.join(missing)}", ", ".join(said), not missing)


@row("twin", "a second node of a name", lines=pushes)
def twin(bench):
    outage = Outage(bench)
    first = bench.shared_store.incarnations()["n1"]
    check_refusal(bench, further(bench, "n1"), "another process has this node's name", first["sip"], first["url"])
    bench.check("n1's lease", bench.shared_store.incarnations()["n1"]["i"], first["i"], bench.shared_store.incarnations()["n1"]["i"] == first["i"])
    calls_everywhere(bench, "after it", outage)
    outage.meanwhile("up")
    outage.back(now())
    outage.finish()


@row("versions", "two versions of the program in one cluster", lines=pushes, other="n3")
def versions(bench):
    outage = Outage(bench)
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    lease = {"v": 1, "i": "later.5", "url": "ws://10.77.0.99/", "sip": "sip:10.77.0.99:5060", "version": "9.9", "format": 2, "later": {"a": [1]}, "e": 9_999_999_999}
    stop = threading.Event()
    writer = threading.Thread(target=add_fields, args=(bench, asked, lease, stop))
    writer.start()
    outage.meanwhile("up")
    calls_everywhere(bench, "with fields of a later version", outage)
    stop.set()
    writer.join()
    dropped = outage.sum("trunkline_shared_store_values_dropped_total")
    bench.check("values that could not be read", f"{dropped:.0f}", "0", dropped == 0)
    asked.say("SET", "tl:{nodes}:lease:later", signed(bench, {**lease, "v": 2, "oldest": 2}, "tl:{nodes}:lease:later"), "PX", 30_000)
    asked.say("SADD", "tl:{nodes}:names", "later")
    check_refusal(bench, further(bench, "n4"), "a node of a newer version shares nothing with this one", "9.9")
    asked.say("DEL", "tl:{nodes}:lease:later")
    outage.alive()
    node = bench.node("n3")
    users = [user for user in bench.users_at(node) if user not in outage.used][:6]
    bench.phones.answers |= set(users)
    carrier = bench.dial("of-the-other", users)
    bench.wait(15, lambda: bench.phones.count("connected", users) == len(users))
    time.sleep(1.5)
    bench.say(f"kill -9 of n3, {'the other version' if bench.other else 'the same version'}")
    killed = node.program.kill()
    after_death(bench, killed, carrier, users, carrier, [], 8)
    outage.alive()
    outage.finish()


def add_fields(bench, asked, lease, stop):
    """As if a later version had written every value: each gets a field that this one does not know."""
    while not stop.wait(0.2):
        asked.say("SET", "tl:{nodes}:lease:later", signed(bench, lease, "tl:{nodes}:lease:later"), "PX", 6_000)
        asked.say("SADD", "tl:{nodes}:names", "later")
        for pattern in ("tl:{u:*", "tl:{i:*:calls"):
            for key in asked.keys(pattern):
                kind = key.rsplit(":", 1)[1]
                if kind not in ("where", "devices", "calls"):
                    continue
                counted = {"where": "t", "calls": "n"}.get(kind, "") if key.startswith("tl:{u:") else ""
                for field, value in asked.hash(key).items():
                    if b'"later"' not in value:
                        # not of one that was written meanwhile
                        asked.say("EVAL", "if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end",
                                  1, key, field, value, signed(bench, re.sub(rb',"h":"[^"]{22}"}$', b"", value) + b',"later":{"a":[1,"x"]}}', key, field, counted))


@row("strangers", "10,000 forged messages a second, leases of 5,000 nodes", sentinels=False, lines=pushes)
def strangers(bench):
    outage = Outage(bench)
    outage.meanwhile("up")
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host, timeout=30)
    victims = outage.connected + outage.ringing
    bench.say("messages …")
    # made before, and said again each second: to make them takes longer than to send them
    words = [encoded("PUBLISH", *forged(bench, number, victims)) for number in range(10_000)]
    tenths = [b"".join(words[first:first + 1_000]) for first in range(0, len(words), 1_000)]
    began, sent = time.monotonic(), 0
    for tenth in tenths * (5 if bench.is_short else 20):
        asked.socket.sendall(tenth)
        for _ in range(1_000):
            asked.read()
        sent += 1_000
        time.sleep(max(0.0, began + sent / 10_000 - time.monotonic()))
    rate = sent / (time.monotonic() - began)
    bench.check("messages a second", f"{rate:.0f}", "10,000", rate > 9_000)
    bench.wait(10, lambda: outage.sum("trunkline_cluster_messages_dropped_total") >= 5 * sent // 3)
    heard, dropped = outage.sum("trunkline_shared_store_messages_total"), outage.sum("trunkline_cluster_messages_dropped_total")
    bench.check("heard by three nodes, and dropped", f"{heard:.0f}, {dropped:.0f}", f"{5 * sent // 3} or more: a third of them is heard by all three", heard >= dropped >= 5 * sent // 3)
    outage.alive()
    bench.say("leases …")
    for number in range(4_900):
        value = {"v": 1, "i": f"x{number}.1", "url": "ws://10.77.0.99/", "sip": f"sip:10.77.0.99:{number + 1}", "e": 9_999_999_999}
        value = signed(bench, value, f"tl:{{nodes}}:lease:x{number}")
        asked.send("SET", f"tl:{{nodes}}:lease:x{number}", value, "PX", 15_000)
        asked.send("SADD", "tl:{nodes}:names", f"x{number}")
    for _ in range(9_800):
        asked.read()
    bench.wait(8, lambda: outage.sum('trunkline_cluster_nodes{liveness="living"}') == 3 * 4_903)
    seen = outage.sum('trunkline_cluster_nodes{liveness="living"}')
    bench.check("nodes that three nodes see", f"{seen:.0f}", str(3 * 4_903), seen == 3 * 4_903)
    states = outage.states()
    bench.check("the nodes say of the shared store", ", ".join(map(str, states)), "up", states == ["up"] * 3)
    bench.wait(25, lambda: outage.sum('trunkline_cluster_nodes{liveness="living"}') == 9)
    calls_everywhere(bench, "when they are gone", outage)
    outage.back(now())
    outage.finish()


def forged(bench, number, victims):
    """A message that turns a device away, ends a session or a call, if it were believed; every tenth is cut. Signed: what is not is dropped before."""
    user, sender = victims[number % len(victims)], f"ghost{number % 7_000}.{number}"
    kind = ("revoked", "replaced", "lost", "wake")[number // 3 % 4]
    text = json.dumps({"v": 1, "f": sender, "k": kind, "u": user, "d": "phone", "s": "x", "c": "{}", "call": f"00000000-0000-4000-8000-{number:012d}", "e": 9_999_999_999})
    channel = ("tl:all", "tl:to:n1", "tl:to:n2")[number % 3]
    text = signed(bench, text.encode(), channel).decode()
    return channel, text[:number % 60] if number % 10 == 0 else text
