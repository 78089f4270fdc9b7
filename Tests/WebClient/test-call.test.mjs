// A test call of the preflight: what the gateway and the browser say of both ways.
import assert from "node:assert/strict";
import { test } from "node:test";
import { opinion } from "../../Sources/Client/WebClient/test-call.js";
import { Rig, Stream, settle } from "./phone.mjs";

const GOOD = { rttMs: 41, jitterMs: 3.2, loss: 0, bytes: 9_000, codec: "opus", mos: 4.28, audio: true };
const stats = (inbound = {}, pair = {}) => new Map(Object.entries({
  in: { type: "inbound-rtp", packetsReceived: 250, packetsLost: 0, jitter: 0.004, totalAudioEnergy: 0.2, jitterBufferDelay: 10, jitterBufferEmittedCount: 250, ...inbound },
  pair: { type: "candidate-pair", nominated: true, state: "succeeded", currentRoundTripTime: 0.041, ...pair },
}));

/** A phone at a gateway with test calls; `audio` counts what is open. */
async function ready({ isRunning = true, inbound, pair, ...options } = {}, caps = ["echo"]) {
  const audio = { open: 0, heard: [] };
  const rig = new Rig({
    testAudio: () => {
      audio.open++;
      return { track: new Stream().getAudioTracks()[0], isRunning, listen: (stream) => audio.heard.push(stream), stop: () => { audio.open--; } };
    }, ...options,
  }, { made: (peer) => { peer.getStats = async () => stats(inbound, pair); } });
  await rig.welcome({ caps });
  rig.audio = audio;
  return rig;
}
/** A preflight up to the answered `call.start`. */
async function dialled(rig) {
  const done = rig.phone.preflight();
  for (let turn = 0; turn < 3; turn++) { await settle(); await rig.ok("device.state"); }
  await settle();
  return [done, rig.said("call.start").at(-1)];
}
async function tested(rig, received, over = { reason: "remoteHangup", by: "gateway" }) {
  const [done, start] = await dialled(rig);
  await rig.ok("call.start", { call: start.call, sdp: "answer" });
  rig.peer.become("connected");
  await settle();
  await rig.tell("call.connected", start.call, { at: 1, codec: "opus" });
  await rig.tell("call.ended", start.call, { ...over, received });
  return [await done, start];
}

test("both ways are said, the score is the worse one's, and nothing is left open or shown", async () => {
  const rig = await ready(), before = rig.left(), shown = [];
  rig.phone.addEventListener("calls", () => shown.push(1));
  const [result, start] = await tested(rig, GOOD);
  assert.deepEqual([start.d.to, start.d.gen], [{ k: "generic", h: "trunkline:echo" }, 1]);
  assert.deepEqual(rig.said("media.ready").map(({ call, d }) => [call, d.gen]), [[start.call, 1]]);
  assert.deepEqual(result.call, {
    isGood: true, score: 4.28, roundTripMs: 41, error: null, sent: { loss: 0, jitterMs: 3, mos: 4.28, isHeard: true },
    received: { loss: 0, jitterMs: 4, mos: 4.29, isHeard: true },
  });
  assert.equal(result.isReady, true);
  await rig.clock.advance(rig.clock.time + 500);
  assert.deepEqual([rig.left(), rig.audio.open, rig.audio.heard.length, shown.length, rig.phone.calls.length], [before, 0, 1, 0, 0]);
  assert.equal(rig.said("call.end").length, 0);
});

test("ten percent of loss, either way, is poor; silence is not good; the phone is not ready then", async () => {
  const lossy = { packetsReceived: 225, packetsLost: 25 };
  for (const [inbound, received, isGood] of [
    [lossy, GOOD, false], [{}, { ...GOOD, loss: 0.1, mos: 2.2 }, false], [{ totalAudioEnergy: 0 }, GOOD, true], [{}, { ...GOOD, audio: false }, false],
    [{ packetsReceived: 0, packetsLost: 0 }, GOOD, false], [{ totalAudioEnergy: undefined }, GOOD, true],
  ]) {
    const rig = await ready({ inbound });
    const [result] = await tested(rig, received);
    assert.equal(result.call.isGood, isGood, JSON.stringify([inbound, received]));
    assert.equal(result.isReady, isGood);
    if (inbound === lossy) assert.ok(result.call.score < 3.1 && result.call.received.loss === 0.1);
  }
});

test("a candidate pair without a round trip has none: null, which is not 0", async () => {
  for (const [pair, roundTripMs] of [[{ currentRoundTripTime: undefined }, null], [{ currentRoundTripTime: null }, null], [{ nominated: false }, null], [{ currentRoundTripTime: 0 }, 0]]) {
    const rig = await ready({ pair });
    const [{ call }] = await tested(rig, GOOD);
    assert.deepEqual([call.roundTripMs, call.isGood, Number.isFinite(call.received.mos)], [roundTripMs, true, true], JSON.stringify(pair));
  }
});

test("a browser that lets no tone sound without a click: loss and delay are judged, sound is not", async () => {
  const rig = await ready({ isRunning: false, inbound: { totalAudioEnergy: 0 } });
  const [{ call }] = await tested(rig, { ...GOOD, audio: false });
  assert.deepEqual([call.isGood, call.sent.isHeard, call.received.isHeard], [true, null, null]);
  const without = await ready({ testAudio: () => null });
  const [other] = await tested(without, GOOD);
  assert.deepEqual([other.call.isGood, other.call.sent.isHeard], [true, null]);
});

test("a gateway without it, a call that goes on, a refusal: no verdict on the way", async () => {
  const old = await ready({}, ["media.active"]);
  const [done] = await dialled(old);
  assert.equal((await done).call, null);
  assert.equal(old.said("call.start").length, 0);
  const busy = await ready();
  await busy.ring();
  const [talking] = await dialled(busy);
  assert.equal((await talking).call, null);
  const many = await ready();
  const [refused] = await dialled(many);
  await many.refuse("call.start", { code: "tooMany", msg: "test calls" });
  const result = await refused;
  assert.deepEqual([result.isReady, result.call.isGood, result.call.error.code, result.call.error.reason], [true, null, "refused", "overload"]);
  assert.deepEqual([many.audio.open, many.said("call.end").length], [0, 0]);
});

test("no media, no end, no peer connection: each in its time, and the gateway is told", async () => {
  const rig = await ready();
  const [failed] = await tested(rig, undefined, { reason: "mediaFailed", by: "gateway" });
  assert.deepEqual([failed.isReady, failed.call.isGood, failed.call.error.code, failed.call.sent], [false, false, "noMedia", null]);
  const silent = await ready();
  const [done, start] = await dialled(silent);
  await silent.ok("call.start", { call: start.call, sdp: "answer" });
  await silent.clock.advance(silent.clock.time + 20_000);
  assert.equal((await done).call.error.code, "noMedia");
  assert.deepEqual(silent.said("call.end").map(({ call }) => call), [start.call]);
  const dead = await ready();
  const [never] = await dialled(dead);
  await dead.clock.advance(dead.clock.time + 20_000);
  assert.equal((await never).call.isGood, null, "call.start without an answer");
  assert.equal(dead.audio.open, 0);
});

test("the scale is the gateway's", () => {
  // of OpinionScore(codec: .opus): no loss, 10 %, all; 400 ms
  for (const [loss, delay, mos] of [[0, 0, 4.29], [0.1, 0, 2.22], [1, 0, 1], [0, 400, 3.31]]) {
    assert.ok(Math.abs(opinion(loss, delay) - mos) < 0.02, `${loss} ${delay}: ${opinion(loss, delay)}`);
  }
});
