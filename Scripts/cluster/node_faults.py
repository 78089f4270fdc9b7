"""Rows of the fault table about nodes: killed, stopped, cut off."""
import os, signal, subprocess, time

import network
from bench import row
from load import now


def after_death(bench, killed, talking, connected, calling, ringing, limit):
    """What a dead node's calls come to, within so many seconds."""
    phones = bench.phones
    lost = lambda: [record for _, record in bench.cluster.records() if record["end"].get("detail") == "node lost"]
    recorded = []

    def is_over():
        while len(recorded) < len(lost()):
            recorded.append(now())
        return (phones.count("connected", ringing, killed) == len(ringing) and phones.count("ended", connected, killed) == len(connected)
                and len(recorded) >= len(connected) + len(ringing) and all(call.bye for call in talking.read().values()))
    bench.wait(limit + 12, is_over)
    bench.check_times("ringing calls ring again", killed, phones.first("ringing", ringing, killed).values(), len(ringing), limit, 0.99)
    bench.check_times("… and are answered", killed, phones.first("connected", ringing, killed).values(), len(ringing), limit, 0.99)
    calls = calling.by_number().values()
    refusals = sorted({code for call in calls for _, code in call.responses(killed) if code >= 300})
    bench.check("the carrier hears of these", f"180 and 200, {refusals or 'no refusal'}", "no refusal", not refusals)
    bench.check_times("connected calls: BYE", killed, [call.bye for call in talking.read().values() if call.bye], len(connected), limit)
    bench.check_times("connected calls: the app is told", killed, phones.first("ended", connected, killed).values(), len(connected), limit)
    bench.check_times("records of all", killed, recorded, len(connected) + len(ringing), limit)


def back(bench, since, limit=30):
    """All phones are online again."""
    bench.wait(limit, lambda: bench.phones.online() == len(bench.users))
    bench.check("phones online", bench.phones.online(), f"{len(bench.users)} in ≤ {limit} s", bench.phones.online() == len(bench.users))


def killed_under_load(bench):
    """kill -9 of n1, which has calls: the node, its incarnation, when, and its calls."""
    node = bench.node("n1")
    (talking, connected), (calling, ringing) = bench.load(node)
    bench.phones.answers |= set(ringing)
    dead = bench.shared_store.incarnations()["n1"]["i"]
    bench.say("kill -9 of n1")
    killed = node.program.kill()
    return node, dead, killed, (talking, connected, calling, ringing)


@row("kill", "kill -9 of a node, not restarted")
def kill(bench):
    _, dead, killed, load = killed_under_load(bench)
    after_death(bench, killed, *load, 8)
    back(bench, killed)
    bench.settle()
    bench.check_gone(dead)


@row("restart", "kill -9 of a node, restarted in 2 s")
def restart(bench):
    node, dead, killed, load = killed_under_load(bench)
    time.sleep(2)
    bench.say("n1 is started again")
    bench.cluster.start_gateway(node)
    after_death(bench, killed, *load, 5)
    back(bench, killed)
    bench.settle()
    bench.check_gone(dead)


def probe(bench, users, seconds):
    """Calls to these users, two a second."""
    return bench.dial("probes", users[:int(seconds * 2)], rate=2)


def users_of_others(bench, node):
    return [user for other in bench.others(node) for user in bench.users_at(other)]


def probes_found(bench, carrier, since, after, limit=1.5):
    """New calls that begin so many seconds after the fault ring as if nothing were; before the carrier may wait for a second node."""
    calls = [call for call in carrier.read().values() if call.invited >= since + after * 1_000]
    rang = [call for call in calls if any(code == 180 and at - call.invited <= limit * 1_000 for at, code in call.responses())]
    bench.check(f"new calls from {after:g} s on that ring within {limit:g} s", f"{len(rang)} of {len(calls)}", "all", len(rang) == len(calls) and calls)


