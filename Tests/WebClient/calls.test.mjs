// What an app sees of its calls: states, two calls, transfer, renewal, paths, devices, statistics; and that nothing is left of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync } from "node:fs";
import * as all from "../../Sources/Client/WebClient/trunkline.js";
import { A, B, Clock, OFFER, Rig, Stream, online, settle } from "./phone.mjs";

const { PhoneError } = all;

test("the states of an incoming call, for listeners and for readers", async () => {
  const rig = await online();
  const heard = [];
  rig.phone.addEventListener("incoming", ({ call }) => call.addEventListener("state", () => heard.push(call.state)));
  const reader = (async () => { const all = []; for await (const event of rig.phone.events) { all.push(event.type); if (event.type === "incoming") return all; } })();
  const call = await rig.ring();
  assert.deepEqual(await reader, ["calls", "incoming"]);
  assert.equal(call.state, "ringing");
  const states = (async () => { const all = []; for await (const state of call.states) all.push(state); return all; })();
  await settle();
  call.answer();
  await settle();
  await rig.ok("call.answer", { won: true });
  await rig.tell("call.connected", A, { at: rig.clock.now(), codec: "opus" });
  await settle();
  assert.equal(call.seconds, 0);
  await rig.clock.advance(61_000);
  assert.equal(call.seconds, 61);
  await rig.tell("call.ended", A, { reason: "remoteHangup" });
  assert.deepEqual(await states, ["ringing", "connecting", "connected", "ended"]);
  assert.equal(call.text, "ended");
  assert.ok(heard.includes("connecting") && heard.at(-1) === "ended");
  await rig.clock.advance(64_001);
  assert.equal(rig.phone.calls.length, 0);
});

test("an outgoing call: connecting, calling, connected; early media is heard and not said to be the call's", async () => {
  const rig = await online();
  const call = await rig.dial("+1 555 999 0001");
  assert.deepEqual(rig.said("call.start")[0].d.to, { k: "phone", h: "+15559990001" });
  assert.equal(call.state, "connecting");
  await rig.tell("call.progress", call.id, { stage: "ringing" });
  assert.equal(call.state, "calling");
  assert.equal(call.isPlaying, false);
  await rig.tell("call.progress", call.id, { stage: "early" });
  assert.equal(call.isPlaying, true);
  assert.equal(rig.said("media.active").length, 0);
  await rig.tell("call.connected", call.id, { at: rig.clock.now(), codec: "opus" });
  assert.deepEqual(rig.said("media.active")[0].d, { capture: true, playout: true });
});

test("the app says where the caller is: in call.start, as it is", async () => {
  const rig = await online();
  const location = "<presence xmlns='urn:ietf:params:xml:ns:pidf'/>";
  rig.phone.call("112", { location });
  await settle();
  assert.equal(rig.said("call.start")[0].d.location, location);
  rig.phone.call("+15559990001");
  await settle();
  assert.equal("location" in rig.said("call.start")[1].d, false);
});

test("two calls: the second answer holds the first, hold(false) swaps, the microphone is one call's", async () => {
  const rig = await online();
  const first = await rig.talk(A);
  const second = await rig.ring(B);
  second.answer();
  await settle();
  assert.deepEqual(rig.said("call.hold").map((frame) => [frame.call, frame.d.on]), [[A, true]]);
  await rig.ok("call.hold");
  await rig.ok("call.answer", { won: true });
  await rig.tell("call.connected", B, { at: rig.clock.now() + 1, codec: "opus" });
  assert.deepEqual([first.state, second.state], ["held", "connected"]);
  assert.deepEqual([first.isCapturing, second.isCapturing, first.isPlaying, second.isPlaying], [false, true, false, true]);
  assert.equal(first.localStream.getAudioTracks()[0].enabled, false);
  first.hold(false);
  await settle();
  assert.deepEqual(rig.said("call.hold").map((frame) => [frame.call, frame.d.on]).slice(1), [[B, true], [A, false]]);
  await rig.say({ t: "ok", re: rig.said("call.hold")[1].id });
  await rig.say({ t: "ok", re: rig.said("call.hold")[2].id });
  assert.deepEqual([first.state, second.state], ["connected", "held"]);
  assert.deepEqual([first.isCapturing, second.isCapturing, first.isPlaying, second.isPlaying], [true, false, true, false]);
});

