"""Who calls and who is called while a fault happens: our own phones in one process, sipp as the carrier, and what each of them has heard."""
import base64, hmac, json, os, random, re, socket, subprocess, threading, time

from programs import Failure, require, until

SCENARIO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "carrier.xml")


def now():
    """Milliseconds since 1970, as all events have them."""
    return time.time() * 1_000


class Tokens:
    """Login tokens as `trunkline token` makes them: one is asked for, the others have its claims and another subject."""

    def __init__(self, cluster):
        with open(cluster.path("jwt.key")) as file:
            self.key = file.read().strip().encode()
        self.head, claims, signature = cluster.token(next(iter(cluster.users)), "phone").split(".")
        self.claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        if self.sign(f"{self.head}.{claims}") != signature:
            raise Failure("trunkline token signs in another way")

    @staticmethod
    def text(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    def sign(self, text):
        return self.text(hmac.digest(self.key, text.encode(), "sha256"))

    def of(self, user, device):
        body = self.head + "." + self.text(json.dumps({**self.claims, "sub": user, "dev": device}).encode())
        return body + "." + self.sign(body)


class Phones:
    """`trunkline-lab phones`: a phone for each user. Each event of a phone is kept in order; `answers` are names whose calls are answered."""

    def __init__(self, cluster, names, rate=200):
        tokens = Tokens(cluster)
        lines = [json.dumps({"name": name, "token": tokens.of(name, "phone"), "device": "phone"}) for name in names]
        path = cluster.write("phones.jsonl", "\n".join(lines) + "\n")
        self.events, self.states, self.counts = [], {}, {}
        self.answers, self.delay = set(), 0.3
        self.lock = threading.Lock()
        self.program = cluster.start(
            "phones", cluster.lab, "phones", "--phones", path, "--url", cluster.app_url, "--media-address", cluster.apps, "--rate", rate,
            hears=self.hear, takes_orders=True)
        self.names = names

    def order(self, line):
        with self.lock:
            self.program.order(line)

    def hear(self, event):
        name, fields = event["fields"].get("phone"), event["fields"]
        if event["event"] == "status":
            self.counts[name] = fields
            return
        self.events.append(event)
        if event["event"] in ("online", "offline", "refused"):
            self.states[name] = event["event"]
        if event["event"] == "ringing" and name in self.answers:
            threading.Timer(self.delay, self.order, [f"answer {name}"]).start()

    def online(self):
        return sum(1 for state in list(self.states.values()) if state == "online")

    def of(self, name, *kinds, since=0):
        return [event for event in list(self.events) if event["fields"].get("phone") == name and event["event"] in kinds and event["at"] >= since]

    def count(self, kind, names, since=0):
        """How many of these phones have had this event."""
        found = {event["fields"].get("phone") for event in list(self.events) if event["event"] == kind and event["at"] >= since}
        return len(found & set(names))

    def first(self, kind, names, since=0):
        """The first such event of each phone: name → milliseconds since 1970."""
        found = {}
        for event in list(self.events):
            name = event["fields"].get("phone")
            if event["event"] == kind and event["at"] >= since and name in names:
                found.setdefault(name, event["at"])
        return found

    def received(self):
        """RTP packets that each phone's call has had so far: name → count."""
        self.counts = {}
        self.order("status")
        until(15, "the phones say how they are", lambda: len(self.counts) >= self.online())
        return {name: int(fields["received"]) for name, fields in self.counts.items() if "received" in fields}


class Pushes:
    """`trunkline-lab push-sandbox` for each node, where the node is; what it is handed for a phone goes to the phone."""
    APNS, APPS = 2197, 2198

    @classmethod
    def configuration(cls, gateway):
        # the sandbox's certificate is for loopback
        return (f'push: {{ gateway: "{gateway}", ca: push.pem, apns: {{ key_file: ../apns.p8, key_id: KEY1, team_id: TEAM1, '
                f'url: "https://127.0.0.1:{cls.APNS}" }} }}\n')

    def __init__(self, cluster):
        self.cluster, self.sockets = cluster, []
        made = subprocess.run(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", cluster.path("apns.p8")],
            capture_output=True, text=True)
        if made.returncode:
            raise Failure("openssl: " + made.stderr)
        for node in cluster.nodes:
            os.makedirs(cluster.path(node.name), exist_ok=True)
            program = cluster.start(
                "push-" + node.name, *node.inside, cluster.lab, "push-sandbox", "--listen", f"127.0.0.1:{self.APNS}", "--apps",
                f"{node.host}:{self.APPS}", "--certificate", cluster.path(node.name, "push.pem"))
            cluster.await_port(program, self.APPS, node.host)

    def register(self, phones, names):
        """These phones can be woken by every node's pushes."""
        began = now()
        for name in names:
            token = (name.encode().hex() + "5a" * 32)[:64]
            for node in self.cluster.nodes:
                connection = socket.create_connection((node.host, self.APPS), 5)
                connection.settimeout(None)
                connection.sendall(json.dumps({"token": token}).encode() + b"\n")
                self.sockets.append(connection)
                threading.Thread(target=self.hear, args=(connection, phones, name), daemon=True).start()
            phones.order(f"register {name} {token}")
        until(20, "the phones are registered for pushes", lambda: phones.count("registered", names, began) == len(names))

    @staticmethod
    def hear(connection, phones, name):
        try:
            for line in connection.makefile("rb"):
                phones.order(f"push {name} {line.decode().strip()}")
        except (OSError, ValueError):
            pass

    def stop(self):
        for connection in self.sockets:
            connection.close()


class CarrierCall:
    """One INVITE of the carrier and all that was said about it: (at, sent, first line, CSeq's method)."""

    def __init__(self, identifier, number):
        self.id, self.number, self.messages = identifier, number, []

    def responses(self, since=0):
        return [(at, int(line.split()[1])) for at, is_sent, line, method in self.messages
                if not is_sent and line.startswith("SIP/2.0") and method == "INVITE" and at >= since]

    @property
    def final(self):
        """(at, code) of the first final response; nil while it rings."""
        return next(((at, code) for at, code in self.responses() if code >= 200), None)

    @property
    def bye(self):
        """When the gateway hung up."""
        return next((at for at, is_sent, line, _ in self.messages if not is_sent and line.startswith("BYE ")), None)

    @property
    def invited(self):
        return self.messages[0][0]


class Carrier:
    """sipp, that calls each number once and speaks: by the edge, or straight `to` a node. `talk`: seconds until it hangs up by itself."""
    MARK = re.compile(r"^-{10,} +(\d{4}-\d\d-\d\d)[ \tT](\d\d:\d\d:\d\d\.\d+)")

    def __init__(self, cluster, name, numbers, rate=20, talk=None, lasts=600, count=None, to=None):
        """`count` calls, which take the numbers in turn: one to each by default."""
        count = count or len(numbers)
        self.cluster, self.name, self.numbers = cluster, name, numbers
        sipp = require("sipp")["sipp"]
        if not os.path.exists(cluster.path("speech.ulaw")):
            with open(cluster.path("speech.ulaw"), "wb") as file:
                file.write(random.Random(1).randbytes(8_000))
        with open(SCENARIO) as file:
            text = file.read()
        scenario = cluster.write(name + ".xml", text.replace('"3600000"', f'"{int(talk * 1_000)}"') if talk else text)
        listing = cluster.write(name + ".csv", "SEQUENTIAL\n" + "".join(number + ";\n" for number in numbers))
        self.log = cluster.path(name + ".messages")
        ports = cluster.ports.row(4 * len(numbers) + 8, cluster.carrier_host)
        self.program = cluster.start(
            name, sipp, f"{to.host}:{to.sip}" if to else f"{cluster.edge_host}:{cluster.edge}", "-sf", scenario, "-inf", listing, "-i", cluster.carrier_host, "-mi",
            cluster.carrier_host, "-p", cluster.ports.one(cluster.carrier_host), "-mp", ports,
            "-r", rate, "-m", count, "-l", len(numbers), "-aa", "-nostdin", "-trace_msg", "-message_file", self.log, "-trace_err",
            "-error_file", cluster.path(name + ".errors"), "-timeout", f"{lasts}s", "-default_behaviors", "all,-abortunexp")

    def read(self):
        """All calls so far, as the log has them: Call-ID → CarrierCall."""
        calls = {}
        try:
            with open(self.log, errors="replace") as file:
                lines = file.read().split("\n")
        except FileNotFoundError:
            return calls
        at, is_sent, head = None, False, None
        for line in lines + ["-" * 20 + " 1970-01-01 00:00:00.0"]:
            mark = self.MARK.match(line)
            if mark:
                if head:
                    self.take(calls, at, is_sent, head)
                stamp = time.mktime(time.strptime(mark[1] + " " + mark[2].split(".")[0], "%Y-%m-%d %H:%M:%S"))
                at, head = (stamp + float("0." + mark[2].split(".")[1])) * 1_000, []
            elif head is not None and not head and " message " in line:
                is_sent = " sent " in line
            elif head is not None and line.strip():
                head.append(line.strip())
        return calls

    @staticmethod
    def take(calls, at, is_sent, head):
        fields = dict(line.split(":", 1) for line in head[1:] if ":" in line and "=" not in line.split(":", 1)[0])
        identifier = fields.get("Call-ID", fields.get("i", "")).strip()
        method = fields.get("CSeq", "").split()[-1:] or [""]
        first = head[0]
        if identifier not in calls:
            if not (is_sent and first.startswith("INVITE ")):
                return
            calls[identifier] = CarrierCall(identifier, first.split("sip:", 1)[1].split("@", 1)[0])
        calls[identifier].messages.append((at, is_sent, first, method[0]))

    def by_number(self):
        """The last call to each number."""
        return {call.number: call for call in self.read().values()}


class SharedStore:
    """Looks into Redis by redis-cli; `prefix`: of the keys."""

    def __init__(self, cluster, prefix="tl"):
        self.cluster, self.prefix = cluster, prefix

    def ask(self, *words):
        made = subprocess.run(
            [self.cluster.tools["redis-cli"], "-h", self.cluster.shared_store_host, "-p", str(self.cluster.redis[0]), *words],
            capture_output=True, text=True, timeout=10)
        if made.returncode:
            raise Failure("redis-cli: " + (made.stderr or made.stdout))
        return made.stdout.split("\n")[:-1]

    def keys(self, pattern):
        return [key for key in self.ask("--scan", "--pattern", f"{self.prefix}:{pattern}") if key]

    def incarnations(self):
        """Of the nodes that have a lease: name → incarnation."""
        found = {}
        for key in self.keys("{nodes}:lease:*"):
            text = "".join(self.ask("get", key))
            if text:
                found[key.rsplit(":", 1)[1]] = json.loads(text)
        return found

    def calls(self):
        """What is left of calls: keys of entries, of places, and counts of trunks that are not 0."""
        left = [key for key in self.keys("{i:*") if key.endswith(":calls")]
        left += [key for key in self.keys("{u:*") if key.endswith(":calls")]
        for key in self.keys("{t:*"):
            left += [f"{key} {value}" for value in self.ask("hvals", key) if value not in ("", "0")]
        return left

    def places(self):
        """The incarnations that whereabouts name: text → how often."""
        found = {}
        for key in self.keys("{u:*:where"):
            for text in self.ask("hvals", key):
                if text:
                    name = json.loads(text).get("i", text)
                    found[name] = found.get(name, 0) + 1
        return found