def check_refusals(bench, carrier, what="the carrier hears of these"):
    """What comes after the final response is of no transaction any more."""
    refusals = sorted({call.final[1] for call in carrier.read().values() if call.final and call.final[1] >= 300})
    bench.check(what, f"180 and 200, {refusals or 'no refusal'}", "no refusal", not refusals)


def check_twice(bench, since):
    """No phone rings again for a call that it had: a call that moved rings once more, and no further time."""
    twice = [name for name in bench.users if len(bench.phones.of(name, "ringing", since=since)) > 1]
    bench.check("phones that rang twice since", twice or "none", "none", not twice)


def check_flow(bench, connected, before, since):
    """Connected calls go on: their phones have had two more seconds of speech at least, and none has ended."""
    after = bench.phones.received()
    flowing = sum(1 for name in connected if after.get(name, 0) > before.get(name, 0) + 100)
    ended = bench.phones.count("ended", connected, since)
    bench.check("connected calls go on", f"{flowing} of {len(connected)}, {ended} ended", "all", flowing == len(connected) and not ended)


def check_closed(bench, since, talking, connected):
    """A silent node's connected calls are closed by another. Its phones hear of it where they come next, once they have missed it (2 × hb)."""
    limit = 14 if bench.is_short else 40
    bench.wait(8, lambda: bench.phones.count("ended", connected, since) == len(connected))
    bench.check_times("connected calls: BYE", since, [call.bye for call in talking.read().values() if call.bye], len(connected), limit)
    bench.check_times(
        "connected calls: the app is told", since, bench.phones.first("ended", connected, since).values(), len(connected), max(limit, 40))


def silence(bench, begin, end, seconds, goes_on):
    """A node that says nothing for so long. A phone whose node is silent finds out in half a minute; a push wakes it before."""
    node = bench.node("n1")
    (talking, connected), (calling, ringing) = bench.load(node)
    heard = bench.phones.received()
    bench.phones.answers |= set(bench.users)
    began = now()
    begin(node)
    carrier = probe(bench, users_of_others(bench, node), min(seconds - 2, 20))
    time.sleep(max(0, seconds - (now() - began) / 1_000))
    end(node)
    bench.say(f"it is back after {(now() - began) / 1_000:.1f} s")
    time.sleep(8)
    probes_found(bench, carrier, began, 6)
    bench.check_times("ringing calls ring elsewhere", began, bench.phones.first("ringing", ringing, began).values(), len(ringing), 12)
    check_refusals(bench, calling)
    check_twice(bench, began)
    if goes_on:
        check_flow(bench, connected, heard, began)
    else:
        check_closed(bench, began, talking, connected)
    back(bench, began, 60)
    bench.settle()


def stop_and_go(bench, seconds, goes_on):
    def begin(node):
        bench.say("SIGSTOP of n1")
        node.program.process.send_signal(signal.SIGSTOP)
    silence(bench, begin, lambda node: node.program.process.send_signal(signal.SIGCONT), seconds, goes_on)


@row("stop-20", "SIGSTOP of a node for 20 s (short: 10 s)", pushes=True, lost_after="25s")
def stop_20(bench):
    stop_and_go(bench, 10 if bench.is_short else 20, goes_on=True)


@row("stop-60", "SIGSTOP of a node for 60 s (short: 16 s)", pushes=True)
def stop_60(bench):
    stop_and_go(bench, 16 if bench.is_short else 60, goes_on=False)


def cut(bench, node, *addresses):
    bench.net.cut(node.inside, *addresses)


