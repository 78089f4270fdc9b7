// A network that dies without a word, and all that only looks like it: loss, mute, hold, pauses, tabs that stand still.
import assert from "node:assert/strict";
import { test } from "node:test";
import { A, B, online, settle } from "./phone.mjs";

/** What comes from a gateway, on the virtual clock: RTP at a rate, RTCP each 0.5 to 1.5 s, the browser's STUN checks, and pongs over a TCP that repeats what is lost. */
class Line {
  isUp = true;
  rate = 50;
  loss = 0;
  counts = { packets: 0, reports: 0, checks: 0 };
  constructor(rig, seed = 1) {
    Object.assign(this, { rig, seed, at: rig.clock.time, packetAt: rig.clock.time, reportAt: rig.clock.time, checkAt: rig.clock.time });
    Object.defineProperty(rig.world, "stats", { configurable: true, get: () => this.stats });
    rig.world.isDeaf = true;
    const { sent } = rig.world;
    rig.world.sent = (socket, text) => {
      sent(socket, text);
      if (JSON.parse(text).t === "ping") this.#pong(socket);
    };
  }
  random() { return (this.seed = (this.seed * 48271) % 2147483647) / 2147483647; }
  get isLost() { return this.random() < this.loss; }

  #pong(socket) {
    let wait = 50, again = 300;
    while (this.isLost || this.isLost) { wait += again; again *= 2; }
    this.rig.clock.setTimeout(() => { if (this.isUp && socket.readyState === 1) socket.say({ t: "pong" }); }, wait);
  }
  #due(name, count, interval) {
    for (; this[name] <= this.rig.clock.time; this[name] += interval()) if (this.isUp && !this.isLost) this.counts[count]++;
  }
  get stats() {
    if (this.rate) this.#due("packetAt", "packets", () => 1000 / this.rate); else this.packetAt = this.rig.clock.time;
    this.#due("reportAt", "reports", () => 500 + 1000 * this.random());
    this.#due("checkAt", "checks", () => 2_500);
    const { packets, reports, checks } = this.counts;
    return {
      i: { type: "inbound-rtp", packetsReceived: packets, packetsLost: 0, bytesReceived: 100 * packets, jitter: 0.004 },
      p: { type: "candidate-pair", nominated: true, state: "succeeded", packetsReceived: packets + reports, bytesReceived: 100 * (packets + reports), responsesReceived: checks },
      o: { type: "remote-outbound-rtp", reportsSent: reports },
    };
  }
}

async function talking(seed) {
  const rig = await online();
  const call = await rig.talk();
  const line = new Line(rig, seed), states = [];
  call.addEventListener("state", () => { if (states.at(-1) !== call.state) states.push(call.state); });
  await rig.clock.advance(5_000);
  return { rig, call, line, states };
}
const after = (rig, ms) => rig.clock.advance(rig.clock.time + ms);
const pings = (rig) => rig.said("ping").length;
/** The gateway takes the restart up, and its path comes about. */
async function restarted(rig) {
  const { id, d } = rig.said("media.restart").at(-1);
  await rig.say({ t: "media.answer", re: id, call: A, seq: ++rig.seq, d: { sdp: "answer", gen: d.gen } });
  rig.peer.become("connected");
  await settle();
}
const resumed = (rig) => rig.welcome({ resumed: true, replayFrom: 1 + rig.sent.filter((frame) => frame.seq).at(-1).seq });

test("nothing from the gateway: asked after 1.5 s, a second socket a second later, media anew on it; the call says that it reconnects", async () => {
  const { rig, call, line, states } = await talking();
  const [socket, peer, asked] = [rig.socket, rig.peer, pings(rig)];
  line.isUp = false;
  await after(rig, 1_400);
  assert.equal(pings(rig), asked, "not yet");
  await after(rig, 600);
  assert.equal(pings(rig), asked + 1);
  assert.deepEqual([call.state, rig.socket], ["connected", socket]);
  await after(rig, 1_000);
  assert.notEqual(rig.socket, socket);
  assert.equal(socket.readyState, 1, "the first serves until the second does");
  assert.deepEqual([call.state, rig.phone.isReachable, rig.said("media.restart").length], ["reconnecting", false, 0]);
  line.isUp = true;
  line.rate = 0;
  line.reportAt = line.checkAt = Infinity;
  await resumed(rig);
  assert.deepEqual(rig.said("media.restart").map((frame) => frame.d.cause), ["net"]);
  assert.equal(peer.isClosed, undefined, "the old path is heard until the new one is there");
  await restarted(rig);
  assert.equal(call.state, "connected");
  assert.deepEqual([states, call.peerConnection], [["reconnecting", "connected"], rig.peer]);
});

