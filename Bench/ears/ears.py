"""What a real client hears: calls between a carrier's RTP and Chromium or aiortc, through Trunkline and through Janus in its place.

    .venv/bin/python Bench/ears/ears.py --binary .build/release/trunkline --rows clean,trunk-3 --results /tmp/ears.jsonl
    .venv/bin/python Bench/ears/ears.py --list

One JSON object a line for each call: row, client, bridge, direction, PESQ of its passages both ways, mouth to ear, how far delay moved, what was
concealed and repaired, what the capture says of each packet. Calls that a results file has already are not made again. Calls run side by
side, Trunkline's and Janus' at the same time. A call in which this program itself sent more than 5 ms late is made again, and counted.
"""
import argparse, asyncio, concurrent.futures, hashlib, json, os, shutil, signal, sys, tempfile, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Tests/Interop/peers"))
import bridges, calls, chromium, passages
from processes import be_idle, end_with_parent, own_address

#: What each network does: `trunk` to the carrier's packets, `app` to both directions between app and gateway.
ROWS = {
    "clean": {},
    **{f"trunk-{loss}": {"trunk": {"loss": loss}} for loss in (1, 3, 5, 10)},
    **{f"app-{loss}": {"app": {"loss": loss}} for loss in (1, 3, 5, 10)},
    "jitter": {"app": {"jitter": 10}, "trunk": {"jitter": 5}},
    "skew": {"skew_ppm": 300},
    "pauses": {"pauses": True},
    "rtt-100": {"app": {"delay": 50}},
}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/trunkline")
    parser.add_argument("--rows", default=",".join(ROWS), help="some of --list, by commas")
    parser.add_argument("--clients", default="chromium,aiortc")
    parser.add_argument("--bridges", default="trunkline,janus")
    parser.add_argument("--calls", type=int, default=6, help="of each row, client and bridge; half of them are incoming")
    parser.add_argument("--side-by-side", type=int, default=4, help="calls at a time, of all bridges")
    parser.add_argument("--passages", type=int, default=3, help="of 8 s that are scored in a call, each way, after the lead-in")
    parser.add_argument("--voices", nargs="*", help="WAV files of 8 kHz, 8 s of speech at least (default: Bench/.voices, which Bench/voices.py makes)")
    parser.add_argument("--results", help="JSON lines are added here; without it they go to standard output")
    parser.add_argument("--keep", metavar="FOLDER", help="recordings and captures stay there")
    parser.add_argument("--list", action="store_true", help="the rows")
    return parser.parse_args()


