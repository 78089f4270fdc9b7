"""The parts of the cluster, configured by the files of Deploy: their addresses, folders and TLS alone are other ones here."""
import json, os, re, secrets, subprocess

from programs import Failure, Ports, Program, accepts, get, require, until

HOST, EDGE, CARRIER = "127.0.0.1", "127.0.0.9", "127.0.0.2"
USERS = {name: f"+1555123000{number}" for number, name in enumerate(["alice", "bob", "carol", "dave", "erin", "frank"], 1)}


class Node:
    # What stands before a command that runs where the node is, the bearer token of its admin port, how its app port is asked.
    host, inside, token, scheme = HOST, [], None, "http"

    def __init__(self, name, ports):
        self.name, self.sip, self.app, self.admin = name, ports.one(), ports.one(), ports.one()
        self.media = ports.row(42)
        self.program = None

    def get(self, path):
        return get(f"http://{self.host}:{self.admin}{path}", self.token)

    def json(self, path):
        text = self.get(path)
        return json.loads(text) if text else None

    @property
    def is_ready(self):
        """Whether the edge for apps hears that it takes sessions."""
        return get(f"{self.scheme}://{self.host}:{self.app}/v1/ready") is not None

    def metric(self, line):
        """A metric by its name and labels as printed; 0 if it is not there."""
        for row in (self.get("/metrics") or "").splitlines():
            if row.startswith(line + " "):
                return float(row.rsplit(" ", 1)[1])
        return 0.0