test("a hold that is refused is none, and one that was taken back meanwhile is asked back", async () => {
  const rig = await online();
  const call = await rig.talk();
  call.hold(true);
  call.hold(false);
  await settle();
  assert.equal(rig.said("call.hold").length, 1);
  await rig.ok("call.hold");
  assert.deepEqual(rig.said("call.hold").map((frame) => frame.d.on), [true, false]);
  await rig.ok("call.hold");
  assert.equal(call.isHeld, false);
  call.hold(true);
  await rig.refuse("call.hold", { code: "badState" });
  assert.equal(call.isHeld, false);
  assert.equal(rig.said("call.hold").length, 3);
});

test("what an operator's program does to a call is shown: held, muted, and not any more", async () => {
  const rig = await online();
  const call = await rig.talk();
  await rig.tell("call.held", A, { by: "gateway", on: true });
  assert.deepEqual(rig.said("call.hold").map((frame) => frame.d.on), [true], "said again: the gateway has it already");
  await rig.ok("call.hold");
  assert.equal(call.isHeld, true);
  await rig.tell("call.held", A, { by: "local", on: true });
  await rig.tell("call.held", A, { by: "gateway", on: true });
  assert.equal(rig.said("call.hold").length, 1);
  await rig.tell("call.held", A, { by: "gateway", on: false });
  await rig.ok("call.hold");
  assert.equal(call.isHeld, false);
  await rig.tell("call.muted", A, { on: true });
  assert.deepEqual([call.isMuted, call.isCapturing], [true, false]);
  await rig.clock.advance(300);
  await rig.tell("call.muted", A, { on: false });
  assert.deepEqual([call.isMuted, call.isCapturing], [false, true]);
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.said("call.mute").map((frame) => frame.d.on), [true, false]);
});

test("a call that a program made: who has answered sees it call, and hears early media", async () => {
  const rig = await online();
  const call = await rig.ring();
  await rig.tell("call.progress", A, { stage: "ringing" });
  assert.equal(call.state, "ringing", "never without the user's tap");
  call.answer();
  await settle();
  await rig.ok("call.answer", { won: true });
  await rig.tell("call.progress", A, { stage: "ringing" });
  assert.deepEqual([call.state, call.progress, call.isPlaying], ["calling", "ringing", false]);
  await rig.tell("call.progress", A, { stage: "early" });
  assert.equal(call.isPlaying, true);
  await rig.tell("call.connected", A, { at: rig.clock.now(), codec: "opus" });
  assert.equal(call.state, "connected");
});

test("transfer: blind to a number, attended with the other call; a refusal says why", async () => {
  const rig = await online();
  const [first, second] = [await rig.talk(A), await rig.talk(B)];
  const told = [];
  first.addEventListener("transferred", ({ status }) => told.push(status));
  const blind = first.transfer("+15559990002");
  await settle();
  assert.deepEqual(rig.said("call.transfer")[0].d, { target: { k: "phone", h: "+15559990002" }, mode: "blind" });
  await rig.ok("call.transfer");
  await blind;
  await rig.tell("call.transferred", A, { status: "accepted" });
  assert.deepEqual(told, ["accepted"]);
  const attended = assert.rejects(
    first.transferWith(second), (error) => error instanceof PhoneError && error.code === "refused" && error.reason === "badState" && error.text.length > 10);
  await settle();
  assert.deepEqual(rig.said("call.transfer")[1].d, { withCall: B, mode: "attended" });
  await rig.refuse("call.transfer", { code: "badState" });
  await attended;
});

test("digits: what is none is left out; mute is at once here, and the last of a burst there", async () => {
  const rig = await online();
  const call = await rig.talk();
  const queued = call.sendDigits("1 2-x#");
  await settle();
  assert.equal(rig.said("call.dtmf")[0].d.digits, "12#");
  await rig.ok("call.dtmf");
  await queued;
  for (const isOn of [true, false, true]) call.mute(isOn);
  assert.equal(call.isCapturing, false);
  assert.equal(call.localStream.getAudioTracks()[0].enabled, false);
  await rig.clock.advance(300);
  assert.deepEqual(rig.said("call.mute").map((frame) => frame.d.on), [true]);
});