def build_of(binary):
    """What tells one gateway from another: calls of another one are not gone on with."""
    with open(binary, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def done(path, build):
    """How many calls of each (row, client, bridge) the results file has of this gateway."""
    counts = {}
    if path and os.path.exists(path):
        for line in open(path):
            entry = json.loads(line)
            if entry["build"] == build:
                key = entry["row"], entry["client"], entry["bridge"]
                counts[key] = counts.get(key, 0) + 1
    return counts


def batches(options, names):
    """Calls that run at the same time: of one row and client, the same passages and losses for every bridge. Who has which browser changes
    from batch to batch."""
    had = done(options.results, build_of(options.binary))
    width = max(1, options.side_by_side // len(names))
    for row in options.rows.split(","):
        for client in options.clients.split(","):
            first = min(had.get((row, client, name), 0) for name in names)
            for turn, number in enumerate(range(first, options.calls, width)):
                yield [
                    calls.Plan(row, ROWS[row], client, name, number + place, slot=(index + turn) % len(names) * width + place)
                    for index, name in enumerate(names) for place in range(min(width, options.calls - number))]


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.host = own_address()
        self.names = options.bridges.split(",")
        if "janus" in self.names and not bridges.Janus.is_installed():
            tell("Janus is not installed: without it (apt-get install janus)")
            self.names.remove("janus")
        self.width = max(1, options.side_by_side // len(self.names))
        self.voices = passages.Voices(options.voices, folder)
        self.scoring = concurrent.futures.ProcessPoolExecutor(os.cpu_count(), initializer=be_idle)
        self.build, self.repeated = build_of(options.binary), 0

    async def run(self):
        plan = list(batches(self.options, self.names))
        if not plan:
            return tell("nothing is left to do")
        slots = self.width * len(self.names)
        self.bridges, self.browsers = {}, {}
        try:
            for name in self.names:
                bridge = bridges.Trunkline(self.options.binary, slots) if name == "trunkline" else bridges.Janus(slots)
                self.bridges[name] = await bridge.start(self.host)
            began = time.monotonic()
            for index, batch in enumerate(plan):
                await self.batch(batch)
                left = (time.monotonic() - began) / (index + 1) * (len(plan) - index - 1)
                tell(f"{index + 1} of {len(plan)} batches: {batch[0].row}, {batch[0].client}; {left / 60:.0f} min left")
        finally:
            for browser in self.browsers.values():
                await browser.end()
            for bridge in self.bridges.values():
                await bridge.end()
            self.scoring.shutdown()

    def said(self, plan):
        """What both sides say: other voices in each call, the same for every bridge. A browser says the same in all of its calls."""
        count, place = self.options.passages, plan.slot % self.width
        pauses = plan.network.get("pauses", False)
        return self.voices.write(plan.number * count, count, pauses), self.voices.write(place * count + 1, count, pauses)

    async def browser(self, plan, play):
        key = plan.slot, play
        if key not in self.browsers:
            for old in [old for old in self.browsers if old[0] == plan.slot]:
                await self.browsers.pop(old).end()
            self.browsers[key] = await chromium.Browser().start(play)
        return self.browsers[key]

    async def batch(self, plans):
        left = plans
        for attempt in range(4):
            before = {name: await bridge.busy() for name, bridge in self.bridges.items()}
            began = time.monotonic()
            answers = await asyncio.gather(*(self.call(plan) for plan in left), return_exceptions=True)
            seconds = time.monotonic() - began
            busy = {name: round((await bridge.busy() - before[name]) / seconds, 3) for name, bridge in self.bridges.items()}
            failed = []
            for plan, answer in zip(left, answers):
                if isinstance(answer, BaseException):
                    tell(f"{plan.name} failed: {type(answer).__name__}: {answer}")
                    failed.append(plan)
                elif (late := self.lateness(answer)) > 5 and attempt < 3:
                    tell(f"{plan.name} is made again: the harness was {late} ms late")
                    self.repeated += 1
                    failed.append(plan)
                else:
                    self.write(answer | {"attempt": attempt, "bridgeCores": busy[plan.bridge], "build": self.build})
            if not failed:
                return
            left = failed
        raise SystemExit(f"ears: {', '.join(plan.name for plan in left)} could not be made")

    @staticmethod
    def lateness(answer):
        """Of carrier, relay and a microphone of ours; where nothing may be made up, of the browser's too, as the capture shows it."""
        return max(answer["harnessLateMs"], answer.get("latestEverUpMs", 0) if answer["row"] == "clean" else 0)

    async def call(self, plan):
        trunk_said, app_said = self.said(plan)
        if plan.client == "chromium":
            client = await (await self.browser(plan, app_said[0])).page()
        else:
            client = await calls.Aiortc().open(app_said[0], self.host)
        facts = await calls.made(plan, self.bridges[plan.bridge], client, self.host, self.folder, trunk_said, app_said)
        loop = asyncio.get_running_loop()
        line = await loop.run_in_executor(self.scoring, calls.result, plan, facts, self.folder, trunk_said, app_said)
        return line | await self.bridges[plan.bridge].record(facts["id"])

    def write(self, line):
        text = json.dumps(line)
        if self.options.results:
            with open(self.options.results, "a") as file:
                file.write(text + "\n")
        else:
            print(text, flush=True)


def tell(text):
    print(f"ears: {text}", file=sys.stderr, flush=True)


async def run(options):
    folder = options.keep or tempfile.mkdtemp(prefix="trunkline-ears-")
    os.makedirs(folder, exist_ok=True)
    try:
        await Run(options, folder).run()
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    options = parsed()
    if options.list:
        print("\n".join(f"{name}: {json.dumps(what)}" for name, what in ROWS.items()))
    else:
        end_with_parent(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ears: ended from outside"))  # past every `finally`
        asyncio.run(run(options))