test("the path alone is dead, and the socket answers: said within 3 s, with its loss; media is made anew when it has had its time", async () => {
  const { rig, call, line, states } = await talking();
  line.rate = 0;
  line.reportAt = line.checkAt = Infinity;
  await after(rig, 3_000);
  assert.deepEqual([call.state, rig.phone.isReachable, rig.said("media.restart").length, rig.world.sockets.length], ["reconnecting", true, 0, 1]);
  await after(rig, 1_000);
  assert.equal(call.statistics.loss, 1);
  await after(rig, 3_000);
  assert.equal(rig.said("media.restart").length, 1);
  await restarted(rig);
  line.reportAt = line.checkAt = line.packetAt = rig.clock.time;
  line.rate = 50;
  await after(rig, 2_000);
  assert.deepEqual([call.state, call.statistics.loss, states], ["connected", 0, ["reconnecting", "connected"]]);
});

test("the browser says that it is offline: said after a second of nothing, on hold too; what comes all the same takes it back", async () => {
  for (const isHeld of [false, true]) {
    const { rig, call, line } = await talking();
    if (isHeld) {
      call.hold(true);
      await rig.ok("call.hold");
      line.rate = 0;
      await after(rig, 3_000);
    }
    line.isUp = false;
    rig.window.dispatchEvent(new Event("offline"));
    await after(rig, 2_000);
    assert.equal(call.state, "reconnecting", `held: ${isHeld}`);
    line.isUp = true;
    await after(rig, 3_000);
    assert.equal(call.state, isHeld ? "held" : "connected");
    // a browser that is wrong about it
    rig.window.dispatchEvent(new Event("offline"));
    await after(rig, 2_000);
    assert.equal(call.state, isHeld ? "held" : "connected");
  }
});

test("a pause of two seconds costs a ping; one that ends while the second socket opens costs no restart", async () => {
  const { rig, call, line } = await talking();
  const asked = pings(rig);
  line.isUp = false;
  await after(rig, 2_000);
  line.isUp = true;
  await after(rig, 2_000);
  assert.deepEqual([rig.world.sockets.length, pings(rig) - asked, call.state], [1, 1, "connected"]);
  line.isUp = false;
  await after(rig, 3_000);
  assert.deepEqual([rig.world.sockets.length, call.state], [2, "reconnecting"]);
  line.isUp = true;
  await after(rig, 600);
  assert.equal(call.state, "connected");
  await resumed(rig);
  await after(rig, 10_000);
  assert.equal(rig.said("media.restart").length, 0);
});

test("an hour with a fifth of all lost: talk, mute, pauses of DTX, hold by either side; nothing is made anew", async () => {
  let most = 0;
  for (const seed of [7, 11, 13]) {
    const { rig, call, line, states } = await talking(seed);
    line.loss = 0.2;
    for (let turn = 0; turn < 5; turn++) {
      await after(rig, 140_000);
      call.mute(true);
      await after(rig, 140_000);
      call.mute(false);
      line.rate = 2.5;
      await after(rig, 140_000);
      // the other side's hold: from one packet to the next nothing but reports
      line.rate = 50;
      await after(rig, 20_000);
      line.rate = 0;
      await after(rig, 140_000);
      line.rate = 50;
      await after(rig, 20_000);
      call.hold(true);
      await rig.ok("call.hold");
      line.rate = 0;
      await after(rig, 100_000);
      call.hold(false);
      await rig.ok("call.hold");
      line.rate = 50;
    }
    assert.ok(rig.clock.time > 3_500_000);
    assert.equal(rig.world.sockets.length, 1, `seed ${seed}: no second socket`);
    assert.equal(rig.said("media.restart").length, 0, `seed ${seed}`);
    // where a stream stops and the first reports behind it are all lost, 2.5 s of nothing are shown as what they are
    assert.ok(states.filter((state) => state === "reconnecting").length <= 1, `seed ${seed}: ${states}`);
    most = Math.max(most, pings(rig));
  }
  assert.ok(most < 800, `${most} pings in an hour`);
});

