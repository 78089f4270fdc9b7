"""What `make run-cluster` runs: python3 demo.py FOLDER-OF-BINARIES [--once]"""
import os, shutil, signal, struct, subprocess, sys, tempfile, threading, time, wave

sys.dont_write_bytecode = True
from layout import HOST, USERS, Cluster
from programs import Failure, get, until

PHONE_TALKS, LOST_SECONDS, ANSWER_AFTER = 4, 8.0, 3
stopped = threading.Event()


def say(text=""):
    print(text, flush=True)


def voiced_seconds(path):
    """How much of a recording is not silence, in steps of 20 ms."""
    try:
        with wave.open(path) as file:
            rate, data = file.getframerate(), file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error):
        return 0.0
    samples, step = struct.unpack(f"<{len(data) // 2}h", data), rate // 50
    loud = sum(1 for at in range(0, len(samples), step) if max(map(abs, samples[at:at + step])) > 500)
    return loud / 50


class Row:
    """A line of the table: what happened, at which node, what the carrier and the app had, and whether that is as it should be."""

    def __init__(self, what, node, carrier, app, is_right):
        self.cells, self.is_right = (what, node, carrier, app, "as it should be" if is_right else "WRONG"), is_right


def table(rows):
    lines = [("what", "node", "the carrier", "the app", "")] + [row.cells for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for number, line in enumerate(lines):
        say("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths + [0])).rstrip())
        if number == 0:
            say("  " + "  ".join("─" * width for width in widths))


class Demo:
    def __init__(self, cluster):
        self.cluster, self.phones, self.places, self.calls, self.rows = cluster, {}, {}, 0, []

    def run(self):
        self.connect_phones()
        self.call_elsewhere()
        self.kill_a_node()
        self.count_records()

    def connect_phones(self):
        say("Six phones connect by HAProxy …")
        for user in USERS:
            self.phones[user] = self.cluster.phone(user, ANSWER_AFTER)
            self.places[user] = until(5, f"{user} is at a node", lambda: self.cluster.nodes_of("/v1/devices", user))[0]
        say("  " + ", ".join(f"{user} at {node.name}" for user, node in self.places.items()))

    def steered(self):
        return {node: node.metric('trunkline_cluster_locates_total{outcome="steered"}') for node in self.cluster.nodes}

    def call(self, user, talk):
        self.calls += 1
        return self.cluster.call(user, talk)

    def call_elsewhere(self):
        """Kamailio takes the nodes in turn: within three calls one comes to a node where the phone is not."""
        user = "alice"
        phone, place = self.phones[user], self.places[user]
        for _ in range(3):
            before, ended = self.steered(), len(phone.all("ended"))
            say(f"The carrier calls {user}, whose phone is at {place.name} …")
            carrier = self.call(user, PHONE_TALKS)
            until(30, f"the call to {user} ends (see {carrier.log_path})", lambda: not carrier.is_running and len(phone.all("ended")) > ended)
            # figures are published once a second
            try:
                via = until(2.5, "", lambda: [node for node, count in self.steered().items() if count > before[node]])[0]
                break
            except Failure:
                say(f"  it came to {place.name} at once; once more")
        else:
            raise Failure("no call came to a node where the phone is not")
        ended = phone.all("ended")[-1]["fields"]
        heard = voiced_seconds(carrier.recording)
        is_right = heard > 1 and int(ended["received"]) > 50 and carrier.first("answered") is not None
        self.rows.append(Row(
            f"call to {user}, whose phone is elsewhere", f"{via.name}, 302 to {place.name}", f"answered, heard {heard:.1f} s of speech",
            f"answered, {ended['received']} packets", is_right))

    def kill_a_node(self):
        groups = {node: [user for user, place in self.places.items() if place is node] for node in self.cluster.nodes}
        victim, users = next(((node, users) for node, users in groups.items() if len(users) > 1), (None, None))
        if victim is None:
            raise Failure("no node has two phones")
        talker, ringer = users[-2:]
        say(f"Two calls at {victim.name}: one to {talker}, who answers, one to {ringer}, whose phone rings …")
        talking, phone = self.call(talker, 300), self.phones[talker]
        connected = len(phone.all("connected"))
        until(20, f"{talker}'s call is connected", lambda: len(phone.all("connected")) > connected and talking.first("firstAudio"))
        time.sleep(2)
        ringing, other = self.call(ringer, PHONE_TALKS), self.phones[ringer]
        rung = len(other.all("ringing"))
        until(20, f"{ringer}'s phone rings", lambda: len(other.all("ringing")) > rung)
        for user in (talker, ringer):
            place = self.cluster.nodes_of("/v1/calls", user)
            if place != [victim]:
                raise Failure(f"{user}'s call is at {[node.name for node in place]}, not at {victim.name} alone")
        killed = victim.program.kill()
        say(f"kill -9 of {victim.name}.")
        self.after_kill(victim, killed, (talker, talking, phone), (ringer, ringing, other))

    def after_kill(self, victim, killed, connected, ringing):
        def after(event):
            return (event["at"] - killed) / 1_000

        def later(program, *names):
            return next((event for event in program.all(*names) if event["at"] > killed), None)

        (talker, carrier, phone), (ringer, second, other) = connected, ringing
        wait = 40
        again = until(wait, f"{ringer}'s phone rings again", lambda: later(other, "ringing"))
        say(f"  {after(again):.1f} s: {ringer}'s phone rings again")
        bye = until(wait, "the carrier of the connected call hears a BYE", lambda: later(carrier, "bye"))
        told = until(wait, f"{talker}'s app is told", lambda: later(phone, "ended"))
        say(f"  {after(bye):.1f} s: BYE to the carrier of {talker}'s call")
        say(f"  {after(told):.1f} s: {talker}'s app is told ({told['fields']['reason']})")
        self.rows.append(Row(
            f"connected call to {talker}", f"{victim.name}, killed", f"BYE after {after(bye):.1f} s",
            f"told after {after(told):.1f} s: {told['fields']['reason']}", max(after(bye), after(told)) <= LOST_SECONDS))
        answer = until(wait, f"{ringer} answers", lambda: later(other, "connected"))
        say(f"  {after(answer):.1f} s: {ringer} answers")
        def talked():
            return next((event for event in other.all("ended") if event["at"] > answer["at"]), None)

        until(30, f"{ringer}'s call ends", lambda: talked() and not second.is_running)
        heard, refused = voiced_seconds(second.recording), second.first("failed")
        codes = " ".join(event["fields"]["code"] for event in second.all("progress", "answered", "failed"))
        self.rows.append(Row(
            f"ringing call to {ringer}", f"{victim.name}, killed; another", f"{codes}, heard {heard:.1f} s of speech",
            f"rings again after {after(again):.1f} s, answered, {talked()['fields']['received']} packets",
            after(again) <= LOST_SECONDS and not refused and heard > 1))
        until(10, "the carrier of the connected call ends", lambda: not carrier.is_running)

    def count_records(self):
        """The killed node wrote none of its two: whoever closed a call wrote its record. The one that rang again has a second call, and its record."""
        expected = self.calls + 1
        until(10, f"{expected} records", lambda: len(self.cluster.records()) >= expected)
        records = self.cluster.records()
        calls = {record["call"] for _, record in records}
        lost = [node for node, record in records if record["end"].get("detail") == "node lost"]
        self.rows.append(Row(
            f"records of {self.calls} calls, one of which rang twice", "all", f"{len(records)} records, of {len(calls)} calls",
            f"{len(lost)} with \"node lost\", written by {' and '.join(sorted(set(lost)))}",
            len(records) == len(calls) == expected and len(lost) == 2))


def serve(cluster):
    say("\nThe cluster stays up. Its nodes:")
    node = cluster.nodes[0]
    say(subprocess.run([cluster.gateway, "nodes", "list", "--config", cluster.path("n1", "gateway.yaml")], capture_output=True, text=True).stdout)
    for node in cluster.nodes:
        say(f"  {node.name}: pid {node.program.process.pid}, http://{HOST}:{node.admin}/ · {cluster.path(node.name, 'gateway.yaml')}")
    say(f"""
A phone in the browser, at whatever node HAProxy chooses:
  http://{HOST}:{cluster.balancer}/#token={cluster.token('alice', 'browser')}
A carrier that calls it, from another terminal:
  {cluster.lab} trunk --call {USERS['alice']} --talk 20 --listen 127.0.0.2:{cluster.carrier} --gateway 127.0.0.9:{cluster.edge}
The shared_store:
  redis-cli -p {cluster.redis[0]} --scan        its Sentinels: {', '.join(map(str, cluster.sentinels))}
Logs: {cluster.folder}        Ctrl-C ends.""")
    stopped.wait()


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    binaries, once = os.path.abspath(sys.argv[1]), "--once" in sys.argv[2:]
    folder = tempfile.mkdtemp(prefix="trunkline-cluster-")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    cluster, status = None, 1
    try:
        deploy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Deploy")
        cluster = Cluster(binaries, deploy, folder, say)
        say(f"Logs: {folder}")
        say("Starting Redis, a replica and three Sentinels …")
        cluster.start_shared_store()
        say("Starting Kamailio and HAProxy …")
        cluster.start_edges()
        say("Starting three gateways …")
        cluster.start_gateways()
        demo = Demo(cluster)
        demo.run()
        say()
        table(demo.rows)
        say()
        status = 0 if all(row.is_right for row in demo.rows) else 1
        if not once:
            for phone in demo.phones.values():
                phone.end()
            for node in cluster.nodes:
                if not node.program.is_running:
                    say(f"Starting {node.name} again …")
                    cluster.start_gateway(node)
            cluster.await_whole()
            serve(cluster)
    except Failure as failure:
        say(f"FAILED: {failure}")
    except KeyboardInterrupt:
        pass
    finally:
        # a further one would leave parts of the cluster behind
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        say("Ending …")
        if cluster:
            cluster.stop()
    if status == 0:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"Logs are left in {folder}")
    sys.exit(status)


if __name__ == "__main__":
    main()
