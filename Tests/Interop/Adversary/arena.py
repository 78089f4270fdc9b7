"""The gateway under attack, the calls that it carries, and the honest user beside it; each ends its processes by their own ids."""
import json, os, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/attacks")
import common
from processes import CORES, Failure, Process, Watch, die_with_parent, free_ports, lab

KEY = "0123456789abcdef0123456789abcdef"


class Gateway:
    """`trunkline serve` of three kinds: `plain` on 127.0.0.1; `tls` on [::] with TLS and a trunk that takes guests; `small` with 256
    descriptors. Others are in `asked.py`."""

    ready_within = 15
    # Of the process; None leaves what there is.
    descriptors = None

    def __init__(self, binary, kind, users):
        self.binary, self.kind = os.path.abspath(binary), kind
        self.folder = tempfile.mkdtemp(prefix="trunkline-adversary-")
        self.processes, self.calls = [], 0
        self.tls = kind == "tls"
        self.sip, self.siptls, self.app, self.admin, self.carrier, self.other = free_ports(6)
        self.media, self.trunk_ports = 21_998, (20_000, 20_999)
        self.write(users)

    def write(self, users):
        listen = f"sip: {{ udp: 127.0.0.1:{self.sip}, tcp: 127.0.0.1:{self.sip}, tls: {{ address: 127.0.0.1:{self.siptls}, cert: own.pem, key: own.key }} }}"
        app = f'{{ address: "[::]:{self.app}", tls: {{ cert: own.pem, key: own.key }} }}' if self.tls else f"{{ address: 127.0.0.1:{self.app} }}"
        trunks = [
            f'{{ name: carrier, peers: [127.0.0.1], uri: "sip:127.0.0.1:{self.carrier}" }}',
            "{ name: keys, peers: [127.0.0.3], srtp: required, srtp_without_tls: true }",
            "{ name: symmetric, peers: [127.0.0.4], rtp_source: symmetric }"]
        if self.kind == "tls":
            trunks.append("{ name: guests, peers: any, peer_auth: { username: pbx, password_file: password } }")
        names = [trunk.split("name: ")[1].split(",")[0] for trunk in trunks]
        people = [f'{{ id: user{n}, numbers: ["+1555{2_000_000 + n}"] }}' for n in range(users)]
        people += ['{ id: alice, numbers: ["+15551230001"] }', '{ id: honest, numbers: ["+15551230002"] }', '{ id: mallory, numbers: ["+15551230003"] }', *self.more_people()]
        lines = [
            f"listen: {{ {listen}, app: {app}, admin: {self.admin_listener()} }}",
            f"media: {{ addresses: [ 127.0.0.1 ], app_port: {self.media}, trunk_ports: {self.trunk_ports[0]}-{self.trunk_ports[1]} }}",
            "auth: { jwt: { key_file: jwt.key } }", f"trunks: [ {', '.join(trunks)} ]", f"users: [ {', '.join(people)} ]",
            "routes: { inbound: [ " + ", ".join(f"{{ trunk: {name}, to: users }}" for name in names)
            + ' ], outbound: [ { prefix: "+", trunk: carrier } ]' + self.more_routes() + " }", "log: { level: info }", *self.more_sections()]
        self.put({"gateway.yaml": "\n".join(lines), "jwt.key": KEY, "password": "s3cret", **self.more_files()})

    def put(self, files):
        """Texts by name, for their owner only."""
        for name, text in files.items():
            with open(f"{self.folder}/{name}", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(text + "\n")

    # MARK: what other arenas add

    def admin_listener(self):
        return f"127.0.0.1:{self.admin}"

    def more_sections(self):
        return []

    def more_people(self):
        return []

    def more_routes(self):
        return ""

    def more_files(self):
        return {}

    def prepare(self):
        """Before it starts: its files are there."""

    def furnish(self):
        """When it is ready, before there are calls."""

    def more_facts(self):
        return {}

    def command(self):
        return [self.binary, "serve", "--config", "gateway.yaml"]

    # MARK: its life

    def serve(self):
        """Starts it and waits until calls can come."""
        self.process = self.start(self.command(), "gateway", of_gateway=True, descriptors=256 if self.kind == "small" else self.descriptors)
        facts = {name: getattr(self, name) for name in ("sip", "siptls", "app", "admin", "carrier", "tls", "media", "trunk_ports", "binary", "folder")}
        facts |= {"pid": self.process.pid, "log": self.process.log, "key": self.folder + "/jwt.key", "six": self.tls, "guests": self.kind == "tls"}
        self.arena_file = self.folder + "/arena.json"
        with open(self.arena_file, "w") as file:
            json.dump(facts | self.more_facts(), file)
        self.arena = common.Arena(self.arena_file)
        end = time.monotonic() + self.ready_within
        while common.quick_status(("127.0.0.1", self.admin), "/readyz", more=self.arena.operator) != 200:
            if time.monotonic() > end or not self.process.is_running():
                raise Failure(f"the gateway is not ready:\n{self.process.text[-2000:]}")
            time.sleep(0.05)

    def __enter__(self):
        try:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                 "-keyout", "own.key", "-out", "own.pem"], cwd=self.folder, check=True, capture_output=True)
            self.prepare()
            self.serve()
            self.furnish()
            self.phone = self.start(
                [lab(self.binary), "phone", "--answer", "--answer-after", "0.1", "--events", "--repeat", "--device", "desk", "--insecure", "--url",
                 self.url, "--token", self.arena.token("alice", "desk")], "phone")
            if not self.phone.says('"online"'):
                raise Failure(f"the phone is not online: {self.phone.text[-500:]}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, command, name, kind=Process, **more):
        process = kind(command, self.folder, name, **more)
        self.processes.append(process)
        return process

    @property
    def url(self):
        return f"{'wss' if self.tls else 'ws'}://127.0.0.1:{self.app}/v1/connect"

    def run_beside(self, command, limit):
        """A program on the attackers' core, to its end."""
        def begin():
            die_with_parent()
            os.sched_setaffinity(0, set(CORES[1:] or CORES))

        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=limit, stdin=subprocess.DEVNULL,
            preexec_fn=begin)

    def watch(self):
        watch = self.start([sys.executable, "-B", HERE + "/attacks/watch.py", "--arena", self.arena_file], "watch", Watch)
        watch.says("watching", 5)
        return watch

    # MARK: what it says of itself

    def is_alive(self):
        return self.process.is_running()

    def metric(self, family, part=""):
        try:
            return self.arena.metric(family, part)
        except (OSError, ValueError):
            return 0.0

    def lost(self):
        """Packets of calls that the gateway missed or took too late, on both legs."""
        return int(self.metric("trunkline_media_lost_total") + self.metric("trunkline_media_late_total"))

    def calls_connected(self):
        return int(self.metric("trunkline_calls", 'state="connected"'))

    def resident(self):
        return self.arena.resident()

    def spinning(self):
        return self.arena.spinning(0.5)

    def health(self):
        return common.quick_status(("127.0.0.1", self.admin))

    def new_call(self):
        """(1 if a call of the carrier's reaches the phone and is answered, milliseconds to its set-up)"""
        if not self.phone.is_running():
            return 0, 0
        trunk = self.start(
            [lab(self.binary), "trunk", "--listen", f"127.0.0.1:{self.other}", "--gateway", f"127.0.0.1:{self.sip}", "--call", "+15551230001",
             "--talk", "0.3", "--events"], "trunk")
        status = trunk.wait(10)
        if status is None:
            trunk.end(signal.SIGKILL)
        at = {json.loads(line)["event"]: json.loads(line)["at"] for line in trunk.text.split("\n") if line.startswith("{")}
        took = round(at.get("answered", at.get("connected", 0)) - at.get("calling", at.get("listening", 0)), 1) if at else 0
        return 1 if status == 0 else 0, max(0, took)

    def log_tail(self):
        lines = [text for text in self.process.text.strip().split("\n") if text]
        return ["gateway: " + text[:300] for text in lines[-4:]]

    def end(self, figures):
        """SIGTERM; every call has one record. What was wrong."""
        wrong = []
        self.phone.end()
        end = time.monotonic() + 10
        while self.metric("trunkline_calls") and time.monotonic() < end:
            time.sleep(0.1)
        started = self.metric("trunkline_calls_started_total")
        self.process.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        if status != 0:
            wrong.append(f"SIGTERM: status {status}")
        try:
            records = [json.loads(text)["call"] for text in open(self.folder + "/calls.jsonl")]
        except OSError:
            records = []
        figures["records"], figures["calls"] = len(records), int(started)
        if len(records) != started or len(set(records)) != len(records):
            wrong.append(f"{len(records)} records of {len(set(records))} calls, {started:g} were started")
        return wrong