test("the path of media alone is dead while the socket answers: anew after 6 s, then after 12, then each 15", async () => {
  const { rig, call, line } = await talking();
  const began = rig.clock.time, at = [];
  line.isUp = false;
  // pongs come, media does not
  rig.world.isDeaf = false;
  for (let second = 0; second < 70; second++) {
    const count = rig.said("media.restart").length;
    await after(rig, 1_000);
    if (rig.said("media.restart").length > count) {
      at.push(Math.round((rig.clock.time - began) / 1000));
      const { id, d } = rig.said("media.restart").at(-1);
      assert.equal(d.cause, "timeout");
      await rig.say({ t: "media.answer", re: id, call: A, seq: ++rig.seq, d: { sdp: "answer", gen: d.gen } });
    }
  }
  assert.deepEqual([at[0] <= 7, rig.world.sockets.length, call.state], [true, 1, "reconnecting"]);
  const waits = at.slice(1).map((one, index) => one - at[index]);
  assert.ok(waits[0] >= 6 && waits[0] <= 7 && waits[1] >= 12 && waits[1] <= 13 && waits.slice(2).every((wait) => wait >= 15 && wait <= 16) && waits.length >= 4, `${waits}`);
});

test("a network that stays dead: sockets are tried less and less often, each is given up, and nothing is said twice when it is back", async () => {
  const { rig, call, line } = await talking();
  line.isUp = false;
  await after(rig, 120_000);
  const { length } = rig.world.sockets;
  assert.ok(length >= 7 && length <= 14, `${length} sockets in two minutes`);
  assert.equal(rig.world.sockets.filter((socket) => socket.readyState < 2).length <= 2, true, "the first, and the one that is tried");
  assert.deepEqual([call.state, rig.said("media.restart").length], ["reconnecting", 0], "candidates of a dead network are of no use");
  line.isUp = true;
  await resumed(rig);
  assert.equal(rig.said("media.restart").length <= 1, true);
});

test("sockets that open into a network that swallows everything: a second one at most each 6, 12, 24 and 30 s", async () => {
  const { rig, line } = await talking();
  line.isUp = false;
  const at = [];
  for (let second = 0; second < 120; second++) {
    const { length } = rig.world.sockets;
    await after(rig, 1_000);
    if (rig.world.sockets.length === length) continue;
    at.push(rig.clock.time);
    await resumed(rig);
  }
  const waits = at.slice(1).map((one, index) => Math.round((one - at[index]) / 1000));
  assert.ok(waits.every((wait) => wait >= 6) && at.length <= 12, `${waits}`);
  const restarts = new Set(rig.said("media.restart").map((frame) => frame.id)).size;
  assert.ok(restarts >= 1 && restarts <= 12, `${restarts}`);
});

test("without a call nothing is asked but each heartbeat, and nothing is counted", async () => {
  const rig = await online();
  let counted = 0;
  Object.defineProperty(rig.world, "stats", { get() { counted++; return {}; } });
  await after(rig, 600_000);
  assert.deepEqual([pings(rig), counted, rig.world.sockets.length], [41, 0, 1]);
});

test("a gateway that falls silent between two pings is left twice the heartbeat after its last frame, not at the ping after that", async () => {
  const rig = await online();
  rig.world.isDeaf = true; // who would answer each ping at once
  await after(rig, 8_000);
  rig.socket.say({ t: "pong" });
  const { socket } = rig;
  await after(rig, 29_999);
  assert.deepEqual([rig.socket === socket, rig.phone.state, pings(rig)], [true, "online", 3]);
  await after(rig, 1);
  assert.notEqual(rig.phone.state, "online");
});

test("the browser says disconnected: the gateway is asked at once, media made anew after 1.5 s, and not again within 6 s", async () => {
  const rig = await online();
  const call = await rig.talk();
  const asked = pings(rig), { peer } = rig;
  peer.become("connected", "disconnected");
  assert.equal(pings(rig), asked + 1);
  await after(rig, 1_499);
  assert.equal(call.state, "connected");
  await after(rig, 1);
  assert.deepEqual([call.state, rig.said("media.restart").length], ["reconnecting", 1]);
  await rig.refuse("media.restart", { code: "badState" });
  for (let turn = 0; turn < 3; turn++) {
    peer.become("connected", "checking");
    peer.become("connected", "disconnected");
    await after(rig, 1_600);
  }
  assert.equal(rig.said("media.restart").length, 1, "within its floor");
  await after(rig, 1_600);
  assert.equal(rig.said("media.restart").length, 2, "then by itself");
  peer.become("connected", "connected");
  assert.equal(call.state, "connected");
});

test("a tab whose timers stand still for minutes is not cut: it asks, and hears before it judges", async () => {
  const rig = await online();
  rig.world.isDeaf = true;
  const [socket] = rig.world.sockets;
  for (let turn = 0; turn < 5; turn++) {
    rig.clock.freeze(60_000);
    await after(rig, 0);
    assert.equal(rig.socket, socket, "no ping of ours was waited for");
    // the answer waits in the queue behind the timer
    await rig.say({ t: "pong" });
  }
  assert.equal(rig.phone.state, "online");
  rig.clock.freeze(60_000);
  await after(rig, 0);
  rig.clock.freeze(60_000);
  await after(rig, 999);
  assert.equal(rig.phone.state, "online", "what waits is heard first");
  await after(rig, 1);
  assert.equal(rig.phone.state, "connecting", "a gateway that is gone is noticed all the same");
});