@row("cut-shared-store", "a node cut off from the shared store for 20 s (short: 10 s)", pushes=True)
def cut_shared_store(bench):
    node = bench.node("n1")
    (talking, connected), (calling, ringing) = bench.load(node)
    # those at n1: where the edge asks another node, that one knows of them by their registration
    free = [user for user in bench.users_at(node) if user not in connected + ringing][:16]
    bench.pushes.register(bench.phones, free)
    heard = bench.phones.received()
    bench.say("n1 is cut off from the shared store")
    began = now()
    cut(bench, node, network.ENGINE)
    carrier = probe(bench, free, 8)
    # longer than its lease, and less than timers.ring
    time.sleep(10 if bench.is_short else 20)
    reaped = sum(bench.metric(f'trunkline_cluster_calls_reaped_total{{kind="{kind}"}}') for kind in ("ringing", "connected", "inherited"))
    bench.check("calls that were closed by others", int(reaped), "0", reaped == 0)
    check_flow(bench, connected, heard, began)
    bench.phones.answers |= set(bench.users)
    bench.phones.order("answer *")
    bench.wait(8, lambda: bench.phones.count("connected", ringing, began) == len(ringing))
    answered = bench.phones.count("connected", ringing, began)
    bench.check("ringing calls that can be answered, cut off", answered, str(len(ringing)), answered == len(ringing))
    check_refusals(bench, calling)
    probes_found(bench, carrier, began, 0, 3)

    def seen():
        """By each other node: the one that leads `reaper` probes, and the others know only that its lease is missing."""
        rows = [row for other in bench.others(node) for row in other.json("/v1/nodes")["nodes"] if row["node"] == "n1"]
        return sorted(row["liveness"] for row in rows)

    bench.wait(30, lambda: seen() == ["cutOff", "missing"])
    bench.check("n1, as the reaper and the other node see it", ", ".join(seen()), "cutOff, missing", seen() == ["cutOff", "missing"])
    bench.net.mend(node.inside)
    bench.cluster.await_whole()
    bench.say("all nodes see each other again")
    check_twice(bench, began)
    bench.settle()


@row("cut-edge", "a node cut off from both edges for 15 s (short: 8 s)")
def cut_edge(bench):
    node = bench.node("n1")
    (talking, connected), (calling, ringing) = bench.load(node)
    heard = bench.phones.received()
    bench.say("n1 is cut off from Kamailio and HAProxy")
    began = now()
    cut(bench, node, network.EDGE, network.BALANCER)
    bench.phones.answers |= set(bench.users) - set(ringing)
    carrier = probe(bench, users_of_others(bench, node), 7.5 if bench.is_short else 13)
    time.sleep(8 if bench.is_short else 15)
    bench.net.mend(node.inside)
    bench.say("mended")
    bench.wait(20, lambda: bench.phones.online() == len(bench.users))
    probes_found(bench, carrier, began, 6)
    check_flow(bench, connected, heard, began)
    bench.phones.answers |= set(ringing)
    bench.phones.order("answer *")
    bench.wait(20, lambda: bench.phones.count("connected", ringing, began) == len(ringing))
    answered = bench.phones.count("connected", ringing, began)
    bench.check("ringing calls that can be answered afterwards", answered, str(len(ringing)), answered == len(ringing))
    check_refusals(bench, calling)
    bench.settle()


@row("cut-both", "a node cut off from shared store, edges and nodes for 60 s (short: 16 s)", pushes=True)
def cut_both(bench):
    others = [address for name, (address, _) in bench.places.items() if name != "n1"]

    def begin(node):
        bench.say("n1 is cut off from all but media")
        cut(bench, node, network.ENGINE, network.EDGE, network.BALANCER, *others)
    silence(bench, begin, lambda node: bench.net.mend(node.inside), 16 if bench.is_short else 60, goes_on=False)


STAND_IN = """#!/bin/sh
# systemctl of the harness: `stop` ends with the process, as systemd's does.
name="${2#trunkline@}"
echo "$1 $name" >>ORDERS
until grep -qx "$1 $name done" DONE 2>/dev/null; do sleep 0.1; done
sed -i "/^$1 $name done$/d" DONE
"""