class Calls:
    """`trunkline-lab load`: calls with audio both ways, held until told; relayed where one core could not transcode so many."""

    most_transcoded = 100

    def __init__(self, gateway, count):
        self.gateway, self.count = gateway, count

    def __enter__(self):
        began = time.monotonic()
        self.process = self.gateway.start(
            [lab(self.gateway.binary), "load", "--config", "gateway.yaml", "--calls", str(self.count), "--seconds", "86400", "--sampled", "0",
             "--rate", "25", "--json", *(["--relay"] if self.count > self.most_transcoded else [])], "load")
        while self.gateway.calls_connected() < self.count:
            if time.monotonic() - began > 30 + self.count or not self.process.is_running():
                raise Failure(f"{self.gateway.calls_connected()} of {self.count} calls are up: {self.process.text[-800:]}")
            time.sleep(0.1)
        self.setup_seconds = time.monotonic() - began
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        self.process.end(signal.SIGKILL)

    def end(self, allowed, figures):
        """Hangs up; what both sides of the calls missed. What was wrong."""
        self.process.process.send_signal(signal.SIGINT)
        if self.process.wait(60) is None:
            return ["the calls did not end"]
        lines = [text for text in self.process.text.split("\n") if text.startswith("{")]
        if not lines:
            return [f"no figures of the calls: {self.process.text[-400:]}"]
        run = json.loads(lines[-1])["run"]
        down, up = run["trunkToApp"], run["appToTrunk"]
        figures["packets"] = down["received"] + up["received"]
        figures["peers_lost"] = down["lost"] + up["lost"]
        wrong = []
        if run["connected"] != self.count or run["ended"] != run["connected"]:
            wrong.append(f"{run['ended']} of {run['connected']} calls ended as planned, {self.count} were asked for")
        if figures["peers_lost"] > figures.get("control_lost", 0) + allowed:
            wrong.append(f"{figures['peers_lost']} packets that the gateway sent or should have sent did not come")
        return wrong
