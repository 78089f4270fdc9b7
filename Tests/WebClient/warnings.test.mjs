// What is said of a call's audio, by simulated statistics.
import assert from "node:assert/strict";
import { test } from "node:test";
import { online } from "./phone.mjs";

/** A call whose statistics go on by the second: packets that come, lost ones, the round trip, the gateway's reports, the microphone's level (dBFS). */
async function talking() {
  const rig = await online(), call = await rig.talk(), told = [];
  const now = { rate: 50, lost: 0, trip: 0.05, up: 0, level: -20 }, sums = { packets: 0, lost: 0, energy: 0, time: 0, at: rig.clock.time, reports: 0 };
  Object.defineProperty(rig.world, "stats", { configurable: true, get() {
    const seconds = (rig.clock.time - sums.at) / 1000;
    sums.at = rig.clock.time;
    sums.packets += now.rate * seconds;
    sums.lost += now.lost * seconds;
    sums.time += seconds;
    sums.energy += seconds * 10 ** (now.level / 10);
    sums.reports += seconds;
    return {
      i: { type: "inbound-rtp", packetsReceived: sums.packets, packetsLost: sums.lost, bytesReceived: 0 }, o: { type: "remote-outbound-rtp", reportsSent: sums.reports },
      p: { type: "candidate-pair", nominated: true, state: "succeeded", currentRoundTripTime: now.trip },
      r: { type: "remote-inbound-rtp", fractionLost: now.up, roundTripTime: now.trip }, m: { type: "media-source", kind: "audio", totalAudioEnergy: sums.energy, totalSamplesDuration: sums.time },
    };
  } });
  call.addEventListener("warning", ({ warning, isOn }) => told.push(`${isOn ? "+" : "-"}${warning.cause}${warning.direction ? " " + warning.direction : ""}`));
  const run = (seconds) => rig.clock.advance(rig.clock.time + 1000 * seconds);
  await run(5);
  assert.deepEqual([told, call.warnings], [[], []]);
  return { rig, call, now, told, run };
}

for (const [name, bad, cause, soon, late] of [
  ["loss", { rate: 45, lost: 5 }, "loss", 4, 9], ["loss by the gateway's reports", { up: 0.1 }, "loss", 2, 5], ["a long round trip", { trip: 0.5 }, "roundTrip", 2, 5],
  ["nothing comes", { rate: 0 }, "oneWay in", 4, 7], ["nothing arrives there", { up: 1 }, "oneWay out", 4, 7], ["a quiet microphone", { level: -60 }, "microphoneLow", 29, 33],
]) {
  test(`${name}: said after a while, with a sentence, and not any more once it is over`, async () => {
    const { call, now, told, run } = await talking(), good = { ...now };
    Object.assign(now, bad);
    await run(soon);
    assert.deepEqual(told, [], "not yet");
    await run(late - soon);
    assert.deepEqual(told, [`+${cause}`]);
    assert.match(call.warnings[0].text, /^[A-Z][^]{15,}\.$/);
    await run(120);
    assert.deepEqual(told, [`+${cause}`], "once");
    Object.assign(now, good);
    await run(12);
    assert.deepEqual([told, call.warnings], [[`+${cause}`, `-${cause}`], []]);
  });
}

test("hold by either side, mute, and a listener who speaks now and then are nothing to warn of", async () => {
  const { rig, call, now, told, run } = await talking();
  call.mute(true);
  now.level = -90;
  await run(60);
  call.mute(false);
  for (let turn = 0; turn < 4; turn++) {
    now.level = -90;
    await run(25);
    now.level = -30;
    await run(1);
  }
  await rig.tell("call.held", call.id, { by: "remote", on: true });
  now.rate = 0;
  await run(60);
  await rig.tell("call.held", call.id, { by: "remote", on: false });
  now.rate = 50;
  await run(5);
  call.hold(true);
  await rig.ok("call.hold");
  Object.assign(now, { rate: 0, up: 1, trip: 2 });
  await run(60);
  assert.deepEqual(told, []);
});

test("a call that is held, or ends, takes its warnings with it", async () => {
  const { rig, call, now, told, run } = await talking();
  now.trip = 1;
  await run(6);
  call.hold(true);
  await rig.ok("call.hold");
  await run(2);
  assert.deepEqual([told, call.warnings], [["+roundTrip", "-roundTrip"], []]);
  call.hold(false);
  await rig.ok("call.hold");
  await run(6);
  assert.equal(call.warnings.length, 1);
  call.end();
  assert.deepEqual(call.warnings, []);
});

test("numbers that are none warn of nothing", async () => {
  for (const junk of [NaN, Infinity, "1", null, undefined, {}]) {
    const rig = await online(), call = await rig.talk();
    let n = 0;
    Object.defineProperty(rig.world, "stats", { get: () => ({
      i: { type: "inbound-rtp", packetsReceived: n += 25, packetsLost: junk }, r: { type: "remote-inbound-rtp", fractionLost: junk, roundTripTime: junk },
      m: { type: "media-source", kind: "audio", totalAudioEnergy: junk, totalSamplesDuration: junk }, p: { type: "candidate-pair", nominated: true, state: "succeeded", currentRoundTripTime: junk },
    }) });
    await rig.clock.advance(rig.clock.time + 60_000);
    assert.deepEqual([call.warnings, call.state], [[], "connected"], String(junk));
  }
});