def carry_out(bench, roll, orders, done, until):
    """What `roll` asks of systemctl, order by order, until it has ended."""
    carried_out = 0
    while roll.poll() is None and now() < until:
        with open(orders) as file:
            lines = file.read().split("\n")[:-1]
        for line in lines[carried_out:]:
            word, name = line.split()
            node = bench.node(name)
            if word == "stop":
                bench.say(f"{name} drains")
                node.program.process.send_signal(signal.SIGTERM)
                node.program.process.wait(300)
                bench.say(f"{name} has ended with {node.program.process.returncode}")
            else:
                bench.cluster.start_gateway(node)
            with open(done, "a") as file:
                file.write(line + " done\n")
        carried_out = len(lines)
        time.sleep(0.1)


def rolling(bench):
    """Scripts/roll over all nodes while calls come, a stand-in of systemctl in place of systemd. The calls go on until the roll is over."""
    phones, sizes, cluster = bench.phones, bench.sizes, bench.cluster
    phones.answers |= set(bench.users)
    orders, done = cluster.path("orders"), cluster.path("done")
    for path in (orders, done):
        open(path, "w").close()
    tool = cluster.write("bin/systemctl", STAND_IN.replace("ORDERS", orders).replace("DONE", done))
    os.chmod(tool, 0o755)
    carrier = bench.dial("calls", list(bench.users), rate=sizes.rate, talk=sizes.talk, count=3_000)
    time.sleep(4)
    began = now()
    environment = dict(os.environ, PATH=cluster.path("bin") + ":" + os.environ["PATH"], CURL_CA_BUNDLE=cluster.path("app.pem"))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "roll")
    with open(cluster.path("roll.log"), "w") as log:
        roll = subprocess.Popen(
            [script] + [f"{node.name}=https://{node.host}:{node.app}" for node in cluster.nodes], env=environment, stdout=log, stderr=log,
            start_new_session=True)
    try:
        carry_out(bench, roll, orders, done, until=began + 420_000)
    finally:
        # its session: the stand-in, too
        if roll.poll() is None:
            os.killpg(roll.pid, signal.SIGKILL)
        status = roll.wait()
    seconds = (now() - began) / 1_000
    with open(cluster.path("roll.log")) as file:
        last = file.read().strip().split("\n")[-1]
    bench.check("Scripts/roll", f"{status} after {seconds:.0f} s: {last}", "0", status == 0)
    bench.wait(200, lambda: len(carrier.read()) >= sizes.calls)
    carrier.program.process.send_signal(signal.SIGUSR1)
    bench.wait(sizes.talk + 10, lambda: not carrier.program.is_running)
    calls = list(carrier.read().values())
    cut_off = [call for call in calls if call.bye or not call.final]
    refused = sorted(call.final[1] for call in calls if call.final and call.final[1] >= 300)
    bench.check("calls that were cut", f"{len(cut_off)} of {len(calls)}", f"0 of {sizes.calls} or more", not cut_off and len(calls) >= sizes.calls)
    bench.check("refusals that the carrier hears", refused or "none", "none", not refused)
    check_absence(bench, began)
    bench.settle()


def check_absence(bench, since):
    """How long phones were without a session."""
    left, gaps = {}, []
    for event in list(bench.phones.events):
        name = event["fields"].get("phone")
        if event["event"] == "offline" and event["at"] >= since:
            left[name] = event["at"]
        elif event["event"] == "online" and name in left:
            gaps.append((event["at"] - left.pop(name)) / 1_000)
    gaps.sort()
    found = f"{len(gaps)} came back" + (f", {gaps[len(gaps) // 2]:.1f} s in the middle, {gaps[-1]:.1f} s at most" if gaps else "") + (
        f"; {len(left)} did not" if left else "")
    bench.check("devices that were sent away", found, "back in ≤ 30 s", gaps and gaps[-1] <= 30 and not left)


@row("roll", "a roll of three nodes, at 2 calls a second")
def roll(bench):
    rolling(bench)


@row("roll-ab", "a roll of two instances behind a local edge, at 2 calls a second", nodes=2, sentinels=False)
def roll_ab(bench):
    rolling(bench)
