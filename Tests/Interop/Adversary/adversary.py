"""Runs attacks of table.json against a release binary that carries calls, and says for each what came of it.

    adversary.py --binary PATH [--row ID …] [--minutes N] [--calls N] [--margin N] [--json] [--list] [--docs]

Without --minutes every row is run once, each against a gateway of its own that carries two calls. With --minutes the rows are run one after
the other, over and over, against one gateway that carries --calls, half of the time without and half of the time with TLS on the app port.
Rows of the arenas api, node and open fill their gateway first (`asked.py`); --short fills it less.
--margin widens the bounds of time for a machine that others use as well. Status 0 only if every outcome was as the table says.

It wants a network of its own (Scripts/adversary makes one): loopback, any address.
"""
import argparse, json, os, signal, subprocess, sys, time
from arena import Calls, Gateway
from asked import AskedGateway, sizes
from processes import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = json.load(open(os.path.join(HERE, "table.json")))

parser = argparse.ArgumentParser()
parser.add_argument("--binary")
parser.add_argument("--row", action="append", default=[])
parser.add_argument("--minutes", type=float)
parser.add_argument("--calls", type=int)
parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
parser.add_argument("--margin", type=float, default=1)
parser.add_argument("--json", action="store_true")
parser.add_argument("--list", action="store_true")
parser.add_argument("--docs", action="store_true", help="prints the tables of docs/operate/security.md")
parser.add_argument("--arena", choices=["plain", "tls", "small", "api", "node", "open"], help="this one only")
parser.add_argument("--brief", action="store_true", help="each row in the arenas of the test suite only")
parser.add_argument("--short", action="store_true", help="fewer devices, contacts, events and calls, and no milliseconds beside an attack, for a test suite")
parser.add_argument("--keep-going", action="store_true", help="a long run goes on after a gateway was lost")


def limits(row, figures, options):
    """What of a row's outcome does not hold, as text. How much later something is beside an attack is not judged where others use the machine."""
    wrong, margin = [], options.margin
    for rule in row["outcome"]:
        name, relation, bound = rule.split()
        if options.short and name == "options_above_ms":
            continue
        value, bound = figures.get(name), float(bound)
        if relation == "<=" and name.endswith(("_ms", "_us", "_s", "spin", "cpu")):
            bound *= margin
        holds = value is not None and {"==": value == bound, "<=": value <= bound, ">=": value >= bound}[relation]
        if not holds:
            wrong.append(f"{name} is {value}, not {relation} {bound:g}")
    return wrong


def last_json(text):
    for line in reversed(text.strip().split("\n")):
        if line.startswith("{"):
            return json.loads(line)
    return {}


def attack(row, gateway, options, control=False):
    command = [sys.executable, "-B", f"{HERE}/attacks/{row['program']}.py", "--arena", gateway.arena_file, "--seed", str(options.seed)]
    form = row.get("short" if options.short else "full", {})
    limit = form.get("limit", row.get("limit", 60))
    command += row.get("arguments", []) + form.get("arguments", []) + (["--control"] if control else [])
    try:
        done = gateway.run_beside(command, limit)
    except subprocess.TimeoutExpired:
        return {"said": [f"it did not end within {limit} s"]}
    return {**last_json(done.stdout), "said": done.stderr.strip().split("\n")[-6:]}


def run_row(row, gateway, calls, options):
    """One attack, what it did to others while it ran and after. Figures by name."""
    figures, resident = {}, gateway.resident()
    if row.get("control") and options.minutes:
        figures["control_lost"] = control(row, gateway, options)
    before = gateway.lost()
    watch = gateway.watch()
    figures |= attack(row, gateway, options)
    figures |= last_json(watch.end())
    figures["alive"] = 1 if gateway.is_alive() else 0
    if figures["alive"]:
        figures["lost"] = gateway.lost() - before
        figures["calls_left"] = gateway.calls_connected()
        figures["new_call"], figures["setup_ms"] = gateway.new_call()
        figures["spin_after"] = gateway.spinning()
        figures["healthz"] = gateway.health()
        figures["rss_mb"] = round(gateway.resident() - resident, 1)
        if figures["lost"] and row.get("control") and not options.minutes:
            figures["control_lost"] = control(row, gateway, options)
        figures["lost"] = max(0, figures["lost"] - figures.get("control_lost", 0))
    return figures


def control(row, gateway, options):
    """Packets of the calls that are lost when the same octets go to a port where nobody listens."""
    before = gateway.lost()
    attack(row, gateway, options, control=True)
    return gateway.lost() - before


def allowed_loss(options):
    """Packets that a machine which others use as well may cost."""
    return 0 if options.margin == 1 else 50


def common_outcome(row, figures, calls, options):
    """What holds in every row. Its own call may lose what the attack is about."""
    if not figures.get("alive"):
        return ["the process is gone"]
    wrong = []
    for name, wanted in (("healthz", 200), ("new_call", 1), ("calls_left", calls)):
        if figures.get(name) != wanted:
            wrong.append(f"{name} is {figures.get(name)}, not {wanted}")
    if not row.get("own_call") and figures.get("lost", 0) > allowed_loss(options):
        wrong.append(f"{figures['lost']} packets of the calls were lost")
    if figures.get("spin_after", 0) > 0.3:
        wrong.append(f"a thread spins: {figures['spin_after']} of a core")
    return wrong


