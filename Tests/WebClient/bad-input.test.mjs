// What a browser, a user or a gateway may do to a phone: each has a defined state and a sentence for the user.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Phone, PhoneError } from "../../Sources/Client/WebClient/trunkline.js";
import { Track } from "./fakes.mjs";
import { A, B, OFFER, Rig, Stream, online, settle } from "./phone.mjs";

const refusing = (name) => async () => { throw new DOMException("no", name); };
const isSentence = (text) => assert.match(text, /^[A-Z][^]{15,}\.$/, "a sentence for the user");

test("no WebRTC, or no WebSocket: failed at once, and a call says the same", () => {
  for (const name of ["RTCPeerConnection", "WebSocket"]) {
    const { phone } = new Rig({ [name]: null });
    assert.equal(phone.state, "failed");
    assert.equal(phone.error.code, "unsupported");
    isSentence(phone.text);
    const call = phone.call("+15559990001");
    assert.deepEqual([call.state, call.error.code], ["ended", "unsupported"]);
    phone.close();
  }
});

for (const [name, code] of [["NotAllowedError", "microphoneDenied"], ["NotFoundError", "microphoneAbsent"], ["NotReadableError", "microphoneBusy"]]) {
  test(`${code}: an answer takes this device out, others ring on; a number is not called`, async () => {
    const rig = await online({ microphone: refusing(name) });
    const call = await rig.ring();
    call.answer();
    await settle();
    assert.deepEqual(rig.said("call.reject").map((frame) => frame.d), [{ scope: "device", reason: "mediaFailed" }]);
    assert.equal(rig.said("call.answer").length, 0);
    assert.deepEqual([call.state, call.endReason, call.error.code], ["ended", "mediaFailed", code]);
    isSentence(call.error.text);
    assert.equal(rig.phone.microphoneFault.code, code);
    const dialled = rig.phone.call("+15559990001");
    await settle();
    assert.deepEqual([dialled.state, dialled.error.code, rig.said("call.start").length], ["ended", code, 0]);
    rig.phone.close();
    assert.deepEqual(rig.left(), { timers: 0, peers: 0, microphones: 0 });
  });
}

test("a page that is no secure context has no microphone, and says so before the first call", async () => {
  const rig = await online({ microphone: undefined });
  assert.equal(rig.phone.microphoneFault.code, "microphoneInsecure");
  isSentence(rig.phone.microphoneFault.text);
  const call = await rig.ring();
  call.answer();
  await settle();
  assert.deepEqual([call.state, call.error.code], ["ended", "microphoneInsecure"]);
});

test("the user is asked for the microphone while the call ends: nothing stays open", async () => {
  let open;
  const stream = new Stream();
  const rig = await online({ microphone: () => new Promise((done) => { open = () => done(stream); }) });
  const call = await rig.ring();
  call.answer();
  await rig.tell("call.cancel", A, { reason: "callerCancelled" });
  open();
  await settle();
  assert.equal(stream.getTracks()[0].readyState, "ended");
  assert.equal(rig.said("call.answer").length, 0);
  assert.equal(call.text, "missed");
});

test("the permission is revoked in a call: it goes on without, says so there and here, and comes back", async () => {
  const permission = Object.assign(new EventTarget(), { state: "granted" });
  const rig = await online({ permissions: { query: async () => permission } });
  const call = await rig.talk();
  permission.state = "denied";
  rig.microphones[0].getTracks()[0].end();
  await settle();
  assert.deepEqual(rig.said("media.active").at(-1).d, { capture: false, playout: true });
  assert.deepEqual([call.state, call.isCapturing, call.isPlaying, call.microphoneFault.code], ["connected", false, true, "microphoneDenied"]);
  isSentence(call.microphoneFault.text);
  await call.openMicrophone();
  assert.deepEqual(rig.said("media.active").at(-1).d, { capture: true, playout: true });
  assert.equal(call.microphoneFault, null);
});

