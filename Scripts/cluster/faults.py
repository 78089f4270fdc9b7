"""The fault table: a cluster under load, one fault a row, what carriers, apps and records have of it. See --help."""
import argparse, json, os, shutil, signal, sys, tempfile, time

sys.dont_write_bytecode = True
import network
from programs import Failure

# Characters of a cell; the JSON has all.
CELL = 72
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = """examples:
  Scripts/faults                             all rows, at full size: an hour or more
  Scripts/faults --list                      their names
  Scripts/faults --only kill --only restart  two of them
  Scripts/faults --short                     lease 2 s, lost_after 5 s, a tenth of the calls
  Scripts/faults --sizes 6,10,60             the real clocks on a small machine
  TRUNKLINE_BINARIES=.build/debug Scripts/faults   these in place of building the release

how long: with --sizes 6,10,60 on two cores most rows take 35 to 40 s, shared-store-down 15 min more (Redis is away for so long),
grants-flushed 3 min (sessions must end first). All rows take an hour or more, at full size or on a busy machine longer.
"""


def arguments():
    parser = argparse.ArgumentParser(prog="Scripts/faults", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="names the rows and ends")
    parser.add_argument("--only", action="append", metavar="ROW", default=[], help="this row alone; may be repeated")
    parser.add_argument("--short", action="store_true", help="short clocks and small sizes, as in the live suite")
    parser.add_argument("--sizes", metavar="R,C,I", help="calls that ring, calls that are connected, idle phones: in place of 20,50,500")
    parser.add_argument("--json", metavar="FILE", default="run/faults.json", help="where the figures go (default: %(default)s)")
    parser.add_argument("--binaries", metavar="DIR", required=True, help="the folder of `trunkline` and `trunkline-lab`")
    parser.add_argument("--other", metavar="BINARY", help="another version of `trunkline`: one node of the row `versions` is it")
    parser.add_argument("--keep", action="store_true", help="keeps the logs of rows that are as they should be, too")
    return parser.parse_args()


def rows_of(names):
    import bench, node_faults, shared_store_faults, directory_faults, grant_faults, odd_faults  # noqa: F401 (they register their rows)
    known = {row.name: row for row in bench.ROWS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Failure(f"no row {', '.join(unknown)}; there are: {', '.join(known)}")
    return [row for row in bench.ROWS if not names or row.name in names]


def run(net, row, options, places, folder, say):
    from bench import Bench, Check
    bench = Bench(net, row, os.path.abspath(options.binaries), os.path.join(HERE, "..", "..", "Deploy"), folder, places, options.short, say,
                  options.other and os.path.abspath(options.other))
    if options.sizes:
        bench.resize(*(int(number) for number in options.sizes.split(",")))
    try:
        bench.start()
        row.function(bench)
    except Failure as failure:
        bench.checks.append(Check("the row", str(failure), "runs to its end", False))
        say(f"  WRONG {failure}")
    finally:
        bench.stop()
    return bench


def table(results):
    lines = [("row", "what", "found", "wanted", "")]
    for bench in results:
        for number, check in enumerate(bench.checks):
            lines.append((bench.row.name if number == 0 else "", check.what, check.found, check.wanted, "" if check.is_right else "WRONG"))
    lines = [tuple(cell if len(cell) <= CELL else cell[:CELL - 1] + "…" for cell in line) for line in lines]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths + [0])).rstrip(), flush=True)


def report(results, options, seconds):
    rows = [{"name": bench.row.name, "title": bench.row.title, "seconds": round(bench.seconds, 1),
             "isRight": all(check.is_right for check in bench.checks),
             "checks": [vars(check) for check in bench.checks]} for bench in results]
    os.makedirs(os.path.dirname(os.path.abspath(options.json)), exist_ok=True)
    with open(options.json, "w") as file:
        json.dump({"short": options.short, "seconds": round(seconds, 1), "rows": rows}, file, indent=1, ensure_ascii=False)


def main():
    options = arguments()
    try:
        rows = rows_of(options.only)
        if options.list:
            for row in rows:
                print(f"{row.name:16} {row.title}")
            return 0
        network.enter()
        net = network.Network()
    except Failure as failure:
        print(f"faults: {failure}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began, results = time.monotonic(), []
    folder = tempfile.mkdtemp(prefix="trunkline-faults-")
    try:
        places = {}
        for number in (1, 2, 3):
            address = f"10.77.0.{10 + number}"
            places[f"n{number}"] = (address, net.namespace(f"n{number}", address))
        for row in rows:
            print(f"---- {row.name}: {row.title}", flush=True)
            started = time.monotonic()
            logs = os.path.join(folder, row.name)
            os.makedirs(logs)
            bench = run(net, row, options, places, logs, lambda text: print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True))
            bench.seconds = time.monotonic() - started
            results.append(bench)
            if all(check.is_right for check in bench.checks) and not options.keep:
                shutil.rmtree(logs)
    except KeyboardInterrupt:
        print("broken off", flush=True)
        return 130
    finally:
        # a further one would leave parts of the cluster behind
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        net.close()
        if results:
            report(results, options, time.monotonic() - began)
        if os.listdir(folder):
            print(f"Logs are left in {folder}", flush=True)
        else:
            os.rmdir(folder)
    print()
    table(results)
    is_right = all(check.is_right for bench in results for check in bench.checks)
    print(f"\n{len(results)} rows in {time.monotonic() - began:.0f} s: {'all as they should be' if is_right else 'NOT all as they should be'}; {options.json}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
