"""Rows of the fault table about the shared store: away, frozen, half open, slow, full, flushed, its password changed, its primary killed."""
import json, os, signal, subprocess, time

import network
from bench import row
from shared_store import Redis, Watch
from load import now
from programs import until

# A node puts back so much a second at most, beside what its calls and its lease need.
RESTORED, BESIDE = 1_000, 200


def pushes(bench):
    """Devices may register for pushes, which go nowhere."""
    key = os.path.join(bench.folder, "apns.p8")
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key], check=True, capture_output=True)
    return [f"push: {{ gateway: \"ws://{network.BALANCER}/v1/connect\", apns: {{ key_file: {key}, key_id: ABCDE12345, team_id: ABCDE12345, url: {{ production: \"https://127.0.0.1:9\" }} }} }}"]


class Outage:
    """A cluster with calls, of which 50 are connected and 20 ring when the shared store falls ill; those are answered meanwhile."""

    def __init__(self, bench):
        self.bench, self.cluster, self.phones, self.node = bench, bench.cluster, bench.phones, bench.node("n1")
        self.redis = self.cluster.programs[0]
        self.registered = self.register()
        (self.talking, self.connected), (self.calling, self.ringing) = bench.load(self.node)
        self.used = []
        self.spare = [user for user in bench.users_at(self.node) if user not in self.connected + self.ringing]
        self.watch = Watch(self.cluster.redis[0], self.cluster.shared_store_host)
        self.before = self.local("before")
        self.commands, self.since = self.sum("trunkline_shared_store_commands_total"), now()
        self.packets = self.phones.received()

    def register(self):
        """An app that is killed, with a push registration."""
        user = next(iter(self.bench.users))
        self.bench.apart.add(user)
        token = self.cluster.write("killed.jwt", self.cluster.token(user, "killed"))
        self.cluster.start(
            "killed-app", self.cluster.lab, "phone", "--url", self.cluster.app_url, "--wait-for-push", "-", "--token-file", token, "--device",
            "killed", takes_orders=True)
        key = f"{{u:{user}}}:devices"
        until(15, "an app registers for pushes", lambda: self.bench.shared_store.keys(key))
        return key

    def sum(self, name):
        return sum(node.metric(name) for node in self.cluster.nodes)

    def states(self):
        return [(node.json("/v1/nodes") or {}).get("state") for node in self.cluster.nodes]

    def say(self, *words):
        asked = Redis(self.cluster.redis[0], self.cluster.shared_store_host)
        said = asked.say(*words)
        asked.close()
        return said

    # ---- while it is ill

    def local(self, name):
        """Calls to users whose phone is at the node that the carrier calls: milliseconds from INVITE to 180, each."""
        count = 4 if self.bench.is_short else 20
        users = [user for user in self.spare if user not in self.used][:count]
        self.used += users
        self.phones.answers |= set(users)
        since = now()
        carrier = self.bench.dial(f"local-{name}", users, rate=5, talk=2, to=self.node)
        self.bench.wait(count / 5 + 12, lambda: not carrier.program.is_running)
        waits = []
        for call in carrier.read().values():
            waits += [at - call.invited for at, code in call.responses() if code == 180][:1]
        self.bench.check(f"local calls {name}: connected", self.phones.count("connected", users, since), len(users),
                         self.phones.count("connected", users, since) == len(users))
        return sorted(waits) or [float("inf")]

    def meanwhile(self, *wanted):
        """Calls begin, and those that rang are answered, while the shared store is as it is; `wanted`: what the nodes may say of it."""
        states = self.states()
        self.bench.check("the nodes say of the shared store", ", ".join(map(str, states)), " or ".join(wanted), all(state in wanted for state in states))
        during = self.local("meanwhile")
        middle, worst, more = during[len(during) // 2], during[-1], during[len(during) // 2] - self.before[len(self.before) // 2]
        self.bench.check(
            "their 180", f"{middle:.0f} ms in the middle, {worst:.0f} ms at most; {more:+.0f} ms to before", "≤ 100 ms more (5 ms for the scheduler)",
            more <= 105)
        since = now()
        self.phones.answers |= set(self.ringing)
        for user in self.ringing:
            self.phones.order(f"answer {user}")
        self.bench.wait(10, lambda: self.phones.count("connected", self.ringing, since) == len(self.ringing))
        answered = self.phones.count("connected", self.ringing, since)
        self.bench.check("what rang is answered meanwhile", answered, len(self.ringing), answered == len(self.ringing))

    # ---- after it

    def missing(self):
        """What the shared store lacks of all that the nodes have; nothing: None."""
        try:
            asked = Redis(self.cluster.redis[0], self.cluster.shared_store_host)
            living = {json.loads(asked.say("GET", key))["i"] for key in asked.keys("tl:{nodes}:lease:n?")}
            places = [json.loads(value)["i"] for key in asked.keys("tl:{u:*:where") for value in asked.hash(key).values()]
            entries = sum(asked.say("HLEN", key) for key in asked.keys("tl:{i:*:calls"))
            registrations = len(asked.keys("tl:" + self.registered))
            asked.close()
        except (OSError, ValueError, TypeError) as error:
            return str(error) or "no answer"
        calls = sum(len((node.json("/v1/calls") or {"calls": []})["calls"]) for node in self.cluster.nodes)
        found = {"up": (self.states().count("up"), 3), "leases": (len(living), 3), "calls": (entries, calls), "registrations": (registrations, 1),
                 "places": (sum(1 for place in places if place in living), len(self.bench.users))}
        return ", ".join(f"{what}: {count} of {wanted}" for what, (count, wanted) in found.items() if count != wanted) or None

    def back(self, healed, limit=15):
        """All of it is as before: leases, whereabouts, calls, registrations; and nobody noticed."""
        bench = self.bench
        bench.wait(limit, lambda: not self.missing())
        seconds, missing = (now() - healed) / 1_000, self.missing()
        bench.check("leases, whereabouts, calls and registrations", missing or f"back after {seconds:.1f} s", f"back in ≤ {limit} s",
                    not missing and seconds <= limit + 1)
        busiest = self.watch.busiest(healed / 1_000)
        bench.check("commands of a node in its busiest second after it", busiest, f"≤ {RESTORED + BESIDE}", busiest <= RESTORED + BESIDE)
        returned = [event for event in list(self.phones.events) if event["event"] in ("offline", "closed", "online") and event["at"] >= self.since]
        bench.check("sessions that broke: hellos", len(returned), "0", not returned)
        reaped = self.sum('trunkline_cluster_calls_reaped_total{kind="ringing"}') + self.sum('trunkline_cluster_calls_reaped_total{kind="connected"}')
        bench.check("calls reaped", f"{reaped:.0f}", "0", reaped == 0)
        self.alive()

    def alive(self):
        heard, first = self.phones.received(), self.packets
        self.packets = heard
        live = [user for user in self.connected if heard.get(user, 0) > first.get(user, 0)]
        hung = [call.number for call in self.talking.read().values() if call.bye]
        self.bench.check("established calls that hear speech, and no BYE", f"{len(live)}, {len(hung)} BYE", f"{len(self.connected)}, 0 BYE",
                         len(live) == len(self.connected) and not hung)

    def finish(self):
        self.watch.end()
        self.bench.settle()


def says(bench, text):
    """Every node's /readyz says so, and is 200."""
    bench.wait(8, lambda: all(text in (node.get("/readyz") or "") for node in bench.cluster.nodes))
    count = sum(text in (node.get("/readyz") or "") for node in bench.cluster.nodes)
    bench.check(f"/readyz of the nodes: {text}", f"200, {count} nodes", "200, 3 nodes", count == 3)


@row("shared-store-down", "Redis killed, and back after 15 min (2 with --short)", lines=pushes, sentinels=False)
def down(bench):
    outage = Outage(bench)
    bench.say("kill -9 of Redis")
    outage.redis.kill()
    began, lasts = time.monotonic(), 120 if bench.is_short else 900
    bench.wait(10, lambda: outage.states() == ["away"] * 3)
    outage.meanwhile("away")
    time.sleep(max(0, lasts - (time.monotonic() - began)))
    outage.alive()
    bench.say("Redis is started again")
    bench.cluster.start_redis(0)
    outage.back(now())
    outage.finish()


@row("shared-store-frozen", "Redis stopped by SIGSTOP for 20 s", lines=pushes, sentinels=False)
def frozen(bench):
    outage = Outage(bench)
    bench.say("SIGSTOP of Redis")
    outage.redis.process.send_signal(signal.SIGSTOP)
    bench.wait(10, lambda: outage.states() == ["away"] * 3)
    outage.meanwhile("away")
    time.sleep(10)
    outage.redis.process.send_signal(signal.SIGCONT)
    outage.back(now())
    outage.finish()


@row("shared-store-half-open", "no packet between the nodes and Redis, and no RST, for 20 s", lines=pushes, sentinels=False, path=True)
def half_open(bench):
    outage = Outage(bench)
    bench.say("the path swallows everything")
    bench.cluster.way.half_open(True)
    bench.wait(10, lambda: outage.states() == ["away"] * 3)
    outage.meanwhile("away")
    time.sleep(10)
    bench.cluster.way.half_open(False)
    outage.back(now())
    outage.finish()


@row("shared-store-slow", "each answer of Redis takes 200 ms", lines=pushes, sentinels=False, path=True)
def slow(bench):
    outage = Outage(bench)
    bench.say("100 ms there, 100 ms back")
    bench.cluster.way.delay = 0.1
    time.sleep(5)
    outage.meanwhile("up")
    time.sleep(5)
    bench.cluster.way.delay = 0
    outage.back(now())
    outage.finish()


@row("shared-store-full", "Redis has no memory left for 20 s", lines=pushes, sentinels=False)
def full(bench):
    outage = Outage(bench)
    bench.say("maxmemory 1")
    outage.say("CONFIG", "SET", "maxmemory", "1")
    bench.wait(15, lambda: outage.states() == ["isolated"] * 3)
    says(bench, "the node has no lease: the shared store refuses it: OOM")
    outage.meanwhile("isolated")
    time.sleep(10)
    outage.say("CONFIG", "SET", "maxmemory", "0")
    outage.back(now())
    outage.finish()


@row("shared-store-flushed", "FLUSHALL", lines=pushes, sentinels=False)
def flushed(bench):
    outage = Outage(bench)
    bench.say("FLUSHALL, and its scripts with it")
    outage.say("FLUSHALL")
    outage.say("SCRIPT", "FLUSH")
    outage.back(now())
    outage.meanwhile("up")
    outage.finish()


@row("shared-store-password", "another password, and every connection closed, for 20 s", lines=pushes, sentinels=False)
def password(bench):
    outage = Outage(bench)
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    asked.say("CONFIG", "SET", "requirepass", "another")
    for kind in ("normal", "pubsub"):
        asked.say("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
    bench.wait(10, lambda: outage.states() == ["away"] * 3)
    says(bench, "set password_file of cluster.shared_store")
    outage.meanwhile("away")
    time.sleep(10)
    asked.say("AUTH", "another")
    asked.say("CONFIG", "SET", "requirepass", "")
    outage.back(now())
    outage.finish()


@row("shared-store-primary", "the primary killed under Sentinel", lines=pushes, sentinels=True)
def primary(bench):
    outage = Outage(bench)
    bench.say("kill -9 of the primary")
    outage.redis.kill()
    killed = now()
    bench.wait(10, lambda: "up" not in outage.states())
    outage.meanwhile("away", "isolated", "up")
    replica = bench.cluster.redis[1]
    until(30, "Sentinel takes the replica", lambda: b"role:master" in Redis(replica, network.ENGINE).say("INFO", "replication"))
    bench.cluster.redis[0], bench.cluster.redis[1] = replica, bench.cluster.redis[0]
    outage.watch.end()
    outage.watch = Watch(replica, network.ENGINE)
    outage.back(killed, limit=30)
    outage.finish()