test("the microphone is unplugged in a call, and another one is taken when it comes", async () => {
  let devices = [{ kind: "audioinput" }], tries = 0;
  const mediaDevices = Object.assign(new EventTarget(), {
    enumerateDevices: async () => devices,
    getUserMedia: async () => { tries++; if (!devices.length) throw new DOMException("none", "NotFoundError"); return new Stream([rigTrack = new Track()]); },
  });
  let rigTrack;
  const rig = await online({ microphone: undefined, mediaDevices });
  const call = await rig.talk();
  devices = [];
  rigTrack.end();
  mediaDevices.dispatchEvent(new Event("devicechange"));
  await settle();
  assert.equal(call.microphoneFault.code, "microphoneAbsent");
  assert.equal(rig.phone.microphoneFault.code, "microphoneAbsent");
  devices = [{ kind: "audioinput" }];
  mediaDevices.dispatchEvent(new Event("devicechange"));
  await settle();
  assert.deepEqual([call.microphoneFault, call.isCapturing, tries], [null, true, 2]);
});

test("autoplay refused is not playing: the gateway keeps the first words until a click", async () => {
  const rig = await online({}, { plays: "NotAllowedError" });
  const call = await rig.talk();
  assert.deepEqual(rig.said("media.active").map((frame) => frame.d), [{ capture: true, playout: false }]);
  assert.deepEqual([call.isPlaying, call.isAudioBlocked], [false, true]);
  isSentence(new PhoneError("autoplayRefused").text);
  rig.world.plays = true;
  await call.play();
  assert.deepEqual(rig.said("media.active").at(-1).d, { capture: true, playout: true });
  assert.deepEqual([call.isPlaying, call.isAudioBlocked], [true, false]);
});

test("a browser with no peer connection left: the call says so, and an incoming one goes to other devices", async () => {
  class None { constructor() { throw new DOMException("too many", "UnknownError"); } }
  const rig = await online({ RTCPeerConnection: None });
  await rig.tell("call.offer", A, OFFER);
  const { call } = rig;
  assert.equal(rig.said("media.fail").length, 1);
  call.answer();
  await settle();
  assert.deepEqual([call.state, call.error.code, rig.said("call.reject")[0].d.scope], ["ended", "noResources", "device"]);
  isSentence(call.error.text);
  const dialled = rig.phone.call("+15559990001");
  await settle();
  assert.deepEqual([dialled.state, dialled.error.code, dialled.endReason], ["ended", "noResources", "mediaFailed"]);
});

test("an offer that the browser cannot read", async () => {
  const rig = await online({}, { refuses: (sdp) => sdp === "offer" });
  await rig.tell("call.offer", A, OFFER);
  assert.equal(rig.said("media.fail")[0].d.stage, "ice");
  rig.call.answer();
  await settle();
  assert.deepEqual([rig.call.endReason, rig.call.text], ["mediaFailed", "no audio could be set up"]);
});

test("a tab that was frozen finds its session when it is thawed", async () => {
  const rig = await online();
  const call = await rig.talk();
  const socket = rig.socket;
  rig.clock.freeze(20_000);
  rig.document.dispatchEvent(new Event("resume"));
  await settle();
  assert.equal(rig.socket, socket, "not yet two heartbeats");
  rig.world.isDeaf = true;
  rig.clock.freeze(60_000);
  rig.document.dispatchEvent(new Event("resume"));
  await rig.clock.advance(rig.clock.time + 1_000);
  assert.notEqual(rig.socket, socket, "a ping has a second");
  assert.deepEqual([rig.phone.state, rig.phone.isReachable, call.state], ["connecting", false, "connected"]);
  await rig.welcome({ resumed: true, replayFrom: 6 });
  assert.deepEqual([rig.phone.state, rig.phone.isReachable], ["online", true]);
});