test("the token is a function: asked at the start, before the old one expires, and after a refusal", async () => {
  let asked = 0;
  const rig = await online({ token: async () => `e30.${btoa(`{"dev":"web","n":${++asked}}`)}.x` });
  assert.equal(asked, 1);
  await rig.say({ t: "auth.expiring", d: { at: 1 } });
  assert.equal(asked, 1);
  await rig.clock.advance(10_000);
  assert.equal(asked, 2);
  assert.equal(rig.said("auth.refresh")[0].d.auth, `e30.${btoa('{"dev":"web","n":2}')}.x`);
  rig.socket.end(4008);
  await rig.clock.advance(20_000);
  rig.socket.open();
  assert.equal(rig.said("hello").at(-1).d.auth, `e30.${btoa('{"dev":"web","n":2}')}.x`);
  rig.socket.end(4001);
  await settle();
  assert.equal(asked, 3);
  assert.equal(rig.phone.state, "connecting");
});

test("the answer to auth.refresh brings TURN credentials for the calls to come", async () => {
  const server = (n) => ({ urls: ["turn:a.example"], username: `${n}:alice`, credential: `c${n}`, ttlMs: 1 });
  let asked = 0;
  const rig = new Rig({ token: async () => `e30.${btoa(`{"dev":"web","n":${++asked}}`)}.x` });
  await rig.welcome({ ice: [server(1)] });
  await rig.clock.advance(10_000);
  await rig.say({ t: "auth.expiring", d: { at: 1 } });
  await rig.ok("auth.refresh", { ice: [server(2)] });
  await rig.ring();
  assert.deepEqual(rig.peer.configuration.iceServers, [{ urls: ["turn:a.example"], username: "2:alice", credential: "c2" }]);
  await rig.clock.advance(20_000);
  await rig.say({ t: "auth.expiring", d: { at: 1 } });
  await rig.ok("auth.refresh", { ice: "none" });
  await rig.ring(B);
  assert.equal(rig.peer.configuration.iceServers[0].credential, "c2");
});

test("a page that comes back hears that its call was muted, or is no longer; what it asked for itself meanwhile counts", async () => {
  const rig = await online();
  const call = await rig.talk();
  const row = (muted) => ({ call: A, dir: "in", state: "connected", from: OFFER.from, to: OFFER.to, acct: "default", gen: 1, at: 1, muted });
  const again = async (muted) => {
    rig.socket.end(4008);
    await rig.clock.advance(rig.clock.time + 1_100);
    await rig.welcome({ calls: [row(muted)] });
  };
  await again(true);
  assert.deepEqual([call.isMuted, call.isCapturing], [true, false]);
  // as after call.muted this page says the same once more
  await rig.clock.advance(rig.clock.time + 400);
  await rig.ok("call.mute");
  await again(undefined);
  assert.equal(call.isMuted, true, "an older gateway says nothing of it");
  await again(false);
  assert.deepEqual([call.isMuted, call.isCapturing], [false, true]);
  await rig.clock.advance(rig.clock.time + 400);
  await rig.ok("call.mute");
  call.mute(true);
  await rig.clock.advance(rig.clock.time + 400);
  const asked = rig.said("call.mute").length;
  await again(false);
  assert.equal(call.isMuted, true, "the gateway has not answered yet");
  assert.equal(rig.said("call.mute").length, asked + 1, "it is asked again");
  await rig.ok("call.mute");
  await again(false);
  assert.equal(call.isMuted, false);
  const loaded = new Rig();
  await loaded.welcome({ calls: [row(true)] });
  assert.deepEqual([loaded.call.isMuted, loaded.call.isCapturing, loaded.said("call.mute").length], [true, false, 0]);
});