test("a page that is left ends its session, as no call can ring there; the page that comes back opens another", async () => {
  for (const rings of [false, true]) {
    const rig = await online(), closed = [];
    rig.world.closed = (socket, code) => closed.push(code);
    if (rings) await rig.ring();
    rig.window.dispatchEvent(new Event("pagehide"));
    assert.deepEqual([closed, rig.phone.state], [[1000], "idle"]);
    rig.clock.freeze(80_000);
    rig.window.dispatchEvent(new Event("pageshow"));
    await rig.welcome();
    assert.deepEqual([rig.world.sockets.length, rig.phone.state, rig.said("hello").at(-1).d.resume], [2, "online", undefined]);
    assert.equal(rig.phone.calls.filter((call) => !call.isOver).length, 0, "the snapshot does not have the call");
  }
});

test("a page that is left in a call keeps its session for the page that takes its place", async () => {
  for (const begin of ["talk", "dial"]) {
    const rig = await online(), closed = [];
    await rig[begin]();
    rig.world.closed = (socket, code) => closed.push(code);
    rig.window.dispatchEvent(new Event("pagehide"));
    rig.window.dispatchEvent(new Event("pageshow"));
    await settle();
    assert.deepEqual([closed, rig.phone.state, rig.world.sockets.length], [[], "online", 1]);
  }
});

test("a page that was turned away is not connected by coming back", async () => {
  const rig = await online();
  rig.socket.end(4009);
  await settle();
  for (const type of ["pagehide", "pageshow"]) rig.window.dispatchEvent(new Event(type));
  await settle();
  assert.deepEqual([rig.phone.state, rig.phone.error.code, rig.world.sockets.length], ["failed", "replaced", 1]);
});

test("a tab that is thawed asks: an answer keeps its socket, none opens another one after a second", async () => {
  const rig = await online();
  const [socket] = rig.world.sockets;
  rig.clock.freeze(80_000);
  rig.document.dispatchEvent(new Event("resume"));
  await after(rig, 1_500);
  assert.deepEqual([rig.socket === socket, rig.phone.state], [true, "online"]);
  rig.world.isDeaf = true;
  rig.clock.freeze(80_000);
  for (const type of ["resume", "visibilitychange"]) rig.document.dispatchEvent(new Event(type));
  await after(rig, 900);
  assert.equal(rig.socket, socket);
  await after(rig, 200);
  assert.deepEqual([rig.world.sockets.length, rig.phone.state], [2, "connecting"]);
});

test("a call in a tab that stood still is not judged by the time that nobody counted", async () => {
  const { rig, call } = await talking();
  for (let turn = 0; turn < 3; turn++) {
    rig.clock.freeze(20_000);
    await after(rig, 0);
    await after(rig, 3_000);
  }
  assert.deepEqual([rig.world.sockets.length, rig.said("media.restart").length, call.state], [1, 0, "connected"]);
});

for (const [name, stats] of [
  ["none", () => ({})], ["no counters", () => ({ t: { type: "transport", srtpCipher: "x" } })], ["counters that are none", () => ({ i: { type: "inbound-rtp", packetsReceived: NaN }, t: { type: "transport", bytesReceived: "1" } })],
  ["a browser that refuses", () => { throw new Error("no stats"); }], ["counters that go back", (n) => ({ t: { type: "transport", bytesReceived: 1000 - n } })],
]) {
  test(`statistics that say nothing (${name}): a call is not judged by them`, async () => {
    const rig = await online();
    const call = await rig.talk();
    let n = 0;
    Object.defineProperty(rig.world, "stats", { get: () => stats(++n) });
    await after(rig, 60_000);
    assert.deepEqual([rig.world.sockets.length, rig.said("media.restart").length, call.state], [1, 0, "connected"]);
  });
}

test("two calls in a dead network have one second socket; both are made anew", async () => {
  const { rig, line } = await talking();
  const second = await rig.talk(B);
  if (rig.said("call.hold").length) await rig.ok("call.hold");
  await after(rig, 5_000);
  line.isUp = false;
  await after(rig, 4_500);
  assert.equal(rig.world.sockets.length, 2);
  line.isUp = true;
  line.rate = 0;
  line.reportAt = line.checkAt = Infinity;
  await resumed(rig);
  await settle();
  assert.deepEqual(rig.said("media.restart").map((frame) => frame.call).sort(), [A, B]);
  assert.equal(second.state, "reconnecting");
});
