"""The third arena: a gateway at its limits that programs, phones and a shared store send requests to, with calls beside.

`api` has an API token for each scope, one of the default rate, event feeds, TURN, users without a row, name servers that say nothing.
`node` is the same as a node of a cluster, whose Redis an attacker can write to; `open` has no token at all. What a row's `fill` asks for is there before the attack:
devices in the store, contacts in a user's directory, octets in the event journal, sessions of phones that have nothing to do, calls with audio.
"""
import json, os, resource, signal, socket, sqlite3, subprocess, time, uuid
from arena import Gateway, common
from processes import Failure, free_ports, lab

SCOPES = ("read", "calls", "users", "admin")
# Their own user each, with several devices; nobody is logged in as one of them.
DEVICES_PER_USER = 4
SEGMENT_BYTES = 4 << 20
PHONES_PER_PROCESS = 5000
# Programs that ask once each, at the default rate.
MANY = [f"program{number}" for number in range(63)]


class AskedGateway(Gateway):
    ready_within = 120

    def __init__(self, binary, kind, users, fill):
        self.fill, self.name_server = fill, None
        if fill.get("sessions", 0) > 1000:
            self.descriptors = descriptors_for(fill)
        self.redis_port, self.silent_port = free_ports(2)
        self.secret = uuid.uuid4().hex
        self.tokens = {name: f"{name}-{uuid.uuid4().hex}" for name in ("operator", *SCOPES, "slow", "spare", *MANY)}
        super().__init__(binary, kind, users)

    def __exit__(self, *what):
        super().__exit__(*what)
        if self.name_server:
            self.name_server.close()

    # MARK: its configuration

    def admin_listener(self):
        return f"127.0.0.1:{self.admin}" if self.kind == "open" else f"{{ address: 127.0.0.1:{self.admin}, token_file: operator.token }}"

    def more_people(self):
        return ['{ id: quiet, numbers: ["+15551230004"] }', '{ id: any, claims: { numbers: [ "+1556" ] } }']

    def more_sections(self):
        rows = [f"{{ name: {name}, token_file: {name}.token, scopes: [ {name} ], per_second: 1000 }}" for name in SCOPES]
        rows += [f"{{ name: {name}, token_file: {name}.token, scopes: [ read ] }}" for name in ("slow", *MANY)]
        rows += ["{ name: spare, token_file: spare.token, scopes: [ read, users ], per_second: 1000 }"]
        sections = [
            "" if self.kind == "open" else f"admin: {{ tokens: [ {', '.join(rows)} ] }}",
            f'events: {{ webhooks: [ {{ url: "http://127.0.0.1:{self.silent_port}/hooks/hush-{self.secret}?key=hush-{self.secret}", key_file: hook.key }} ] }}',
            f"limits: {{ sessions_per_address: {self.fill.get('sessions', 0) + self.fill.get('calls', 0) + 200} }}",
            'turn: { urls: [ "turn:127.0.0.1:3478" ], secret_file: turn.secret }']
        if self.kind == "node":
            sections.append(
                f'cluster: {{ node: n1, url: "wss://n1.phone.example.com/v1/connect", shared_store: {{ redis: 127.0.0.1:{self.redis_port} }}, key_file: cluster.key }}')
        return sections

    def more_files(self):
        files = {"hook.key": uuid.uuid4().hex, "resolv.conf": "nameserver 127.0.0.1\noptions timeout:30 attempts:5"} | {name + ".token": token for name, token in self.tokens.items()}
        return files | {"turn.secret": uuid.uuid4().hex, "cluster.key": uuid.uuid4().hex * 2}

    def more_routes(self):
        """Where programs may send calls, of builds that ask for it."""
        known = subprocess.run([self.binary, "config", "reference"], capture_output=True, text=True).stdout
        return ', stream_hosts: [ "*.trusted.example" ]' if "stream_hosts" in known else ""

    def more_facts(self):
        return {"tokens": {} if self.kind == "open" else self.tokens, "secret": self.secret, "redis": self.redis_port, "fill": self.fill}

    def command(self):
        """With name servers that take every question and answer none, where it may have a mount of its own."""
        shell = 'mount --bind resolv.conf /etc/resolv.conf 2>/dev/null; exec "$@"'
        apart = ["unshare", "--mount"]
        if subprocess.run([*apart, "true"], capture_output=True).returncode:
            apart = []
        return [*apart, "sh", "-c", shell if apart else 'exec "$@"', "serve", *super().command()]

    # MARK: what it is filled with

    def prepare(self):
        self.name_server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.name_server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.name_server.bind(("127.0.0.1", 53))
        if self.kind == "node":
            redis = self.start(["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], "redis")
            if not redis.says("eady to accept", 10):
                raise Failure(f"no Redis: {redis.text[-500:]}")
        if self.fill.get("events"):
            self.write_events(self.fill["events"])
        if self.fill.get("devices"):
            self.write_devices(self.fill["devices"])

    def write_events(self, octets):
        """A journal as a gateway leaves it: calls of users that nobody has, two events each."""
        folder = self.folder + "/trunkline.db.events"
        os.mkdir(folder, 0o700)
        with open(folder + "/epoch", "w") as file:
            file.write("0123abcd\n")
        position, written, now = 1, 0, int(time.time() * 1000)
        while written < octets:
            first, lines, size = position, [], 0
            while size < min(SEGMENT_BYTES, octets - written):
                call = str(uuid.UUID(int=position // 2 + 1))
                kind = ("call.started", "call.ended")[position % 2]
                data = {"call": call, "user": f"people{position % 1000}", "from": "+15550001111", "to": "+15550002222", "trunk": "carrier", "note": "x" * 200}
                event = {"specversion": "1.0", "id": f"0123abcd-{position}", "source": "/trunkline/arena", "type": kind, "subject": call,
                         "time": "2026-01-01T00:00:00Z", "data": data}
                lines.append(f"{position} {now} {kind} {call} {json.dumps(event)}\n")
                size += len(lines[-1])
                position += 1
            with open(f"{folder}/{first:020}.events", "w") as file:
                file.writelines(lines)
            written += size

    def write_devices(self, count):
        """The gateway makes its file, and what is in there comes behind."""
        self.serve()
        self.process.end(signal.SIGTERM, 20)
        database = sqlite3.connect(self.folder + "/trunkline.db")
        now = int(time.time() * 1000)
        names = [(f"people{number // DEVICES_PER_USER}", f"device{number % DEVICES_PER_USER}") for number in range(count)]
        with database:
            database.executemany(
                "INSERT INTO device (user, device, platform, model, os, sdk, accounts, rings, dnd, first_seen, last_seen) "
                "VALUES (?, ?, 'ios', 'iPhone17,1', '19.1', '1.0', '[\"default\"]', 1, 0, ?, ?)", [(*name, now, now) for name in names])
            database.executemany(
                "INSERT INTO push (user, device, service, topic, environment, token, registered, usable) VALUES (?, ?, 'apns', 'com.example.phone', 'production', ?, ?, 1)",
                [(*name, f"{number:064x}", now) for number, name in enumerate(names)])
        database.close()

    def furnish(self):
        if self.fill.get("sessions"):
            self.bring_phones(self.fill["sessions"])
        count = self.fill.get("contacts", 0)
        if count:
            text = "number,label,kind\n" + "".join(f"+1557{number:07},Name of {number},\n" for number in range(count))
            request = common.get("/v1/directory/user:mallory", [*self.arena.operator, "Content-Type: text/csv"], method="PUT", close=True, body=text.encode())
            answer = common.http(common.connect(("127.0.0.1", self.admin)), request, 120)
            if common.answers(answer) != [200]:
                raise Failure(f"the directory is not taken: {answer[-300:]}")

    def bring_phones(self, count):
        """A session each, of a user each, from processes of as many as their descriptors allow (two a phone)."""
        parts = []
        for first in range(0, count, PHONES_PER_PROCESS):
            name = f"phones-{first}.jsonl"
            with open(f"{self.folder}/{name}", "w") as file:
                for number in range(first, min(first + PHONES_PER_PROCESS, count)):
                    file.write(json.dumps({"name": f"idle{number}", "token": self.arena.token(f"idle{number}", "phone"), "device": "phone"}) + "\n")
            parts.append(self.start([lab(self.binary), "phones", "--phones", name, "--url", self.url, "--rate", "400"], "phones"))
        end = time.monotonic() + 30 + count / 100
        while self.metric("trunkline_app_sessions") < count:
            lost = next((part for part in parts if not part.is_running()), None)
            if time.monotonic() > end or lost:
                raise Failure(f"{self.metric('trunkline_app_sessions'):g} of {count} phones came: {(lost or parts[0]).text[-500:]}")
            time.sleep(0.5)


def descriptors_for(fill):
    """What sessions and calls need. Where the machine's hard limit is lower and cannot be raised, it is taken, and as many sessions come as it allows."""
    wanted, hard = 2 * fill["sessions"] + 4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[0], max(wanted, hard)))
        return wanted
    except (ValueError, PermissionError):
        allowed = hard - 2560 - 4 * fill.get("calls", 0)
        if allowed < fill["sessions"]:
            print(f"  this machine allows {hard} descriptors: {allowed} sessions instead of {fill['sessions']}", flush=True)
            fill["sessions"] = allowed
        return hard


def sizes(row, short):
    """`fill` of a row: what the full form has, and the short one."""
    return {name: pair[1 if short else 0] for name, pair in row.get("fill", {}).items()}