test("another path: a new socket beside the old one, resume, and media from a new peer connection; the old one is heard until then", async () => {
  const rig = await online();
  const call = await rig.talk();
  const [socket, peer] = [rig.socket, rig.peer];
  rig.window.dispatchEvent(new Event("online"));
  await settle();
  assert.notEqual(rig.socket, socket);
  assert.equal(socket.readyState, 1, "the old socket serves until the new one does");
  assert.notEqual(rig.peer, peer);
  assert.equal(call.peerConnection, peer);
  assert.equal(peer.isClosed, undefined, "audio goes on over the old pair");
  await rig.welcome({ resumed: true, replayFrom: rig.sent.filter((frame) => frame.seq).at(-1).seq + 1 });
  assert.equal(socket.readyState, 2);
  assert.deepEqual(rig.said("hello").at(-1).d.resume, { sid: "s1", token: "r1", lastSeq: 2 });
  const [restart] = rig.said("media.restart");
  assert.deepEqual([restart.d.gen, restart.d.cause], [2, "net"]);
  await rig.say({ t: "media.answer", re: restart.id, call: A, seq: ++rig.seq, d: { sdp: "answer", gen: 2 } });
  const heard = rig.world.heard;
  rig.peer.become("connected");
  await settle();
  assert.equal(call.peerConnection, rig.peer);
  assert.equal(peer.isClosed, true);
  assert.notEqual(rig.world.heard, heard, "what comes over the new path is played");
  assert.deepEqual(rig.said("media.ready").map((frame) => frame.d.gen), [1, 2]);
  assert.equal(call.state, "connected");
  assert.equal(rig.microphones.length, 1, "the microphone was not opened again");
});

test("media that does not come about is made anew over TURN alone, where there is a server; a new path is open to all again", async () => {
  for (const [ice, policies] of [[[], ["all", "all", "all"]], [[{ urls: "stun:s" }], ["all", "all", "all"]],
    [[{ urls: ["turns:t:443"], username: "1:alice", credential: "c" }], ["all", "relay", "all"]]]) {
    const rig = new Rig();
    await rig.welcome({ ice });
    await rig.tell("call.offer", A, OFFER);
    await rig.ok("call.prepare");
    rig.call.answer();
    await settle();
    await rig.ok("call.answer", { won: true });
    rig.peer.become("failed");
    await settle();
    const restart = rig.said("media.restart").at(-1);
    await rig.say({ t: "media.answer", re: restart.id, call: A, seq: ++rig.seq, d: { sdp: "answer", gen: 2 } });
    rig.peer.become("connected");
    await settle();
    await rig.tell("call.connected", A, { at: rig.clock.now(), codec: "opus" });
    rig.window.dispatchEvent(new Event("online"));
    await settle();
    assert.deepEqual(rig.world.peers.map((peer) => peer.configuration.iceTransportPolicy), policies);
    assert.deepEqual(rig.peer.configuration.iceServers.map((server) => server.credential), ice.map((server) => server.credential));
    rig.phone.stop?.();
  }
});

test("a restart that the gateway refuses leaves what there is", async () => {
  const rig = await online();
  const call = await rig.talk();
  const peer = rig.peer;
  rig.window.dispatchEvent(new Event("online"));
  await rig.welcome({ resumed: true, replayFrom: 6 });
  const next = rig.peer;
  await rig.refuse("media.restart", { code: "staleGen" });
  assert.equal(next.isClosed, true);
  assert.equal(call.peerConnection, peer);
  peer.become("connected", "disconnected");
  await rig.clock.advance(rig.clock.time + 1_500);
  assert.equal(rig.said("media.restart").at(-1).d.gen, 2);
});

test("a page that was loaded again takes its call up: clock, hold and mute stay, the far side is heard before the microphone is there", async () => {
  let open;
  const rig = new Rig({ microphone: () => new Promise((done) => { open = () => done(new Stream()); }) });
  const taken = [];
  rig.phone.addEventListener("taken", ({ call }) => { taken.push(call.phase); call.mute(true); });
  await rig.welcome({ calls: [{ call: A, dir: "in", state: "connected", from: OFFER.from, to: OFFER.to, acct: "default", gen: 3, at: rig.clock.now() - 42_000 }] });
  const { call } = rig;
  assert.deepEqual(taken, ["connected"]);
  assert.deepEqual([call.seconds, call.isMuted, call.isTakenUp, call.peer.n], [42, true, true, "Ann"]);
  assert.equal(rig.said("media.restart")[0].d.gen, 4);
  await rig.say({ t: "media.answer", re: rig.said("media.restart")[0].id, call: A, seq: 1, d: { sdp: "answer", gen: 4 } });
  rig.peer.become("connected");
  await settle();
  assert.deepEqual(rig.said("media.active").map((frame) => frame.d), [{ capture: false, playout: true }]);
  open();
  await settle();
  assert.equal(call.isTakenUp, false);
  assert.deepEqual(rig.said("media.active").at(-1).d, { capture: true, playout: true });
  assert.equal(call.localStream.getAudioTracks()[0].enabled, false, "nobody is unmuted by a reload");
  const inbound = { type: "inbound-rtp", packetsReceived: 50, packetsLost: 0, bytesReceived: 5000, jitter: 0.004, concealedSamples: 0, codecId: "c" };
  rig.world.stats = { i: inbound, c: { id: "c", mimeType: "audio/opus", clockRate: 48000 } };
  await rig.clock.advance(rig.clock.time + 1_000);
  assert.equal(call.codec, "opus", "call.connected came to the page before");
});