class Cluster:
    shared_store_host, edge_host, balancer_host, carrier_host = HOST, EDGE, HOST, CARRIER
    users = USERS
    has_sentinels = True
    # What takes the place of TLS between HAProxy and the nodes.
    balancer_tls = ""

    def __init__(self, binaries, deploy, folder, say):
        self.deploy, self.folder, self.say, self.ports, self.programs = deploy, folder, say, Ports(), []
        self.tools = require("redis-server", "redis-cli", "kamailio", "haproxy")
        self.gateway, self.lab = (os.path.join(binaries, name) for name in ("trunkline", "trunkline-lab"))
        for path in (self.gateway, self.lab):
            if not os.access(path, os.X_OK):
                raise Failure(f"no {path}")
        self.redis = [self.ports.one(), self.ports.one()]
        self.sentinels = [self.ports.one() for _ in range(3)]
        self.edge, self.balancer = self.ports.one(self.edge_host), self.ports.one(self.balancer_host)
        self.carrier, self.figures = self.ports.one(self.carrier_host), self.ports.one()
        self.nodes = self.make_nodes()

    def make_nodes(self):
        return [Node(name, self.ports) for name in ("n1", "n2", "n3")]

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def deployed(self, name, *changes):
        """A file of Deploy with each (pattern, replacement) made; a pattern that is not there is a Failure."""
        with open(os.path.join(self.deploy, name)) as file:
            text = file.read()
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
            if not count:
                raise Failure(f"Deploy/{name} has no {pattern}")
        return text

    def start(self, name, *arguments, **options):
        program = Program(name, [str(argument) for argument in arguments], self.folder, **options)
        self.programs.append(program)
        return program

    def stop(self):
        """Those that were started last, first."""
        gateways = [node.program for node in self.nodes]
        for program in reversed(self.programs):
            program.end(repeats=program in gateways)

    # ---- the shared store

    def start_shared_store(self):
        # without a password Redis answers on loopback alone
        opened = "" if self.shared_store_host == HOST else "\nprotected-mode no\n"
        for number, port in enumerate(self.redis if self.has_sentinels else self.redis[:1]):
            name = f"redis-{number + 1}"
            os.makedirs(self.path(name))
            text = self.deployed(
                "redis/redis.conf", (r"^port .*", f"port {port}"), (r"^dir .*", f"dir {self.path(name)}"), (r"^bind .*", f"bind {self.shared_store_host}"))
            text += f"\nreplicaof {self.shared_store_host} {self.redis[0]}\n" if number else ""
            self.write(name + ".conf", text + opened)
            self.start_redis(number)
        if not self.has_sentinels:
            return
        for number, port in enumerate(self.sentinels):
            name = f"sentinel-{number + 1}"
            os.makedirs(self.path(name))
            text = self.deployed(
                "redis/sentinel.conf", (r"^port .*", f"port {port}"), (r"^dir .*", f"dir {self.path(name)}"), (r"^bind .*", f"bind {self.shared_store_host}"),
                (r"^sentinel monitor .*", f"sentinel monitor trunkline {self.shared_store_host} {self.redis[0]} 2"))
            program = self.start(name, self.tools["redis-server"], self.write(name + ".conf", text + opened), "--sentinel")
            self.await_port(program, port, self.shared_store_host)
        until(20, "the replica follows, and the Sentinels see each other", lambda: "num-other-sentinels\n2" in self.ask_sentinel()
              and "num-slaves\n1" in self.ask_sentinel())

    def start_redis(self, number):
        """The first is the primary; one that was killed is there again with what it had on disk."""
        name = f"redis-{number + 1}"
        program = self.start(name, self.tools["redis-server"], self.path(name + ".conf"))
        self.await_port(program, self.redis[number], self.shared_store_host)

    def ask_sentinel(self):
        return subprocess.run(
            [self.tools["redis-cli"], "-h", self.shared_store_host, "-p", str(self.sentinels[0]), "sentinel", "master", "trunkline"], capture_output=True, text=True).stdout

    def await_port(self, program, port, host=HOST):
        def is_there():
            if not program.is_running:
                raise Failure(f"{program.name} ended:\n{program.tail()}")
            return accepts(port, host)
        until(15, f"{program.name} at {host}:{port}", is_there)

    # ---- gateways

    def start_gateways(self):
        for name in ("jwt.key", "cluster.key"):
            self.write(name, secrets.token_hex(32) + "\n")
        for node in self.nodes:
            self.write(f"{node.name}/gateway.yaml", self.configuration(node))
            self.start_gateway(node)
        self.await_whole()

    def start_gateway(self, node):
        node.program = self.start(node.name, *node.inside, self.gateway, "serve", "--config", self.path(node.name, "gateway.yaml"))

    def await_whole(self):
        def is_whole(node):
            if not node.program.is_running:
                raise Failure(f"{node.name} ended:\n{node.program.tail()}")
            seen = node.json("/v1/nodes")
            living = [row for row in seen["nodes"] if row["liveness"] == "living"] if seen else []
            return seen and seen["state"] == "up" and len(living) == len(self.nodes) and node.is_ready
        for node in self.nodes:
            until(30, f"{node.name} sees {len(self.nodes)} living nodes", lambda: is_whole(node))

    def configuration(self, node):
        sentinels = ", ".join(f"{HOST}:{port}" for port in self.sentinels)
        users = ", ".join(f'{{ id: {name}, numbers: [ "{number}" ] }}' for name, number in self.users.items())
        return f"""cluster:
  node: {node.name}
  url: ws://{HOST}:{self.balancer}/n/{node.name}/v1/connect
  shared_store: {{ sentinels: [ {sentinels} ], name: trunkline }}
  key_file: ../cluster.key
  edges: {{ peers: [ {EDGE}/32 ], sip: "sip:{EDGE}:{self.edge};transport=tcp", http: [ {HOST}/32 ] }}
listen:
  sip: {{ udp: {HOST}:{node.sip}, tcp: {HOST}:{node.sip} }}
  app: {{ address: {HOST}:{node.app} }}
  admin: {HOST}:{node.admin}
media: {{ addresses: [ {HOST} ], threads: 1, app_port: {node.media + 40}, trunk_ports: {node.media}-{node.media + 39} }}
auth: {{ jwt: {{ key_file: ../jwt.key }} }}
trunks: [ {{ name: carrier, uri: "sip:{CARRIER}:{self.carrier}" }} ]
users: [ {users} ]
routes: {{ inbound: [ {{ trunk: carrier, to: users }} ], outbound: [ {{ prefix: "+", trunk: carrier }} ] }}
"""

    # ---- edges

    def start_edges(self):
        self.write("edge/nodes.list", "".join(f"1 sip:{node.host}:{node.sip};transport=tcp\n" for node in self.nodes))
        self.write("edge/trunks.list", f"1 {self.carrier_host} 32 0 carrier\n")
        text = self.deployed(
            "kamailio/kamailio.cfg", ("!EDGE_ADDRESS!.*!", f"!EDGE_ADDRESS!{self.edge_host}!"), ("!EDGE_PORT!.*!", f"!EDGE_PORT!{self.edge}!"),
            ("!LISTS!.*!", f"!LISTS!{self.path('edge')}!"), ("!CONTROL_SOCKET!.*!", f"!CONTROL_SOCKET!{self.path('edge', 'control')}!"))
        edge = self.start("kamailio", self.tools["kamailio"], "-f", self.write("edge/kamailio.cfg", text), "-DD", "-E", "-m", 32, "-M", 8)
        self.await_port(edge, self.edge, self.edge_host)
        text = self.deployed(
            "haproxy/haproxy.cfg", (r"^\tlog /dev/log .*", "\tlog stderr format raw local0 notice"),
            (r"^\tbind :443 .*", f"\tbind {self.balancer_host}:{self.balancer}"), (r"^\tbind 127.0.0.1:8404", f"\tbind {HOST}:{self.figures}"),
            (r" ssl verify required .*", self.balancer_tls), (r"^\tmaxconn .*", "\tmaxconn 5000"),
            *[(rf"^\tserver {node.name} .*", f"\tserver {node.name} {node.host}:{node.app}") for node in self.nodes])
        # With TLS gone, one of the defaults has nothing left to say.
        text = re.sub(r"^\tdefault-server *\n", "", text, flags=re.MULTILINE)
        balancer = self.start("haproxy", self.tools["haproxy"], "-db", "-f", self.write("haproxy.cfg", text))
        self.await_port(balancer, self.balancer, self.balancer_host)

    def balances(self, node):
        """HAProxy sends new sessions to it."""
        return f'haproxy_server_status{{proxy="nodes",server="{node.name}",state="UP"}} 1' in (get(f"http://{HOST}:{self.figures}/metrics") or "")

    # ---- peers

    @property
    def app_url(self):
        """Where an app connects: any node takes it."""
        return f"ws://{self.balancer_host}:{self.balancer}/v1/connect"

    def token(self, user, device):
        made = subprocess.run(
            [self.gateway, "token", "--user", user, "--device", device, "--config", self.path("n1", "gateway.yaml")],
            capture_output=True, text=True)
        if made.returncode:
            raise Failure("trunkline token: " + made.stderr)
        return made.stdout.strip()

    def phone(self, user, answer_after):
        token = self.write(f"{user}.jwt", self.token(user, "phone"))
        program = self.start(
            f"phone-{user}", self.lab, "phone", "--url", self.app_url, "--token-file", token, "--device", "phone", "--answer",
            "--answer-after", answer_after, "--events", "--repeat", "--record", f"heard-by-{user}.wav", reads_events=True)
        until(15, f"{user}'s phone is online (see {program.log_path})", lambda: program.first("online"))
        return program

    def call(self, user, talk):
        """A carrier that calls the user by the edge, and hangs up so many seconds after the answer."""
        name = f"carrier-{len(self.programs)}"
        program = self.start(
            name, self.lab, "trunk", "--call", self.users[user], "--talk", talk, "--listen", f"{self.carrier_host}:{self.ports.one(self.carrier_host)}",
            "--gateway", f"{self.edge_host}:{self.edge}", "--events", "--repeat", "--record", name + ".wav", reads_events=True)
        program.recording = self.path(name + ".wav")
        return program

    def nodes_of(self, path, user):
        """The nodes that show a row of this user there: `/v1/devices` (connected ones), `/v1/calls`."""
        def has(node):
            rows = node.json(path)
            rows = rows if isinstance(rows, list) else next(iter((rows or {}).values()), [])
            return any(row["user"] == user and row.get("connected", True) for row in rows)
        return [node for node in self.nodes if node.program.is_running and has(node)]

    def records(self):
        """Every node's records, with the node that wrote each."""
        found = []
        for node in self.nodes:
            try:
                with open(self.path(node.name, "calls.jsonl")) as file:
                    found += [(node.name, json.loads(line)) for line in file]
            except FileNotFoundError:
                pass
        return found