test("two tabs of one device: the first is logged out elsewhere, the second has its call, and the first may take it back", async () => {
  const [first, second] = [await online(), new Rig()];
  const call = await first.talk();
  await second.welcome({ calls: [{ call: A, dir: "in", state: "connected", from: OFFER.from, gen: 1, at: second.clock.now() }] });
  first.socket.end(4009);
  await settle();
  assert.deepEqual([first.phone.state, first.phone.error.code, call.state], ["failed", "replaced", "ended"]);
  isSentence(first.phone.text);
  assert.deepEqual([second.call.id, second.call.state], [A, "connected"]);
  await first.clock.advance(600_000);
  assert.equal(first.world.sockets.length, 1, "two tabs do not fight");
  first.phone.start();
  await first.welcome();
  assert.equal(first.phone.state, "online");
});

test("revoked: a state, nothing is tried again until the user logs in", async () => {
  const rig = await online();
  rig.socket.end(4003);
  await rig.clock.advance(600_000);
  assert.deepEqual([rig.phone.state, rig.phone.error.code, rig.world.sockets.length], ["failed", "revoked", 1]);
  isSentence(rig.phone.text);
  assert.equal(rig.phone.call("+1").error.code, "revoked");
});

test("the token function fails: failed with a sentence, and asked again by itself", async () => {
  let fails = true;
  const rig = new Rig({ token: async () => { if (fails) throw new Error("backend down"); return "e30.e30.x"; } });
  await settle();
  assert.deepEqual([rig.phone.state, rig.phone.error.code], ["failed", "noToken"]);
  isSentence(rig.phone.text);
  fails = false;
  await rig.clock.advance(10_000);
  assert.equal(rig.phone.state, "connecting");
  assert.equal(rig.phone.error, null);
});

// — the service worker —

const PUSH = { v: 1, t: "call", call: A, wake: "w1", gw: "wss://gateway.example.com/v1/connect", from: OFFER.from, exp: 2_000_000_000 };

/** A registration whose worker says what version it is, or nothing. */
function registration(rig, version, subscribe) {
  const key = new Uint8Array(65).fill(4);
  return {
    updated: 0, update() { this.updated++; return Promise.resolve(); }, getNotifications: async () => [],
    active: { postMessage: (data, [port]) => { if (version !== null) port.postMessage(version === 0 ? { hello: 1 } : { version }); } },
    pushManager: {
      getSubscription: async () => null,
      subscribe: subscribe ?? (async () => ({ options: { applicationServerKey: key.buffer }, toJSON: () => ({ endpoint: "https://push.example/1", keys: { p256dh: "p", auth: "a" } }) })),
    },
  };
}
const KEY = { push: { webpush: btoa(String.fromCharCode(...new Uint8Array(65).fill(4))).replace(/=/g, "") } };

test("Web Push is subscribed with the gateway's key and told; a call's message rings, and its port says that the page lives", async () => {
  const rig = await new Rig().welcome(KEY);
  const worker = new EventTarget();
  await rig.phone.enablePush(registration(rig, 1), worker);
  assert.deepEqual(JSON.parse(rig.said("device.put")[0].d.push.token), { endpoint: "https://push.example/1", keys: { p256dh: "p", auth: "a" } });
  assert.equal(rig.phone.pushFault, null);
  const ports = [{ postMessage: (data) => { rig.answered = data; } }];
  worker.dispatchEvent(Object.assign(new Event("message"), { data: { trunkline: "push", push: PUSH }, ports }));
  await settle();
  assert.deepEqual([rig.call.id, rig.call.state, rig.answered.trunkline], [A, "ringing", "here"]);
  worker.dispatchEvent(Object.assign(new Event("message"), { data: { trunkline: "push", push: { ...PUSH, declines: true } }, ports: [] }));
  await settle();
  assert.deepEqual(rig.said("call.reject")[0].d, { scope: "all", reason: "declined" });
  rig.phone.close();
});