test("statistics each second; stats for the gateway each five", async () => {
  const rig = await online();
  const call = await rig.talk();
  let count = 0;
  call.addEventListener("statistics", () => count++);
  const inbound = { type: "inbound-rtp", packetsReceived: 50, packetsLost: 0, bytesReceived: 5000, jitter: 0.004, concealedSamples: 480, codecId: "c",
    jitterBufferDelay: 3, jitterBufferEmittedCount: 60 };
  const pair = { type: "candidate-pair", nominated: true, state: "succeeded", currentRoundTripTime: 0.05, localCandidateId: "l", remoteCandidateId: "r" };
  rig.world.stats = { i: inbound, p: pair, l: { id: "l", candidateType: "host" }, r: { id: "r", candidateType: "srflx" }, c: { id: "c", mimeType: "audio/opus", clockRate: 48000 } };
  await rig.clock.advance(1_000);
  assert.deepEqual(call.statistics, { roundTripMs: 50, jitterMs: 4, bufferMs: 50, loss: 0, packets: 50, packetsLost: 0, bytes: 5000, concealedMs: 10,
    codec: "opus", pair: { local: "host", remote: "srflx" } });
  Object.assign(inbound, { packetsReceived: 90, packetsLost: 10 });
  await rig.clock.advance(2_000);
  assert.equal(call.statistics.loss, 0.2);
  await rig.clock.advance(5_000);
  assert.equal(count, 5);
  assert.deepEqual(rig.said("stats").map((frame) => frame.d), [{ rttMs: 50, jitterMs: 4, loss: 0, bytes: 5000, plc: 10, codec: "opus" }]);
});

test("devices are chosen in a call and kept; a choice that fails changes nothing", async () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  const asked = [];
  const rig = await online({ storage, microphone: async (id) => {
    asked.push(id);
    if (id === "broken") throw new DOMException("busy", "NotReadableError");
    return new Stream();
  } });
  const call = await rig.talk();
  const before = call.localStream;
  await rig.phone.useMicrophone("headset");
  assert.notEqual(call.localStream, before);
  assert.equal(before.getTracks()[0].readyState, "ended");
  assert.equal(rig.peer.getTransceivers()[0].sender.track, call.localStream.getTracks()[0]);
  await assert.rejects(rig.phone.useMicrophone("broken"), (error) => error.code === "microphoneBusy");
  assert.equal(rig.phone.microphone, "headset");
  assert.equal(call.isCapturing, true);
  await rig.phone.useLoudspeaker("speaker");
  assert.equal(rig.world.sink, "speaker");
  rig.world.refusesSink = true;
  await assert.rejects(rig.phone.useLoudspeaker("gone"), (error) => error.code === "loudspeakerAbsent");
  assert.deepEqual([rig.phone.loudspeaker, asked], ["speaker", [null, "headset", "broken"]]);
  const next = await online({ storage });
  assert.deepEqual([next.phone.microphone, next.phone.loudspeaker], ["headset", "speaker"]);
});

test("do not disturb and a push registration are told at login; logOut deletes the device", async () => {
  const rig = await online();
  rig.phone.doNotDisturb = true;
  await settle();
  assert.deepEqual(rig.said("device.put")[0].d, { prefs: { dnd: true } });
  await rig.ok("device.put");
  const out = rig.phone.logOut();
  await settle();
  await rig.ok("device.del");
  await out;
  assert.equal(rig.phone.state, "loggedOut");
  assert.equal(rig.phone.call("+1").error.code, "loggedOut");
});

