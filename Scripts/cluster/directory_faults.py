"""Rows of the fault table about directories: an import under which the shared store dies, two at once, a node that is behind, a shared store that has lost some or all."""
import json, os, subprocess, threading, time, urllib.error, urllib.request

import network
from bench import row
from shared_store import Redis
from load import now
from programs import until

# Who calls in carrier.xml.
CALLER = "+15550009999"


class Imports:
    """A user's directory, whose every contact says which import it is of."""

    def __init__(self, bench):
        self.bench, self.cluster, self.calls = bench, bench.cluster, 0
        self.user = next(iter(bench.users))
        self.size = 20_000 if bench.is_short else 200_000

    def text(self, tag, blocks, size=None):
        """`blocks`: the caller of all calls."""
        lines = [f"+1556{1_000_000 + number},{tag},identify" for number in range(size or self.size)]
        return "number,label,kind\n" + "\n".join(lines + [f"{CALLER},{tag},{'block' if blocks else 'identify'}"]) + "\n"

    def put(self, node, text, method="PUT"):
        """Status and answer; 0: none."""
        request = urllib.request.Request(
            f"http://{node.host}:{node.admin}/v1/directory/user:{self.user}", text.encode(), method=method,
            headers={"Authorization": f"Bearer {node.token}", "Content-Type": "text/csv"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}"), error.headers
        except OSError:
            return 0, {}, {}

    def begin(self, node, text):
        """An import on a thread of its own, whose answer is in the list."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.put(node, text)), daemon=True)
        thread.start()
        return thread, answers

    def row_of(self, node):
        rows = (node.json("/v1/directory") or {"directories": []})["directories"]
        return next((row for row in rows if row["scope"] == f"user:{self.user}"), {"version": 0, "entries": 0, "sharedStore": 0})

    def command(self, node, *words):
        """`trunkline directory …` where the node is."""
        return subprocess.run(
            [*node.inside, self.cluster.gateway, "directory", *words, "--config", self.cluster.path(node.name, "gateway.yaml")], capture_output=True, text=True)

    def tags(self, node):
        """Of which imports the contacts here are."""
        made = self.command(node, "export", "--scope", f"user:{self.user}")
        return sorted({line.split(",")[1] for line in made.stdout.splitlines()[1:]})

    def check_all(self, tag, when, seconds=30):
        """Every node serves this import, and nothing else."""
        nodes = self.cluster.nodes
        self.bench.wait(seconds, lambda: len({self.row_of(node)["version"] for node in nodes}) == 1 and all(self.tags(node) == [tag] for node in nodes))
        found = [self.tags(node) for node in nodes]
        versions = {self.row_of(node)["version"] for node in nodes}
        self.bench.check(f"contacts at the nodes, {when}", "; ".join("+".join(tags) for tags in found) + f", {len(versions)} version(s)", f"{tag} alone, 1 version",
                         all(tags == [tag] for tags in found) and len(versions) == 1)

    def check_blocked(self, when):
        """The caller is refused at every node, and no phone rings."""
        since = now()
        for node in self.cluster.nodes:
            self.calls += 1
            carrier = self.bench.dial(f"blocked-{self.calls}", [self.user], to=node, talk=2)
            self.bench.wait(15, lambda: not carrier.program.is_running)
            codes = [code for call in carrier.read().values() for _, code in call.responses() if code >= 180]
            self.bench.check(f"the blocked caller at {node.name}, {when}", ", ".join(map(str, codes)) or "no answer", "486", codes == [486])
        rung = self.bench.phones.count("ringing", [self.user], since)
        self.bench.check(f"phones that rang for it, {when}", rung, "0", rung == 0)

    def stale(self):
        return [int(node.metric("trunkline_directory_stale")) for node in self.cluster.nodes]

    def check_stale(self, wanted, when, seconds=40):
        self.bench.wait(seconds, lambda: self.stale() == wanted)
        found = self.stale()
        self.bench.check(f"directories that are not served as the shared store has them, {when}", found, wanted, found == wanted)

    def longest(self, host, port):
        """Milliseconds of the shared store's longest command since its log was begun."""
        asked = Redis(port, host)
        slow = [entry[2] for entry in asked.say("SLOWLOG", "GET", "128")]
        asked.close()
        return max(slow, default=0) / 1_000

    def log_slow(self):
        asked = Redis(self.cluster.redis[0], self.cluster.shared_store_host)
        asked.say("CONFIG", "SET", "slowlog-log-slower-than", "500")
        asked.say("SLOWLOG", "RESET")
        asked.close()


@row("import-killed", "Redis killed in the middle of an import, and started again", sentinels=False, path=True)
def killed(bench):
    imports = Imports(bench)
    nodes = bench.cluster.nodes
    status, _, _ = imports.put(nodes[0], imports.text("before", True))
    bench.check("the first import", status, "200", status == 200)
    imports.check_all("before", "at first")
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    size = asked.say("DBSIZE")
    # parts are staged by and by, and the kill is between them
    bench.cluster.way.delay = 0.05
    thread, answers = imports.begin(nodes[0], imports.text("after", False))
    while thread.is_alive() and asked.say("DBSIZE") < size + 8:
        time.sleep(0.002)
    was_staging = thread.is_alive()
    bench.say("kill -9 of Redis")
    bench.cluster.way.delay = 0
    bench.cluster.programs[0].kill()
    thread.join(60)
    status = answers[0][0] if answers else 0
    bench.check("the import in whose middle it was", f"{status}, Retry-After {answers[0][2].get('Retry-After') if answers else '-'}", "503 with Retry-After",
                was_staging and status == 503 and answers[0][2].get("Retry-After") is not None)
    imports.check_all("before", "without a shared store")
    imports.check_blocked("without a shared store")
    status, _, headers = imports.put(nodes[1], imports.text("other", False, 10))
    bench.check("an import without a shared store", status, "503", status == 503 and headers.get("Retry-After") is not None)
    bench.cluster.start_redis(0)
    until(30, "the nodes have the shared store again", lambda: all((node.json("/v1/nodes") or {}).get("state") == "up" for node in nodes))
    imports.check_all("before", "with the shared store again")
    imports.check_blocked("with the shared store again")
    imports.check_stale([0, 0, 0], "with the shared store again")
    until(30, "the import is taken again", lambda: imports.put(nodes[0], imports.text("after", False))[0] == 200)
    imports.check_all("after", "imported again")
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    until(90, "the parts that no version has are gone", lambda: len(asked.keys("tl:{dirs}:part:*")) <= imports.size // 1_000 + 2)
    bench.check("parts in the shared store", len(asked.keys("tl:{dirs}:part:*")), f"≤ {imports.size // 1_000 + 2}", True)
    bench.settle()


@row("import-twice", "two imports of one directory at the same time", sentinels=False)
def twice(bench):
    imports = Imports(bench)
    nodes = bench.cluster.nodes
    imports.log_slow()
    for turn in range(3):
        tags = [f"a{turn}", f"b{turn}"]
        running = [imports.begin(node, imports.text(tag, True)) for node, tag in zip(nodes, tags)]
        for thread, _ in running:
            thread.join(120)
        answers = [answers[0] if answers else (0, {}, {}) for _, answers in running]
        done = [(answer["version"], tag) for (status, answer, _), tag in zip(answers, tags) if status == 200]
        bench.check("answers", ", ".join(str(status) for status, _, _ in answers), "200 or 409, one 200 at least",
                    all(status in (200, 409) for status, _, _ in answers) and done)
        imports.check_all(max(done)[1] if done else "-", "the later one")
    imports.check_blocked("by both")
    longest = imports.longest(bench.cluster.shared_store_host, bench.cluster.redis[0])
    # by the clock: beside other programs the shared store is not always on a processor; 100 ms are what an INVITE waits for it
    bench.check("the shared store's longest command", f"{longest:.1f} ms", "≤ 100 ms", longest <= 100)
    bench.settle()


@row("import-behind", "a node that misses two versions of a directory", sentinels=False)
def behind(bench):
    imports = Imports(bench)
    nodes = bench.cluster.nodes
    away = bench.node("n3")
    imports.put(nodes[0], imports.text("first", False))
    imports.check_all("first", "at first")
    before = imports.row_of(away)["version"]
    bench.say("n3 is cut off from the shared store")
    # which is at this harness's address, too: what n3 says is asked where it is
    bench.net.cut(away.inside, network.ENGINE)
    until(20, "the others miss n3", lambda: "n3" not in bench.shared_store.incarnations())
    statuses = [imports.put(node, imports.text(tag, True))[0] for node, tag in ((nodes[0], "second"), (nodes[1], "third"))]
    bench.check("imports at the others", statuses, "[200, 200]", statuses == [200, 200])
    listed = imports.command(away, "list").stdout.strip()
    bench.check("what n3 serves meanwhile", f"{'+'.join(imports.tags(away))}: {listed}", f"first, {before}", imports.tags(away) == ["first"] and f"version {before}" in listed)
    path = bench.cluster.write("mine.csv", imports.text("mine", False, 10))
    made = imports.command(away, "import", path, "--scope", f"user:{imports.user}")
    bench.check("an import at n3 meanwhile", made.stderr.strip().replace("\n", " "), "503", made.returncode == 1 and "503" in made.stderr)
    bench.net.mend(away.inside)
    imports.check_all("third", "when n3 is back")
    imports.check_blocked("when n3 is back")
    bench.settle()


@row("import-failover", "a replica that lost the last import takes over", sentinels=False, path=True)
def failover(bench):
    imports = Imports(bench)
    nodes, cluster = bench.cluster.nodes, bench.cluster
    host, replica = cluster.shared_store_host, cluster.redis[1]
    program = cluster.start("replica", cluster.tools["redis-server"], "--port", replica, "--bind", host, "--protected-mode", "no", "--save", "",
                            "--replicaof", host, cluster.redis[0])
    cluster.await_port(program, replica, host)
    imports.put(nodes[0], imports.text("replicated", False))
    imports.check_all("replicated", "at first")
    asked = Redis(replica, host)
    until(30, "the replica has it", lambda: asked.say("HGET", "tl:{dirs}:current", f"user:{imports.user}") == str(imports.row_of(nodes[0])["version"]).encode())
    asked.say("REPLICAOF", "NO", "ONE")
    imports.put(nodes[0], imports.text("lost", True))
    imports.check_all("lost", "before the primary dies")
    bench.say("kill -9 of the primary; the replica, without the last import, is the shared store")
    cluster.way.target = (host, replica)
    cluster.programs[0].kill()
    until(30, "the nodes have the shared store again", lambda: all((node.json("/v1/nodes") or {}).get("state") == "up" for node in nodes))
    imports.check_stale([1, 1, 1], "after the failover")
    older = all(0 < row["sharedStore"] < row["version"] for row in map(imports.row_of, nodes))
    bench.check("what /v1/directory says", "the shared store has an older version" if older else [imports.row_of(node) for node in nodes], "the shared store has an older version", older)
    imports.check_all("lost", "after the failover")
    imports.check_blocked("after the failover")
    status, _, _ = imports.put(nodes[1], imports.text("new", True))
    bench.check("the next import", status, "200", status == 200)
    imports.check_all("new", "after the next import")
    imports.check_stale([0, 0, 0], "after the next import")
    cluster.redis[0], cluster.redis[1] = replica, cluster.redis[0]
    bench.settle()


@row("import-flushed", "FLUSHALL under directories, and restore", sentinels=False)
def flushed(bench):
    imports = Imports(bench)
    nodes = bench.cluster.nodes
    imports.put(nodes[0], imports.text("kept", True))
    imports.check_all("kept", "at first")
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    asked.say("FLUSHALL")
    imports.check_stale([1, 1, 1], "after the flush")
    imports.check_all("kept", "after the flush")
    imports.check_blocked("after the flush")
    there = asked.keys("tl:{dirs}:part:*")
    bench.check("directories that nodes put back by themselves", len(there), "0", not there)
    made = imports.command(nodes[1], "restore")
    bench.check("trunkline directory restore", made.stdout.strip() or made.stderr.strip(), "1 directories …", made.stdout.startswith("1 "))
    imports.check_stale([0, 0, 0], "restored")
    imports.check_all("kept", "restored")
    imports.check_blocked("restored")
    bench.settle()


def processor(node, thread):
    """Seconds that a thread of the node's process has used."""
    tasks = f"/proc/{node.program.process.pid}/task"
    used = 0
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/stat") as file:
            name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
        if name == thread:
            used += sum(int(field) for field in fields.split()[11:13])
    return used / os.sysconf("SC_CLK_TCK")


@row("import-million", "a million contacts are imported and changed, with the times, Redis' longest command and what control does meanwhile", sentinels=False, nodes=2)
def million(bench):
    imports = Imports(bench)
    # with the caller a million, which is the limit
    imports.size = (100_000 if bench.is_short else 1_000_000) - 1
    first, second = bench.cluster.nodes
    # on a machine with less processors than programs, the time of a command would contain that of others
    os.setpriority(os.PRIO_PROCESS, bench.cluster.programs[0].process.pid, -15)
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    # the longest are sought among all that take half a millisecond
    for name, value in (("slowlog-log-slower-than", 500), ("slowlog-max-len", 100_000)):
        asked.say("CONFIG", "SET", name, value)
    asked.say("SLOWLOG", "RESET")
    asked.close()
    time.sleep(2)
    began, before = time.monotonic(), [processor(node, "control") for node in bench.cluster.nodes]
    time.sleep(10)
    idle = [(used - earlier) / (time.monotonic() - began) for used, earlier in zip([processor(node, "control") for node in bench.cluster.nodes], before)]
    def measure(text, what, method, limits):
        began, before = time.monotonic(), [processor(node, "control") for node in bench.cluster.nodes]
        status, answer, _ = imports.put(first, text, method)
        imported = time.monotonic() - began
        bench.check(f"{what}: the answer, seconds", f"{status}, {imported:.1f}", f"200, ≤ {limits[0]}", status == 200 and imported <= limits[0])
        bench.wait(120 if status == 200 else 0, lambda: imports.row_of(second)["version"] == answer.get("version"))
        later = time.monotonic() - began - imported
        bench.check(f"{what}: seconds until the other node has it", f"{later:.1f}", f"≤ {limits[1]}",
                    (imports.row_of(second)["version"], imports.row_of(second)["entries"]) == (answer.get("version"), answer.get("entries")) and later <= limits[1])
        seconds = time.monotonic() - began
        used = [processor(node, "control") - earlier for node, earlier in zip(bench.cluster.nodes, before)]
        bench.check(f"{what}: processor time of control at both nodes, and as much at rest, ms",
                    ", ".join(f"{1_000 * here:.0f} ({1_000 * rest * seconds:.0f})" for here, rest in zip(used, idle)), "≤ 3 % of a processor more",
                    all(here <= rest * seconds + 0.03 * seconds + 0.05 for here, rest in zip(used, idle)))
    measure(imports.text("first", False), f"{imports.size + 1:,} contacts", "PUT", (20, 20))
    lines = imports.text("first", False).splitlines(keepends=True)
    lines[1::100] = [line.replace("first", "other") for line in lines[1::100]]
    measure("".join(lines), "the same, each hundredth with another name", "PUT", (20, 20))
    measure("number,label,kind\n+15561000000,alone,identify\n", "one changed contact", "POST", (2, 2))
    asked = Redis(bench.cluster.redis[0], bench.cluster.shared_store_host)
    slow = asked.say("SLOWLOG", "GET", "100000")
    asked.close()
    longest = max(slow, key=lambda entry: entry[2], default=None)
    # the log names 32 arguments, and how many more there are
    found = f"{longest[2] / 1_000:.1f} ({longest[3][0].decode()} … {longest[3][-1].decode(errors='replace')[:40]}), {len(slow)} of 0.5 or more" if longest else "below 0.5"
    bench.check("the shared store's longest command, ms", found, "≤ 5", longest is None or longest[2] <= 5_000)
    bench.settle()