for (const [version, words] of [[null, "says nothing"], [0, "says nothing known"]]) {
  test(`a service worker of an older version, which ${words}: a sentence, an update, and calls go on`, async () => {
    const rig = await new Rig().welcome(KEY);
    const one = registration(rig, version);
    const worker = new EventTarget();
    const enabled = rig.phone.enablePush(one, worker);
    await settle();
    await rig.clock.advance(rig.clock.time + 2_000);
    await enabled;
    assert.deepEqual([rig.phone.pushFault.code, one.updated, rig.phone.state], ["workerOutdated", 1, "online"]);
    isSentence(rig.phone.pushFault.text);
    for (const data of [null, 1, "push", { trunkline: "push" }, { trunkline: "push", push: { wake: 1 } }, { trunkline: "ring", push: PUSH }, { push: PUSH }]) {
      worker.dispatchEvent(Object.assign(new Event("message"), { data, ports: [] }));
    }
    assert.equal(rig.phone.calls.length, 0);
    assert.equal((await rig.ring()).state, "ringing");
    rig.phone.close();
  });
}

test("no Web Push at the gateway, or none that the user wants: a sentence, and the phone goes on", async () => {
  const rig = await online();
  await assert.rejects(rig.phone.enablePush(registration(rig, 1), null), (error) => error.code === "pushUnsupported");
  isSentence(rig.phone.pushFault.text);
  const other = await new Rig().welcome(KEY);
  await assert.rejects(other.phone.enablePush(registration(other, 1, refusing("NotAllowedError")), null), (error) => error.code === "pushDenied");
  isSentence(other.phone.pushFault.text);
  assert.equal(other.phone.state, "online");
});

test("the page's own worker rang while the tab was frozen: the tab takes its line back when it is looked at", async () => {
  const rig = await new Rig().welcome(KEY);
  const worker = new EventTarget();
  await rig.phone.enablePush(registration(rig, 1), worker);
  rig.document.visibilityState = "hidden";
  worker.dispatchEvent(Object.assign(new Event("message"), { data: { trunkline: "push", push: PUSH }, ports: [] }));
  rig.socket.end(4009);
  await settle();
  assert.equal(rig.phone.error.code, "replaced");
  rig.document.visibilityState = "visible";
  rig.document.dispatchEvent(new Event("visibilitychange"));
  await settle();
  assert.deepEqual([rig.phone.state, rig.phone.error], ["connecting", null]);
  rig.phone.close();
});

test("a page that was opened by a push rings before the gateway is reached, and declines by HTTP", async () => {
  const rig = new Rig({ token: undefined, push: { ...PUSH, device: "web" } });
  const heard = [];
  rig.phone.addEventListener("incoming", ({ call }) => heard.push(call.peer.n));
  await settle();
  assert.deepEqual([heard, rig.phone.state, rig.call.state], [["Ann"], "connecting", "ringing"]);
  rig.call.decline();
  assert.equal(rig.posted.url, `https://gateway.example.com/v1/calls/${A}/reject`);
  assert.equal(rig.posted.headers.authorization, "Bearer w1");
  assert.deepEqual(JSON.parse(rig.posted.body), { scope: "all", reason: "declined" });
});

// — storage, frames —

test("storage denied: a choice lasts as long as the page", async () => {
  const storage = { getItem() { throw new DOMException("denied", "SecurityError"); }, setItem() { throw new DOMException("denied", "SecurityError"); }, removeItem() { throw new DOMException("denied", "SecurityError"); } };
  const rig = await online({ storage });
  await rig.phone.useMicrophone("headset");
  assert.equal(rig.phone.microphone, "headset");
  assert.equal((await rig.talk()).state, "connected");
});