test("close() leaves nothing, and start() takes the line again", async () => {
  const rig = await online();
  const call = await rig.talk();
  rig.phone.close();
  await settle();
  assert.deepEqual([rig.phone.state, call.endReason, rig.left().timers, rig.left().peers], ["idle", "localEnd", 0, 0]);
  rig.window.dispatchEvent(new Event("online"));
  assert.equal(rig.world.sockets.length, 1, "nothing is listened to");
  rig.phone.start();
  await rig.welcome();
  assert.equal(rig.phone.state, "online");
  rig.window.dispatchEvent(new Event("online"));
  assert.equal(rig.world.sockets.length, 3);
});

test("a hundred calls leave no timer, listener, peer connection or open microphone", async () => {
  const counts = new Map();
  const counted = (target) => {
    for (const [name, step] of [["addEventListener", 1], ["removeEventListener", -1]]) {
      const real = target[name].bind(target);
      target[name] = (...all) => { counts.set(target, (counts.get(target) ?? 0) + step); return real(...all); };
    }
    return target;
  };
  const [window, document] = [counted(new EventTarget()), counted(Object.assign(new EventTarget(), { visibilityState: "visible" }))];
  const rig = await online({ window, document });
  const before = [...counts.values()];
  for (let number = 0; number < 100; number++) {
    const call = number % 2 ? await rig.dial() : await rig.talk(`7f0c2f0e-6a1d-4f0e-8f57-${String(number).padStart(12, "0")}`);
    if (number % 2) await rig.tell("call.connected", call.id, { at: rig.clock.now(), codec: "opus" });
    await rig.clock.advance(rig.clock.time + 2_500);
    if (number % 3) call.end(); else await rig.tell("call.ended", call.id, { reason: "remoteHangup" });
    if (rig.said("call.end").length) await rig.ok("call.end");
    await rig.clock.advance(rig.clock.time + 4_000);
  }
  assert.deepEqual([...counts.values()], before, "calls add no listeners");
  assert.equal(rig.phone.calls.length, 0);
  assert.deepEqual(rig.left(), { timers: 1, peers: 0, microphones: 0 }, "the heartbeat's timer is the session's");
  rig.phone.close();
  assert.deepEqual([...counts.values()], [0, 0]);
  assert.deepEqual(rig.left(), { timers: 0, peers: 0, microphones: 0 });
});

test("what trunkline.d.ts declares is there", async () => {
  const types = readFileSync(new URL("../../Sources/Client/WebClient/trunkline.d.ts", import.meta.url), "utf8");
  const rig = await online();
  const things = { Phone: rig.phone, Call: await rig.talk(), PhoneError: new PhoneError("refused", "gone") };
  let count = 0;
  for (const [name, thing] of Object.entries(things)) {
    const body = new RegExp(`export class ${name} [^{]*{\\n([^]*?)\\n}`).exec(types)[1].replace(/\/\*[^]*?\*\//g, "");
    for (const [, member] of body.matchAll(/^  (?:readonly )?(\w+)[(:<?]/gm)) {
      if (member === "constructor" || member === "private") continue;
      count++;
      assert.ok(member in thing, `${name}.${member}`);
      assert.notEqual(thing[member], undefined, `${name}.${member}`);
    }
  }
  assert.ok(count > 75, `${count}`);
  for (const [, f] of types.matchAll(/^export function (\w+)/gm)) assert.equal(typeof all[f], "function", f);
});

test("nothing global is touched by an import, nor by a Phone that was given all its parts", async () => {
  const touched = [];
  const names = ["WebSocket", "RTCPeerConnection", "navigator", "localStorage", "document", "Audio", "crypto", "fetch", "performance"];
  const real = Object.fromEntries(names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
  for (const name of names) Object.defineProperty(globalThis, name, { configurable: true, get() { touched.push(name); } });
  try {
    await import("../../Sources/Client/WebClient/trunkline.js?again");
    assert.deepEqual(touched, []);
  } finally {
    for (const name of names) if (real[name]) Object.defineProperty(globalThis, name, real[name]); else delete globalThis[name];
  }
});
