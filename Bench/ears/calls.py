"""One call: set up, both sides speak at once, hung up; then what each heard, as one line."""
import asyncio, dataclasses, os, time
import audio, hearing
import numpy as np
from processes import Child
from trunk import HOST


@dataclasses.dataclass
class Plan:
    row: str
    network: dict
    client: str
    bridge: str
    number: int
    slot: int

    @property
    def is_incoming(self):
        return self.number % 2 == 0

    @property
    def name(self):
        return f"{self.row}-{self.client}-{self.bridge}-{self.number}"


class Aiortc:
    """The client in a process of its own, with the page's interface."""

    async def open(self, play, host):
        self.child = await Child.start("aiortc_peer.py", play=os.path.abspath(play), host=host)
        await self.child.hear()
        return self

    async def offer(self):
        return (await self.child.ask(do="offer"))["sdp"]

    async def answer(self, sdp):
        return (await self.child.ask(do="answer", sdp=sdp))["sdp"]

    async def accept(self, sdp):
        await self.child.ask(do="accept", sdp=sdp)

    async def connected(self):
        await self.child.ask(do="connected")

    async def speak(self):
        await self.child.ask(do="speak")

    async def close(self):
        await self.child.end()


async def made(plan, bridge, client, host, folder, trunk_said, app_said):
    """The call, as files in the folder; what they hold is read by `result`."""
    seed = f"{plan.row} {plan.number}"
    network = plan.network.get("app", {})
    carrier = await Child.start(
        "rtp_peer.py", host=HOST, play=trunk_said[0], network=plan.network.get("trunk", {}), seed=seed, skew_ppm=plan.network.get("skew_ppm", 0))
    relay, base = None, f"{folder}/{plan.name}"
    try:
        port = (await carrier.hear())["port"]

        async def through(gateway_host, gateway_port):
            nonlocal relay
            relay = await Child.start("relay.py", host=host, to=[gateway_host, gateway_port], network=network, seed=seed)
            return host, (await relay.hear())["port"]

        began = time.time()
        to, connected_at, hang_up, identifier = await bridge.call(client, plan.slot, plan.is_incoming, port, through, network.get("delay", 0) / 1000)
        carrier.tell(to=to)
        if plan.client == "aiortc":
            await client.speak()
        await asyncio.sleep(6)
        before = await client.statistics() if plan.client == "chromium" else None
        await asyncio.sleep(len(trunk_said[1]) / 8000 - 5.5)
        after = await client.statistics() if plan.client == "chromium" else None
        busy = {"setUpMs": round(1000 * (connected_at - began)), "id": identifier}
        # Both sides speak until the end, so that nothing is missing in between.
        hung_up_at = time.time()
        await hang_up()
        sent = await carrier.ask(stop=1, file=base + "-trunk.npz")
        if plan.client == "chromium":
            heard = await client.finish()
        else:
            heard = await client.child.ask(do="finish", file=base + "-app.npz")
        passed = await relay.ask(stop=1, file=base + "-relay.npz")
        return busy | {"connectedAt": connected_at, "hungUpAt": hung_up_at, "sent": sent, "passed": passed, "heard": heard, "before": before, "after": after}
    finally:
        await client.close()
        for child in (carrier, relay):
            if child:
                await child.end()


def change(before, after, name, kind="inbound-rtp"):
    def value(statistics):
        return sum(entry.get(name, 0) for entry in statistics["all"] if entry["type"] == kind)

    return value(after) - value(before)


def chromium_figures(before, after):
    """What getStats counted while passages were scored."""
    samples = max(1, change(before, after, "totalSamplesReceived"))
    emitted = max(1, change(before, after, "jitterBufferEmittedCount"))
    return {
        "concealedPct": round(100 * (change(before, after, "concealedSamples") - change(before, after, "silentConcealedSamples")) / samples, 3),
        "silentPct": round(100 * change(before, after, "silentConcealedSamples") / samples, 3),
        "stretchedPct": round(
            100 * (change(before, after, "insertedSamplesForDeceleration") + change(before, after, "removedSamplesForAcceleration")) / samples, 3),
        "copies": change(before, after, "fecPacketsReceived"),
        "bufferMs": round(1000 * change(before, after, "jitterBufferDelay") / emitted, 1),
        "targetMs": round(1000 * change(before, after, "jitterBufferTargetDelay") / emitted, 1),
        "sentKbps": round(8 * change(before, after, "bytesSent", "outbound-rtp") / max(0.001, after["at"] - before["at"]) / 1000, 1),
        "codec": next((entry["mimeType"] for entry in after["all"] if entry["type"] == "codec"), None),
        "fmtp": next((entry.get("sdpFmtpLine") for entry in after["all"] if entry["type"] == "codec"), None),
    }