for (const raw of ["", "no JSON", "[]", "null", "1", '{"t":1}', '{"d":{}}', '{"t":"call.offer","d":[]}', '{"t":"call.offer","call":"x","seq":"1"}',
  '{"t":"call.offer","call":"x","seq":1,"d":{"from":null,"sdp":"","gen":1}}', '{"t":"call.offer","call":"x","seq":9,"d":{"from":{"h":"1"},"sdp":"","gen":1}}',
  '{"t":"media.restart","call":"x","seq":1}', new Blob(["binary"])]) {
  test(`a frame that is none, ${typeof raw === "string" ? raw || "empty" : "binary"}: 4002 and a fresh hello, the call goes on`, async () => {
    const rig = await online();
    const call = await rig.talk();
    const { socket } = rig;
    socket.onmessage({ data: raw });
    await settle();
    assert.equal(socket.readyState, 2);
    socket.end(4002);
    await settle();
    assert.deepEqual([rig.phone.state, rig.phone.text, call.state], ["connecting", "connecting", "connected"]);
    await rig.clock.advance(300);
    await settle();
    rig.socket.open();
    assert.ok(rig.said("hello").at(-1).d.auth, "not a resume");
  });
}

test("a gateway that does not close is not waited for", async () => {
  const rig = await online();
  await rig.say("nonsense");
  await rig.clock.advance(3_000);
  assert.equal(rig.phone.state, "connecting");
  await rig.clock.advance(3_500);
  assert.equal(rig.world.sockets.length, 2);
});

test("whatever a gateway says, nothing throws and the phone's state is one of its states", async () => {
  let seed = 4711;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const values = [null, 0, -1, 1e9, 1.5, "", "x", true, [], {}, [null], { h: 1 }, "ended", A];
  const frames = [
    { t: "call.offer", call: A, d: OFFER }, { t: "call.update", call: A, d: { from: OFFER.from, caps: { hold: true } } }, { t: "call.connected", call: A, d: { at: 1, codec: "opus" } },
    { t: "call.progress", call: A, d: { stage: "ringing" } }, { t: "call.held", call: A, d: { by: "remote", on: true } }, { t: "call.digit", call: A, d: { digit: "1" } },
    { t: "media.restart", call: A, d: { gen: 2, cause: "net" } }, { t: "call.ended", call: A, d: { reason: "busy" } }, { t: "call.gone", call: A, d: { reason: "busy" } },
    { t: "quality", call: A, d: { level: "poor" } }, { t: "call.transferred", call: A, d: { status: "ok" } }, { t: "auth.expiring", d: { at: 1 } }, { t: "pong" }, { t: "bye", d: { code: 1 } },
    { t: "bye", d: { code: 1012, url: "wss://n2", afterMs: 5 } }, { t: "call.wake", call: B, d: { v: 1, t: "call", call: B, exp: 1, acct: "a", gw: "wss://n2", wake: "w" } },
    { t: "welcome", d: { sid: "s", resumeToken: "r", hb: 15000, time: 1, ice: [], calls: [{ call: A, dir: "in", state: "ringing", from: OFFER.from, sdp: "o", gen: 1 }], push: { webpush: "k" }, node: "n1", url: "wss://n1", spreadMs: 9 } },
  ];
  for (let round = 0; round < 400; round++) {
    const rig = await online();
    if (round % 2) await rig.talk();
    for (let turn = 0; turn < 8; turn++) {
      const frame = structuredClone(frames[random(frames.length)]);
      if (random(4)) frame.seq = ++rig.seq;
      const place = frame.d && random(3) ? frame.d : frame;
      const keys = Object.keys(place);
      if (random(5)) place[keys[random(keys.length)]] = values[random(values.length)];
      try { rig.socket.onmessage?.({ data: JSON.stringify(frame) }); } catch (error) { assert.fail(`${JSON.stringify(frame)}: ${error.stack}`); }
      if (turn % 4 === 3) await settle();
    }
    assert.ok(["idle", "connecting", "online", "failed", "loggedOut"].includes(rig.phone.state));
    for (const call of rig.phone.calls) assert.ok(["ringing", "connecting", "calling", "connected", "held", "ended"].includes(call.state), call.state);
    rig.phone.close();
    await settle();
    assert.deepEqual(rig.left(), { timers: 0, peers: 0, microphones: 0 });
  }
});

