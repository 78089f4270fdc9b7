"""Rows of the fault table about what login tokens grant: the shared store dies while users log in, tokens race, a node is behind, a shared store that has lost some or all."""
import json, os, sqlite3, subprocess, threading, time

import network
from bench import row
from shared_store import Redis
from load import Phones, Tokens, now
from programs import until


def claims(bench):
    """Any user may log in, with numbers of this prefix."""
    return "{ id: any, claims: { numbers: [ \"+1557\" ], max_numbers: 20 } }"


class Granted(Phones):
    """Phones whose tokens grant numbers: name → (numbers, iat). They log in at one node."""

    def __init__(self, cluster, node, grants, rate=200):
        tokens = Tokens(cluster)
        self.events, self.states, self.counts, self.answers, self.delay = [], {}, {}, set(grants), 0.2
        self.lock, self.names = threading.Lock(), list(grants)
        lines = []
        for name, (numbers, issued) in grants.items():
            tokens.claims = {**tokens.claims, "iat": issued, "trunkline": {"numbers": numbers}}
            lines.append(json.dumps({"name": name, "token": tokens.of(name, "phone"), "device": "phone"}))
        label = f"granted-{len(cluster.programs)}"
        path = cluster.write(label + ".jsonl", "\n".join(lines) + "\n")
        self.program = cluster.start(
            label, cluster.lab, "phones", "--phones", path, "--url", f"ws://{cluster.balancer_host}:{cluster.balancer}/n/{node.name}/v1/connect",
            "--media-address", cluster.apps, "--rate", rate, hears=self.hear, takes_orders=True)


class Grants:
    """What the shared store and each node's copy have, and who answers a number."""

    def __init__(self, bench):
        self.bench, self.cluster, self.calls = bench, bench.cluster, 0
        self.size = 40 if bench.is_short else 200
        self.issued = int(time.time()) - 3_600

    @staticmethod
    def number(index):
        return f"+1557{1_000_000 + index}"

    def grants(self, tag, count=None, first=0, later=0):
        """Each user has one number."""
        return {f"{tag}{index}": ([self.number(index)], self.issued + later) for index in range(first, first + (count or self.size))}

    def login(self, node, grants, rate=200):
        phones = Granted(self.cluster, node, grants, rate)
        until(60, "the users are online", lambda: phones.online() == len(grants))
        return phones

    def redis(self):
        return Redis(self.cluster.redis[0], self.cluster.shared_store_host)

    def stored(self):
        """number → users, in the shared store; nothing: it is away."""
        try:
            asked = self.redis()
            rows = asked.hash("tl:{grants}:rows")
            asked.close()
        except (OSError, TypeError):
            return None
        found = {}
        for user, value in rows.items():
            for number in value.decode().split("\n")[0].replace("-", "").split():
                found.setdefault("+" + number.lstrip("+"), []).append(user.decode())
        return found

    def copy(self, node):
        """number → users, in the node's own store."""
        found = {}
        file = sqlite3.connect(f"file:{self.cluster.path(node.name, 'trunkline.db')}?mode=ro", uri=True, timeout=5)
        try:
            for user, text in file.execute("SELECT user, claim FROM token_grant"):
                for number in json.loads(text).get("numbers", []):
                    found.setdefault(number, []).append(user)
        finally:
            file.close()
        return found

    def wanted(self, *grants):
        return {number: [user] for all_of in grants for user, (numbers, _) in all_of.items() for number in numbers}

    def check_all(self, wanted, when, seconds=30):
        """The shared store and every node have exactly these owners."""
        def views():
            return [self.stored()] + [self.copy(node) for node in self.cluster.nodes]
        self.bench.wait(seconds, lambda: all(view == wanted for view in views()))
        found = views()
        twice = sum(1 for view in found for users in (view or {}).values() if len(users) > 1)
        wrong = [sum(1 for number in set(wanted) | set(view or {}) if (view or {}).get(number) != wanted.get(number)) for view in found]
        self.bench.check(f"numbers with two owners; with another one than they should have: in Redis, at the nodes, {when}",
                         f"{twice}; {', '.join(map(str, wrong))}", "0; 0, 0, 0, 0", not twice and not any(wrong))

    def check_twice(self, when):
        """No number has two owners anywhere."""
        twice = sum(1 for view in [self.stored() or {}] + [self.copy(node) for node in self.cluster.nodes] for users in view.values() if len(users) > 1)
        self.bench.check(f"numbers with two owners, {when}", twice, "0", not twice)

    def ring(self, index, to=None):
        """(final response, user of the record) of a call to the number; by the edge, or straight to a node."""
        self.calls += 1
        name = f"granted-call-{self.calls}"
        self.bench.users[name] = self.number(index)
        carrier = self.bench.dial(name, [name], to=to, talk=0.5)
        del self.bench.users[name]
        self.bench.wait(20, lambda: not carrier.program.is_running)
        call = next(iter(carrier.read().values()))
        code = next((code for _, code in call.responses() if code >= 200), 0)
        self.bench.wait(3, lambda: any(record.get("sipCallId") == call.id for _, record in self.cluster.records()))
        users = [record.get("user") for _, record in self.cluster.records() if record.get("sipCallId") == call.id]
        return code, (users or [None])[-1]

    def check_ring(self, what, index, code, user, to=None, within=0):
        """`within`: seconds until the nodes know again where devices are; another user may answer at no time."""
        end = time.monotonic() + within
        while True:
            found = self.ring(index, to)
            is_right = found[0] == code and (user is None or found[1] == user)
            if is_right or time.monotonic() >= end or found[1] not in (None, user):
                return self.bench.check(what, f"{found[0]}, {found[1]}", f"{code}, {user}", is_right)

    def stale(self):
        return [int(node.metric("trunkline_cluster_grants_stale")) for node in self.cluster.nodes]

    def check_stale(self, wanted, when, seconds=40):
        self.bench.wait(seconds, lambda: self.stale() == wanted)
        found = self.stale()
        self.bench.check(f"users whose grants the shared store has lost, {when}", found, wanted, found == wanted)

    def up(self):
        until(30, "the nodes have the shared store again", lambda: all((node.json("/v1/nodes") or {}).get("state") == "up" for node in self.cluster.nodes))

    def settle(self):
        # of an INVITE that a node refused without a record, and of one to a number that no user has
        self.bench.settle(expects_refusals=self.calls)


