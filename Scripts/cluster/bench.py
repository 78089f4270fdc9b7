"""A cluster under load in a network of its own, what is done to it, and what is counted on both sides. Rows of the fault table are functions of a `Bench`."""
import os, secrets, struct, subprocess, threading, time

import network
from shared_store import Path
from layout import Cluster, Node
from load import Carrier, SharedStore, Phones, Pushes, now
from programs import Failure, Ports, require, until

ROWS = []
WALL_CLOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wallclock.c")


class Row:
    def __init__(self, name, title, function, options):
        self.name, self.title, self.function, self.options = name, title, function, options


def row(name, title, **options):
    """Registers a row of the table. Options: `sentinels` (default: not with --short), `lines(bench)`: further lines of the nodes' configuration,
    `users(bench)`: a further entry of their `users`; `pushes`: phones that ring can be woken by push; `lost_after`: with --short; `nodes`: how many;
    `path`: nodes reach a Redis without Sentinels by an `shared_store.Path`; `clock`: the node whose wall clock `BenchCluster.shift` moves; `other`: the
    node that is the program of --other, if there is one."""
    def add(function):
        ROWS.append(Row(name, title, function, options))
        return function
    return add


class Sizes:
    """Calls and devices of a row."""

    def __init__(self, is_short):
        self.ringing, self.connected, self.idle = (6, 10, 60) if is_short else (20, 50, 500)
        # roll: calls, a second, seconds each
        self.calls, self.rate, self.talk = (20, 2, 4) if is_short else (200, 2, 15)

    @property
    def phones(self):
        # those at one node, a third of all, must be enough for its calls
        return max(self.idle + self.ringing + self.connected, 8 * (self.ringing + self.connected))


class BenchNode(Node):
    """A node in a namespace of its own, with the ports that it would have on a machine of its own."""
    scheme, token = "https", None

    def __init__(self, name, address, inside):
        self.name, self.host, self.inside = name, address, inside
        self.sip, self.app, self.admin, self.media, self.program = 5060, 8443, 7060, 20_000, None


class BenchCluster(Cluster):
    shared_store_host, edge_host, balancer_host, carrier_host, apps = (
        network.ENGINE, network.EDGE, network.BALANCER, network.CARRIER, network.APPS)
    balancer_tls = f" ssl verify none source {network.BALANCER}"

    def __init__(self, bench, folder):
        self.bench, self.users, self.has_sentinels = bench, bench.users, bench.has_sentinels
        more = bench.row.options.get("users")
        self.more_users = [more(bench)] if more else []
        super().__init__(bench.binaries, bench.deploy, folder, bench.say)
        self.way = None
        self.admin_token = secrets.token_hex(16)
        self.write("admin.token", self.admin_token + "\n")
        self.make_certificate()
        for node in self.nodes:
            node.token = self.admin_token

    def start_shared_store(self):
        super().start_shared_store()
        if self.bench.row.options.get("path"):
            self.way = Path(self.ports.one(self.shared_store_host), self.redis[0], self.shared_store_host)

    def stop(self):
        super().stop()
        if self.way:
            self.way.end()

    def start_gateway(self, node):
        options, serve = self.bench.row.options, ["serve", "--config", self.path(node.name, "gateway.yaml")]
        if node.name == options.get("clock"):
            library, clock = self.path("wallclock.so"), self.path("clock")
            made = subprocess.run([require("gcc")["gcc"], "-shared", "-fPIC", "-O1", "-o", library, WALL_CLOCK, "-ldl"], capture_output=True, text=True)
            if made.returncode:
                raise Failure("gcc: " + made.stderr)
            self.shift(0)
            node.program = self.start(node.name, *node.inside, "env", "LD_PRELOAD=" + library, "WALLCLOCK=" + clock, self.gateway, *serve)
        elif node.name == options.get("other") and self.bench.other:
            node.program = self.start(node.name, *node.inside, self.bench.other, *serve)
        else:
            super().start_gateway(node)

    def shift(self, seconds):
        """The program has the file mapped: it is written in place."""
        with open(self.path("clock"), "r+b" if os.path.exists(self.path("clock")) else "wb") as file:
            file.write(struct.pack("q", seconds))

    def make_nodes(self):
        places = list(self.bench.places.items())[:self.bench.row.options.get("nodes", 3)]
        return [BenchNode(name, *place) for name, place in places]

    def make_certificate(self):
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj",
             "/CN=cluster", "-addext", "subjectAltName=" + ",".join("IP:" + node.host for node in self.nodes), "-keyout", self.path("app.key"), "-out", self.path("app.pem")], capture_output=True, text=True)
        if made.returncode:
            raise Failure("openssl: " + made.stderr)

    def configuration(self, node):
        """As the demo's, on addresses that are not loopback."""
        shared_store = (f"sentinels: [ {', '.join(f'{self.shared_store_host}:{port}' for port in self.sentinels)} ], name: trunkline" if self.has_sentinels
                  else f"redis: {self.shared_store_host}:{self.way.port if self.way else self.redis[0]}")
        users = ", ".join([f'{{ id: {name}, numbers: [ "{number}" ] }}' for name, number in self.users.items()] + self.more_users)
        lost_after = self.bench.row.options.get("lost_after", "5s")
        clocks = f"\n  lease: 2s\n  lost_after: {lost_after}" if self.bench.is_short else ""
        lines = f"""cluster:
  node: {node.name}
  url: ws://{self.balancer_host}:{self.balancer}/n/{node.name}/v1/connect
  shared_store: {{ {shared_store}, tls: off }}
  key_file: ../cluster.key
  edges: {{ peers: [ {self.edge_host}/32 ], sip: "sip:{self.edge_host}:{self.edge};transport=tcp", http: [ {self.balancer_host}/32 ] }}{clocks}
listen:
  sip: {{ udp: {node.host}:{node.sip}, tcp: {node.host}:{node.sip} }}
  app: {{ address: {node.host}:{node.app}, tls: {{ cert: ../app.pem, key: ../app.key }} }}
  admin: {{ address: {node.host}:{node.admin}, token_file: ../admin.token }}
media: {{ addresses: [ {node.host} ], threads: 1, app_port: 19998, trunk_ports: 20000-21999 }}
limits: {{ sessions_per_address: 5000 }}
auth: {{ jwt: {{ key_file: ../jwt.key }} }}
trunks: [ {{ name: carrier, uri: "sip:{self.carrier_host}:{self.carrier}", peers: [ {self.carrier_host} ] }} ]
users: [ {users} ]
routes: {{ inbound: [ {{ trunk: carrier, to: users }} ], outbound: [ {{ prefix: "+", trunk: carrier }} ] }}
"""
        if self.bench.row.options.get("pushes"):
            lines += Pushes.configuration(f"ws://{self.balancer_host}:{self.balancer}/v1/connect")
        return lines + "".join(line + "\n" for line in self.bench.lines)