test("numbers that are none are not called, and too many calls are refused here", async () => {
  const rig = await online();
  assert.deepEqual([rig.phone.call("  ").error.code, rig.phone.call("  ").endReason], ["emptyNumber", "notFound"]);
  rig.phone.call("+1"); rig.phone.call("+2");
  const third = rig.phone.call("+3");
  assert.deepEqual([third.state, third.error.code], ["ended", "tooManyCalls"]);
  isSentence(third.error.text);
});

test("every error has a sentence", () => {
  for (const code of ["unsupported", "loginRefused", "revoked", "replaced", "noToken", "staleToken", "loggedOut", "emptyNumber", "badParameters", "callerNumber", "emergency", "microphoneDenied",
    "microphoneAbsent", "microphoneBusy", "microphoneInsecure", "loudspeakerAbsent", "microphoneGone", "loudspeakerGone", "tooManyCalls", "autoplayRefused", "noResources", "noMedia",
    "pushUnsupported", "pushDenied", "workerOutdated", "refused"]) isSentence(new PhoneError(code, "detail").text);
});

test("a cached token, however short: the backend is asked at most once in 10 s, and the gateway by none of it", async () => {
  for (const lives of [5, 30, 59, 300]) {
    let asked = 0;
    const told = [];
    const rig = await online({ token: async () => { asked += 1; return `e30.${btoa(JSON.stringify({ dev: "web", exp: lives }))}.x`; } });
    rig.phone.addEventListener("tokenStale", (event) => told.push(event.error.code));
    for (let second = 1; second <= 100; second += 1) {
      await rig.clock.advance(second * 1_000);
      // a gateway of an older version, which announces an end again and again
      await rig.say({ t: "auth.expiring", d: { at: lives * 1_000 } });
    }
    assert.ok(asked <= 11, `asked ${asked} times`);
    assert.equal(rig.said("auth.refresh").length, 0);
    assert.deepEqual([told.length, told[0], rig.phone.state], [asked - 1, "staleToken", "online"]);
  }
});

test("a token endpoint that fails after a refusal is no refused login, and a call tries it again", async () => {
  let asked = 0;
  const rig = await online({ token: async () => { if (asked++) throw new Error("the backend is away"); return "t"; } });
  await rig.clock.advance(20_000);
  rig.socket.end(4001);
  await rig.clock.advance(20_300);
  rig.socket.open();
  await rig.say({ t: "err", re: rig.said("hello").at(-1).id, d: { code: "auth", fatal: true } });
  rig.socket.end(4001);
  await settle();
  assert.deepEqual([rig.phone.state, rig.phone.error.code, asked], ["failed", "noToken", 2]);
  await rig.clock.advance(31_000);
  const before = asked;
  rig.phone.call("+15550001");
  await rig.clock.advance(41_000);
  assert.ok(asked > before, "a call is a reason to ask");
});

test("a gateway that closes right behind each welcome is asked less and less often; one that stood for a while, at once", async () => {
  const rig = await online();
  const before = rig.world.sockets.length;
  for (let step = 0; step < 600; step += 1) {
    await rig.clock.advance(rig.clock.time + 100);
    if (rig.socket.readyState === 0) { await rig.welcome(); rig.socket.end(1006); }
    else if (rig.socket.readyState === 1) rig.socket.end(1006);
  }
  assert.ok(rig.world.sockets.length - before < 22, `${rig.world.sockets.length - before} sockets in a minute`);
});

test("a request that no gateway would take is refused here, and repeated to nobody", async () => {
  const rig = await online();
  const call = rig.phone.call("+15550001", { location: `<${"x".repeat(70_000)}` });
  await settle();
  await rig.clock.advance(rig.clock.time + 20_000);
  assert.deepEqual([rig.said("call.start").length, call.state], [0, "ended"]);
});