@row("grants-killed", "Redis killed while users log in whose tokens grant numbers, and started again", sentinels=False, path=True, users=claims)
def killed(bench):
    grants = Grants(bench)
    nodes = bench.cluster.nodes
    first = grants.grants("a", grants.size // 2)
    second = grants.grants("b", grants.size // 2, first=grants.size // 2)
    held = grants.login(nodes[0], first)
    grants.check_all(grants.wanted(first), "at first")
    coming = Granted(bench.cluster, nodes[0], second, rate=50)
    asked = grants.redis()
    until(20, "some of them are written", lambda: asked.say("HLEN", "tl:{grants}:rows") > len(first) + 4)
    bench.say("kill -9 of Redis")
    bench.cluster.programs[0].kill()
    until(60, "the users are online", lambda: coming.online() == len(second))
    bench.check("users who log in meanwhile", f"{coming.online()} of {len(second)}", f"all {len(second)}", coming.online() == len(second))
    time.sleep(2)
    last = grants.size - 1
    grants.check_ring("a call to the last one's number, by the edge, without a shared store", last, 200, f"b{last}")
    grants.check_ring("the same at a node where the user did not log in", last, 503, None, to=nodes[1])
    grants.check_ring("a call to a number from before, there: the device is elsewhere", 0, 480, "a0", to=nodes[1])
    bench.cluster.start_redis(0)
    grants.up()
    grants.check_all(grants.wanted(first, second), "with the shared store again", 60)
    grants.check_ring("a call to the last one's number at another node", last, 200, f"b{last}", to=nodes[2], within=15)
    grants.check_ring("a call to a number that no user has", grants.size + 5, 404, None)
    grants.check_stale([0, 0, 0], "with the shared store again")
    for phones in (held, coming):
        phones.program.end()
    grants.settle()


@row("grants-twice", "two users log in at the same time at two nodes with tokens that name the same numbers", sentinels=False, users=claims)
def twice(bench):
    grants = Grants(bench)
    nodes = bench.cluster.nodes
    asked = grants.redis()
    asked.say("CONFIG", "SET", "slowlog-log-slower-than", "500")
    asked.say("SLOWLOG", "RESET")
    # of two tokens the later one has the number, and of two with the same iat the one of the lesser id
    half = grants.size // 2
    one = grants.grants("a")
    two = {**grants.grants("b", half, later=10), **grants.grants("b", half, first=half)}
    running = [Granted(bench.cluster, node, all_of) for node, all_of in ((nodes[0], one), (nodes[1], two))]
    refused = lambda phones: sum(1 for state in list(phones.states.values()) if state == "refused")
    bench.wait(30, lambda: all(phones.online() + refused(phones) == grants.size for phones in running))
    found = ", ".join(f"{phones.online()} + {refused(phones)}" for phones in running)
    bench.check("users who are online + refused, because another user has the number", found, f"{grants.size} in all, of each node",
                all(phones.online() + refused(phones) == grants.size for phones in running))
    wanted = {grants.number(index): [f"{'b' if index < half else 'a'}{index}"] for index in range(grants.size)}
    # the b that was refused because it came after a has no row, and an a that was refused because it came after b neither
    grants.bench.wait(30, lambda: len({json.dumps(view, sort_keys=True) for view in [grants.stored()] + [grants.copy(node) for node in nodes]}) == 1)
    grants.check_twice("at the end")
    owners = grants.stored()
    late = [number for number, users in wanted.items() if int(users[0][1:]) < half and owners.get(number) != users]
    bench.check("numbers that the later token does not have", len(late), "0", not late)
    views = [owners] + [grants.copy(node) for node in nodes]
    differing = sum(1 for number in wanted if len({json.dumps(view.get(number)) for view in views}) > 1)
    bench.check("numbers of which two nodes name different users", differing, "0", differing == 0)
    longest = max((entry[2] for entry in asked.say("SLOWLOG", "GET", "128")), default=0) / 1_000
    bench.check("the shared store's longest command", f"{longest:.1f} ms", "≤ 100 ms", longest <= 100)
    for phones in running:
        phones.program.end()
    grants.settle()


@row("grants-behind", "a node that is cut off from the shared store while numbers are granted and move", sentinels=False, users=claims)
def behind(bench):
    grants = Grants(bench)
    nodes, away = bench.cluster.nodes, bench.node("n3")
    half = grants.size // 2
    first = grants.grants("a", half)
    held = [grants.login(nodes[0], first)]
    grants.check_all(grants.wanted(first), "at first")
    bench.say("n3 is cut off from the shared store")
    bench.net.cut(away.inside, network.ENGINE)
    until(20, "the others miss n3", lambda: "n3" not in bench.shared_store.incarnations())
    moved, new = grants.grants("b", 10, later=10), grants.grants("c", half, first=half)
    held += [grants.login(nodes[1], {**moved, **new})]
    time.sleep(2)
    grants.check_twice("meanwhile")
    grants.check_ring("a call to a new number at n3", half, 503, None, to=away)
    grants.check_ring("a call to a new number by the edge", half, 200, f"c{half}")
    grants.check_ring("a call to an unchanged number at n3: the device is elsewhere", half - 1, 480, f"a{half - 1}", to=away)
    bench.net.mend(away.inside)
    grants.up()
    wanted = {**grants.wanted(first), **grants.wanted(moved, new)}
    grants.check_all(wanted, "when n3 is back")
    grants.check_ring("a call to a moved number at n3", 0, 200, "b0", to=away, within=15)
    grants.check_ring("a call to a new number at n3", half, 200, f"c{half}", to=away, within=15)
    grants.check_ring("a call to a number that no user has, at n3", grants.size + 5, 404, None, to=away)
    for phones in held:
        phones.program.end()
    grants.settle()


@row("grants-failover", "a replica that lost the last second's grants takes over", sentinels=False, path=True, users=claims)
def failover(bench):
    grants = Grants(bench)
    nodes, cluster = bench.cluster.nodes, bench.cluster
    host, replica = cluster.shared_store_host, cluster.redis[1]
    program = cluster.start("replica", cluster.tools["redis-server"], "--port", replica, "--bind", host, "--protected-mode", "no", "--save", "",
                            "--replicaof", host, cluster.redis[0])
    cluster.await_port(program, replica, host)
    first = grants.grants("a")
    held = [grants.login(nodes[0], first)]
    grants.check_all(grants.wanted(first), "at first")
    asked = Redis(replica, host)
    until(30, "the replica has them", lambda: asked.say("HLEN", "tl:{grants}:rows") == len(first))
    asked.say("REPLICAOF", "NO", "ONE")
    moved = grants.grants("b", grants.size // 2, later=10)
    held += [grants.login(nodes[1], moved)]
    wanted = {**grants.wanted(first), **grants.wanted(moved)}
    grants.check_all(wanted, "before the primary dies")
    bench.say("kill -9 of the primary; the replica, without the last grants, is the shared store")
    cluster.way.target = (host, replica)
    cluster.programs[0].kill()
    cluster.redis[0], cluster.redis[1] = replica, cluster.redis[0]
    grants.up()
    grants.check_all(wanted, "after the failover")
    grants.check_stale([0, 0, 0], "after the failover")
    grants.check_ring("a call to a moved number", 0, 200, "b0", to=nodes[2], within=15)
    for phones in held:
        phones.program.end()
    grants.settle()


@row("grants-flushed", "FLUSHALL under grants, a node without its own copy, and restore", sentinels=False, users=claims)
def flushed(bench):
    grants = Grants(bench)
    nodes, cluster = bench.cluster.nodes, bench.cluster
    first = grants.grants("a")
    half = grants.size // 2
    # those of n1 stay logged in
    here = {name: grant for name, grant in first.items() if int(name[1:]) < half}
    gone = {name: grant for name, grant in first.items() if int(name[1:]) >= half}
    held, leaving = grants.login(nodes[0], here), grants.login(nodes[1], gone)
    grants.check_all(grants.wanted(first), "at first")
    leaving.program.end()
    bench.say("half of the users leave; their sessions may be resumed for 2 minutes")
    time.sleep(130)
    asked = grants.redis()
    asked.say("FLUSHALL")
    grants.check_stale([len(gone)] * 3, "after the flush")
    bench.wait(10, lambda: grants.stored() == grants.wanted(here))
    bench.check("users whom the nodes wrote again: those with a session", len(grants.stored() or {}), len(here), grants.stored() == grants.wanted(here))
    bench.say("n3 starts without a store of its own")
    away = bench.node("n3")
    away.program.end(repeats=True)
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(cluster.path("n3", "trunkline.db" + suffix)):
            os.remove(cluster.path("n3", "trunkline.db" + suffix))
    cluster.start_gateway(away)
    cluster.await_whole()
    until(30, "n3 has what the shared store has", lambda: grants.copy(away) == grants.wanted(here))
    time.sleep(3)
    last = grants.size - 1
    grants.check_ring("a call to a lost number at n3", last, 503, None, to=away)
    grants.check_ring("a call to a lost number at a node with a copy: no device", last, 480, f"a{last}", to=nodes[0])
    grants.check_ring("a call to a lost number by the edge", last, 480, f"a{last}")
    grants.check_ring("a call to a number of a user with a session at n3", 0, 200, "a0", to=away, within=15)
    grants.check_ring("a call to a number that no user has at a node with a copy", grants.size + 5, 404, None, to=nodes[0])
    made = subprocess.run([*nodes[1].inside, cluster.gateway, "users", "restore", "--config", cluster.path("n2", "gateway.yaml")], capture_output=True, text=True)
    bench.check("trunkline users restore", made.stdout.strip() or made.stderr.strip(), f"grants of {len(gone)} users …", made.stdout.startswith(f"grants of {len(gone)} users"))
    grants.check_stale([0, 0, 0], "restored")
    grants.check_all(grants.wanted(first), "restored")
    grants.check_ring("a call to a lost number at n3: no device", last, 480, f"a{last}", to=away)
    grants.check_ring("a call to a number that no user has at n3", grants.size + 5, 404, None, to=away)
    held.program.end()
    grants.settle()