def result(plan, facts, folder, trunk_said, app_said):
    """Reads the files of a call: PESQ, delays, losses. Some seconds of CPU; no I/O but the files."""
    base = f"{folder}/{plan.name}"
    trunk, relay = np.load(base + "-trunk.npz"), np.load(base + "-relay.npz")
    line = {
        "row": plan.row, "client": plan.client, "bridge": plan.bridge, "number": plan.number, "direction": "in" if plan.is_incoming else "out",
        "voicesDown": trunk_said[3], "voicesUp": app_said[3], "setUpMs": facts["setUpMs"], "harnessLateMs": facts["sent"]["worst_ms"]}
    trunk_begin, trunk_step = float(trunk["begin"]), float(trunk["step"])

    def trunk_mouth(sample):
        return trunk_begin - 0.02 + sample / 160 * trunk_step

    # What the app heard.
    relay_late = float(relay["late"])
    line["harnessLateMs"] = round(max(line["harnessLateMs"], 1000 * relay_late), 2)
    if plan.client == "chromium":
        samples, rate, times, sizes = facts["heard"]
        heard = hearing.decimated(samples, rate)
        edges = np.concatenate([[0], np.cumsum(sizes)]) / rate * 8000

        def app_ear(sample):
            block = min(max(int(np.searchsorted(edges, sample, "right")) - 1, 0), len(times) - 1)
            return times[block] + (sample - edges[block]) / 8000

        line |= chromium_figures(facts["before"], facts["after"])
    else:
        app = np.load(base + "-app.npz")
        offsets = np.concatenate([[0], np.cumsum(app["length"])])
        octets = app["octets"].tobytes()
        spoken = [
            (at, int(stamp), octets[offsets[index] : offsets[index + 1]])
            for index, (at, stamp, kind) in enumerate(zip(app["at"], app["stamp"], app["type"])) if kind not in (13, 101, 126, 110)]
        clock = 8000 if plan.bridge == "janus" else 48000
        heard, begin, concealed, repaired, arrivals = hearing.played(spoken, clock)
        line |= {"concealedPct": round(100 * concealed / max(1, len(heard) / 160), 3), "repairedMs": 20 * repaired}

        def app_ear(sample):
            return begin + sample / 8000

    said, segments = trunk_said[1], trunk_said[2]
    found = hearing.places(said, heard)
    line["pesqDown"] = hearing.score(said, heard, segments, found)
    scored = found[found[:, 0] >= segments[0][0]] if len(found) else found
    down = hearing.delays(scored, trunk_mouth, app_ear)
    line |= {"earDownMs": median(down), "wobbleDownMs": rounded(hearing.spread(down))}
    if plan.client == "aiortc":
        out = departures(relay, 0, clock)
        through = [
            1000 * (out(there) - trunk_begin - here // 160 * trunk_step - here % 160 / 8000) for here, there, _ in scored]
        line |= {"transitDownMs": median(through), "transitDownMovesMs": rounded(hearing.spread(through))}
    # The first sample of the passage that was heard at all.
    line["clippedDownMs"] = rounded(max(0, -found[0, 1] + found[0, 0]) / 8) if len(found) else None

    # What the trunk heard, of packets that no network touched: by time stamp.
    said, segments = app_said[1], app_said[2]
    stamps = trunk["stamp"]
    if len(stamps):
        places = ((stamps - stamps[0]) & 0xFFFFFFFF).astype(np.int64)
        keep = places < 8000 * 300
        places, octets, at = places[keep], trunk["payload"][keep], trunk["at"][keep]
        heard = np.zeros(int(places.max()) + 160)
        for place, payload in zip(places, octets):
            heard[place : place + 160] = audio.DECODE[0][payload]
        lag = at - places / 8000
        base_time = float(np.median(lag))
        line["lateUpMs"] = rounded(1000 * float(np.max(lag - np.min(lag))))
        found = hearing.places(said, heard)
        line["pesqUp"] = hearing.score(said, heard, segments, found)
        scored = found[found[:, 0] >= segments[0][0]] if len(found) else found
        up = hearing.delays(scored, lambda sample: sample / 8000, lambda sample: base_time + sample / 8000)
        line["wobbleUpMs"] = rounded(hearing.spread(up))
        if plan.client == "aiortc":
            came = {int(place) // 160: arrival for place, arrival in zip(places, at)}
            into, first = departures(relay, 1, 8000 if plan.bridge == "janus" else 48000), facts["heard"]["silentFrames"] * 160
            ahead = 0 if plan.bridge == "janus" else LOOK_AHEAD
            through = [
                1000 * (came.get(int(there) // 160, float("nan")) + there % 160 / 8000 - into(here + first + ahead)) for here, there, _ in scored]
            line |= {"transitUpMs": median(through), "transitUpMovesMs": rounded(hearing.spread(through))}

    # What the capture between app and gateway says.
    for way, name in ((0, "Down"), (1, "Up")):
        mine = (relay["way"] == way) & (relay["at"] < facts["hungUpAt"])
        if mine.sum() < 2:
            continue
        clock = 8000 if plan.bridge == "janus" else 48000
        stamp, at = relay["stamp"][mine].astype(np.int64), relay["at"][mine]
        lag = at - ((stamp - stamp[0]) & 0xFFFFFFFF) / clock
        lag = 1000 * (lag - np.percentile(lag, 5))
        line |= {
            f"packets{name}": int(mine.sum()), f"later{name}": int((lag[100:] > 5).sum()), f"latest{name}Ms": rounded(lag[100:].max()),
            f"latestEver{name}Ms": rounded(lag[1:].max()),
            f"kbps{name}": round(8 * relay["length"][mine].sum() / max(1, at[-1] - at[0]) / 1000, 1)}
    if plan.client == "aiortc":
        # Its microphone is ours, in Python.
        line["harnessLateMs"] = max(line["harnessLateMs"], line.get("latestUpMs", 0))
    return line


def rounded(value):
    return None if value is None or value != value else round(float(value), 1)


def median(values):
    values = [value for value in values if value == value]
    return rounded(np.median(values)) if values else None


#: libopus hears so much of what follows before it codes a sample: its packets hold speech that is 6.5 ms older. In samples of 8 kHz.
LOOK_AHEAD = 52


def departures(relay, way, clock):
    """When a packet passed between app and gateway, by the place of a sample of 8 kHz in its stream; the sample's place in it is added."""
    mine = relay["way"] == way
    stamps, at = relay["stamp"][mine].astype(np.int64), relay["at"][mine]
    times = {}
    for stamp, when in zip(stamps, at):
        times.setdefault(int(((stamp - stamps[0]) & 0xFFFFFFFF) / clock * 50 + 0.5), when)
    return lambda sample: times.get(int(sample) // 160, float("nan")) + sample % 160 / 8000
