// What a call needs, tried before there is one; and the log.
import assert from "node:assert/strict";
import { test } from "node:test";
import { A, Rig, Stream, online, settle } from "./phone.mjs";

const TURN = { urls: ["turn:t"], username: "u", credential: "c" };
const ready = async (options, world, ice = [TURN, { urls: "stun:s" }, { urls: "turns:t:443", username: "u", credential: "c" }]) => new Rig(options, world).welcome({ ice });
/** Answers each round trip after so long. */
async function answered(rig, ms) {
  for (let turn = 0; turn < 3; turn++) {
    await settle();
    await rig.clock.advance(rig.clock.time + ms);
    await rig.ok("device.state");
  }
}

test("gateway, microphone and each TURN server are tried; nothing is left open", async () => {
  const made = [];
  const rig = await ready({}, { made: (peer) => made.push(peer) });
  const before = rig.left();
  const done = rig.phone.preflight(), again = rig.phone.preflight();
  await settle();
  assert.deepEqual(made.map((peer) => [peer.configuration.iceTransportPolicy, peer.configuration.iceServers.length]), [["relay", 1], ["relay", 1]]);
  made[0].onicecandidate({ candidate: { candidate: "candidate:1 1 udp 1 1.2.3.4 5 typ relay raddr 0.0.0.0 rport 0" } });
  made[1].onicecandidate({ candidate: { candidate: "candidate:1 1 udp 1 1.2.3.4 5 typ host" } });
  made[1].onicecandidate({ candidate: null });
  await answered(rig, 40);
  const result = await done;
  assert.equal(await again, result, "one at a time");
  assert.deepEqual([result.isReady, result.network, result.call], [true, { isGood: true, roundTripMs: 40, error: null }, null]);
  assert.deepEqual(result.turn.map(({ urls, isGood }) => [urls, isGood]), [[["turn:t"], true], ["turns:t:443", false]]);
  assert.deepEqual([result.microphone.isGood, result.microphone.error], [true, null]);
  assert.deepEqual(rig.left(), before);
});

test("a gateway that is silent, servers that are silent, a microphone that is refused: each says so in its time", async () => {
  const rig = await ready({ microphone: async () => { throw new DOMException("no", "NotAllowedError"); } });
  rig.world.isDeaf = true;
  const done = rig.phone.preflight();
  await settle();
  await rig.clock.advance(rig.clock.time + 6_000);
  const result = await done;
  assert.deepEqual([result.isReady, result.network.error.code, result.microphone.error.code, result.turn.map(({ isGood }) => isGood)], [false, "unreachable", "microphoneDenied", [false, false]]);
  rig.phone.close();
  assert.deepEqual(rig.left(), { timers: 0, peers: 0, microphones: 0 });
});

test("a person who answers the browser's question after its time leaves no microphone open", async () => {
  let open;
  const stream = new Stream(), rig = await ready({ microphone: () => new Promise((done) => { open = () => done(stream); }) }, {}, []);
  const done = rig.phone.preflight();
  await answered(rig, 10);
  await rig.clock.advance(rig.clock.time + 31_000);
  assert.equal((await done).microphone.isGood, false);
  open();
  await settle();
  assert.equal(stream.getTracks()[0].readyState, "ended");
});

test("without a gateway, without WebRTC, with servers that are none: it answers", async () => {
  const away = new Rig({ fetch: async () => { throw new TypeError("down"); } });
  await settle();
  away.socket.end();
  assert.deepEqual([(await away.phone.preflight()).network.error.reason, (await new Rig({ RTCPeerConnection: null }).phone.preflight()).network.error.code], ["nothing", "unsupported"]);
  class Refuses { constructor() { throw new DOMException("servers", "SyntaxError"); } }
  const rig = await ready({ RTCPeerConnection: Refuses }, {}, [TURN, { urls: null }, { urls: [7] }, {}]);
  const done = rig.phone.preflight();
  await answered(rig, 1);
  assert.deepEqual((await done).turn, [{ urls: ["turn:t"], isGood: false, milliseconds: null }]);
  const refused = await ready({}, {}, []);
  const other = refused.phone.preflight();
  for (let turn = 0; turn < 3; turn++) { await settle(); await refused.refuse("device.state", { code: "auth" }); }
  assert.equal((await other).network.isGood, true, "a refusal is an answer");
});

test("the log has what happened, and no secret", async () => {
  const lines = [];
  const rig = await online({ log: (line) => { lines.push(line); throw new Error("full"); }, token: () => "e30." + btoa('{"sub":"alice","dev":"web"}') + ".SECRET" });
  const call = await rig.talk();
  await rig.say("{");
  rig.socket.end(4002);
  await rig.clock.advance(rig.clock.time + 2_000);
  call.end();
  const events = new Set(lines.map(({ event }) => event));
  for (const event of ["connect", "closed", "sent", "received", "unreadable", "phone", "call", "media connected", "ended"]) assert.ok(events.has(event), event);
  assert.ok(lines.every((line) => Number.isFinite(line.at)));
  assert.ok(lines.some((line) => line.event === "received" && line.t === "call.connected" && line.call === A));
  const text = JSON.stringify(lines);
  for (const secret of ["SECRET", "r1", "v=0", "+15550001"]) assert.ok(!text.includes(secret), secret);
  const hostile = await online({ log: (line) => lines.push(line) });
  await hostile.say({ t: "x".repeat(5_000), call: "y".repeat(5_000), d: { code: { a: 1 }, reason: "z".repeat(5_000) } });
  assert.ok(JSON.stringify(lines.at(-1)).length < 400);
});