def line(row, figures, wrong, seconds):
    shown = {name: value for name, value in figures.items() if name not in ("said", "threads") and value not in (0, 0.0, None)}
    text = ", ".join(f"{name} {value}" for name, value in shown.items())
    return f"{'ok  ' if not wrong else 'RED '} {row['id']:<24} {seconds:5.1f} s  {text}" + "".join(f"\n       - {item}" for item in wrong)


def say(row, figures, wrong, seconds, options):
    if options.json:
        print(json.dumps({"row": row["id"], "wrong": wrong, "seconds": round(seconds, 1), "figures": figures}), flush=True)
    else:
        print(line(row, figures, wrong, seconds), flush=True)
        if wrong and figures.get("said"):
            print("       | " + "\n       | ".join(figures["said"]), flush=True)


def gateway_of(row, options, kind, calls):
    if kind in ("api", "node", "open"):
        return AskedGateway(options.binary, kind, calls, sizes(row, options.short))
    return Gateway(options.binary, kind, users=calls)


def one_row(row, options, kind):
    """A gateway of its own, two calls unless the row has more, the attack, the books."""
    began, calls = time.monotonic(), options.calls or sizes(row, options.short).get("calls", 2)
    with gateway_of(row, options, kind, calls) as gateway, Calls(gateway, calls) as load:
        figures = run_row(row, gateway, calls, options)
        wrong = common_outcome(row, figures, calls, options) + limits(row, figures, options)
        if figures["alive"] and not (wrong and figures.get("healthz") != 200):
            wrong += load.end(allowed_loss(options), figures) + gateway.end(figures)
        if wrong:
            figures["said"] = figures.get("said", []) + gateway.log_tail()
    say(row, figures, wrong, time.monotonic() - began, options)
    return wrong


def rows_of(kind):
    return [row for row in TABLE if kind in row["arenas"] + row.get("also", [])]


def long_run(options):
    """Every row in turn until the time is over; half of it in each arena."""
    calls, bad, kinds = options.calls or 50, [], ["plain", "tls"]
    for kind in kinds:
        end, rows = time.monotonic() + options.minutes * 60 / len(kinds), [row for row in rows_of(kind) if not options.row or row["id"] in options.row]
        while rows and time.monotonic() < end:
            with Gateway(options.binary, kind, users=calls) as gateway, Calls(gateway, calls) as load:
                print(f"-- {kind}: {calls} calls, {load.setup_seconds:.1f} s to set up", flush=True)
                total, settled, attacks = {"control_lost": 0, "lost": 0}, None, 0
                while time.monotonic() < end and gateway.is_alive():
                    row, began = rows[attacks % len(rows)], time.monotonic()
                    options.seed += 1
                    attacks += 1
                    figures = run_row(row, gateway, calls, options)
                    wrong = common_outcome(row, figures, calls, options) + limits(row, figures, options)
                    for name in total:
                        total[name] += figures.get(name, 0)
                    say(row, figures, wrong, time.monotonic() - began, options)
                    bad += [f"{kind} {row['id']}: {item}" for item in wrong]
                    if attacks == len(rows):
                        settled = gateway.resident()
                if gateway.is_alive():
                    figures = {**total, "attacks": attacks}
                    if settled:
                        figures["grown_mb"] = round(gateway.resident() - settled, 1)
                        if figures["grown_mb"] > 8:
                            bad.append(f"{kind}: memory grew by {figures['grown_mb']} MB after the first round")
                    wrong = load.end(allowed_loss(options), figures) + gateway.end(figures)
                    bad += [f"{kind}: {item}" for item in wrong]
                    print(f"-- {kind}: " + json.dumps({name: value for name, value in figures.items() if name != "said"}), flush=True)
                else:
                    bad.append(f"{kind}: the gateway ended")
                    print("\n".join(gateway.log_tail()), flush=True)
                    if not options.keep_going:
                        end = 0
    print(f"-- {len(bad)} outcomes were not as the table says" + "".join(f"\n   {item}" for item in bad), flush=True)
    return 1 if bad else 0


def docs():
    print("| attack | promised | how it is held |\n|---|---|---|")
    for row in TABLE:
        print(f"| {row['attack']} | {row['promise']} | {row['held']} |")
    return 0


def main(options):
    if options.list:
        for row in TABLE:
            bounds = ", ".join(row["outcome"])
            print(f"{row['id']:<24} {'/'.join(row['arenas'] + row.get('also', [])):<10} {row.get('class', ''):<10} {row['attack']}\n{'':<46} {bounds}")
        return 0
    if options.docs:
        return docs()
    unknown = set(options.row) - {row["id"] for row in TABLE}
    if not options.binary or unknown:
        print(f"adversary: {'no row ' + ', '.join(unknown) if unknown else '--binary names a release build'}", file=sys.stderr)
        return 2
    if options.minutes:
        return long_run(options)
    bad = 0
    for row in TABLE:
        for kind in row["arenas"] + ([] if options.brief else row.get("also", [])):
            if (not options.row or row["id"] in options.row) and options.arena in (None, kind):
                try:
                    bad += 1 if one_row(row, options, kind) else 0
                except Failure as problem:
                    say(row, {}, [f"{kind}: {problem}"], 0, options)
                    bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(parser.parse_args()))