class Check:
    def __init__(self, what, found, wanted, is_right):
        self.what, self.found, self.wanted, self.is_right = what, found, str(wanted), is_right


class Bench:
    """One row's cluster. `say` prints a line of progress."""

    def __init__(self, net, row, binaries, deploy, folder, places, is_short, say, other=None):
        self.net = net
        self.row, self.binaries, self.deploy, self.folder, self.places, self.is_short = row, binaries, deploy, folder, places, is_short
        # Users whose calls are nobody's but the row's.
        self.apart = set()
        self.say, self.checks, self.carriers, self.began = say, [], [], time.monotonic()
        self.sizes, self.other = Sizes(is_short), other
        self.has_sentinels = row.options.get("sentinels", not is_short)
        self.lines = row.options.get("lines", lambda bench: [])(self)
        self.name_users()
        self.cluster, self.phones, self.shared_store, self.pushes = None, None, None, None

    def name_users(self):
        self.users = {f"u{number}": f"+1555{1_000_000 + number}" for number in range(self.sizes.phones)}

    def resize(self, ringing, connected, idle):
        self.sizes.ringing, self.sizes.connected, self.sizes.idle = ringing, connected, idle
        self.name_users()

    # ---- up and down

    def start(self):
        self.say("Redis, edges, three nodes …")
        self.cluster = BenchCluster(self, self.folder)
        self.cluster.start_shared_store()
        self.cluster.start_edges()
        if self.row.options.get("pushes"):
            self.pushes = Pushes(self.cluster)
        self.cluster.start_gateways()
        self.shared_store = SharedStore(self.cluster)
        for node in self.cluster.nodes:
            until(15, f"HAProxy has {node.name}", lambda: self.cluster.balances(node))
        self.say(f"{len(self.users)} phones …")
        self.phones = Phones(self.cluster, list(self.users))
        until(90, "all phones are online", lambda: self.phones.online() == len(self.users))

    def stop(self):
        if self.pushes:
            self.pushes.stop()
        if self.cluster:
            self.cluster.stop()
        for _, inside in self.places.values():
            # of a row that failed while it was cut
            subprocess.run([*inside, "nft", "flush", "ruleset"], capture_output=True)

    def node(self, name):
        return next(node for node in self.cluster.nodes if node.name == name)

    def metric(self, line):
        """The sum of a metric over all nodes that run."""
        return sum(node.metric(line) for node in self.cluster.nodes if node.program.is_running)

    def others(self, node):
        return [other for other in self.cluster.nodes if other is not node and other.program.is_running]

    def users_at(self, node):
        rows = (node.json("/v1/devices") or {"devices": []})["devices"]
        return [row["user"] for row in rows if row.get("connected") and row["user"] in self.users and row["user"] not in self.apart]

    # ---- load

    def dial(self, name, users, **options):
        carrier = Carrier(self.cluster, name, [self.users[user] for user in users], **options)
        self.carriers.append(carrier)
        return carrier

    def load(self, node):
        """Ringing and connected calls at one node: (carrier, users) of each."""
        users = self.users_at(node)
        wanted = self.sizes.ringing + self.sizes.connected
        if len(users) < wanted:
            raise Failure(f"{len(users)} phones at {node.name}, {wanted} are needed")
        connected, ringing = users[:self.sizes.connected], users[self.sizes.connected:wanted]
        self.phones.answers |= set(connected)
        self.say(f"{len(connected)} calls that are answered and {len(ringing)} that ring, all at {node.name} …")
        talking = self.dial("talking", connected, rate=10)
        until(30, "the calls are connected", lambda: self.phones.count("connected", connected) == len(connected))
        if self.pushes:
            self.pushes.register(self.phones, ringing)
        calling = self.dial("ringing", ringing)
        until(30, "the phones ring", lambda: self.phones.count("ringing", ringing) == len(ringing))
        time.sleep(1.5)
        here = {row["user"] for row in node.json("/v1/calls")["calls"]}
        elsewhere = [user for user in connected + ringing if user not in here]
        if elsewhere:
            raise Failure(f"calls of {elsewhere} are not at {node.name}")
        return (talking, connected), (calling, ringing)

    # ---- what is found

    def check(self, what, found, wanted, is_right):
        self.checks.append(Check(what, str(found), wanted, bool(is_right)))
        self.say(f"  {'ok   ' if is_right else 'WRONG'} {what}: {found} (wanted: {wanted})")

    def check_times(self, what, since, times, count, limit, share=1.0):
        """Of `count` things, `share` happened within `limit` seconds of `since`; `times`: milliseconds since 1970."""
        after = sorted((at - since) / 1_000 for at in times)
        good = sum(1 for seconds in after if seconds <= limit)
        found = f"{good} of {count}" + (f", {after[len(after) // 2]:.1f} s in the middle, {after[-1]:.1f} s at most" if after else "")
        self.check(what, found, f"{share:.0%} in ≤ {limit:g} s", good >= share * count)

    def wait(self, seconds, condition):
        """Until something is so, or the time is over; whether it is."""
        try:
            return until(seconds, "", condition)
        except Failure:
            return condition()

    # ---- the end

    def settle(self, expects_refusals=0):
        """Hangs up what is left, and counts: records of all nodes against the carrier's INVITEs, and what is left."""
        cluster = self.cluster
        def over():
            self.phones.order("hangup *")
            return all(not carrier.program.is_running for carrier in self.carriers)
        end = time.monotonic() + 20
        while time.monotonic() < end and not over():
            time.sleep(1)
        self.wait(15, lambda: all(not row for node in cluster.nodes if node.program.is_running
                                  for row in [(node.json("/v1/calls") or {"calls": []})["calls"]]))
        calls = {}
        for carrier in self.carriers:
            calls.update(carrier.read())
        self.wait(10, lambda: set(calls) <= {record.get("sipCallId") for _, record in cluster.records()})
        self.account(calls, cluster.records(), expects_refusals)
        self.wait(8, lambda: not self.shared_store.calls())
        left = self.shared_store.calls()
        self.check("calls left in the shared store", left or "none", "none", not left)

    def check_gone(self, incarnation):
        """Nothing of a dead incarnation is left but claims, which end by themselves."""
        def left():
            keys = self.shared_store.keys("{i:" + incarnation + "*")
            return [key for key in keys if ":reap:" not in key or not 0 < int(self.shared_store.ask("ttl", key)[0]) <= 7 * 86_400]
        self.wait(8, lambda: not left())
        self.check("the dead node's keys in the shared store", left() or "none", "none but claims that end", not left())
        self.wait(8, lambda: incarnation not in self.shared_store.places())
        stale = self.shared_store.places().get(incarnation, 0)
        self.check("devices that are still at the dead node", stale or "none", "none", not stale)

    def account(self, calls, records, expects_refusals):
        """Each INVITE has its record; only a call that a dead node had has one more, of the node that rang it again."""
        by_call = {}
        for node, record in records:
            by_call.setdefault(record["call"], []).append(node)
        twice = {call: nodes for call, nodes in by_call.items() if len(nodes) > 1}
        self.check("calls with two records", len(twice) or "none", "none", not twice)
        by_invite = {}
        for _, record in records:
            by_invite.setdefault(record.get("sipCallId"), []).append(record)
        lost = sum(1 for found in by_invite.values() for record in found if self.is_moved(record))
        refused = [call for call in calls.values() if call.id not in by_invite]
        self.check(
            "INVITEs of the carrier = records − calls that rang again + refusals", f"{len(calls)} = {len(records)} − {lost} + {len(refused)}",
            "equal", len(calls) == len(records) - lost + len(refused) and len(refused) <= expects_refusals)

    @staticmethod
    def is_moved(record):
        """A dead node's call that rang: the next node's call of the same INVITE has a record, too."""
        return record["end"].get("detail") == "node lost" and not record["times"].get("connected")
