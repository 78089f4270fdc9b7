// In the place of trunkline.js: a telephone that stands in one state, for looking at the page. `phone_states.py` serves it; the state is the
// address's `?state=`. What it offers is what the page asks of `trunkline.d.ts`. What the gateway would say comes by `globalThis.fake`, for
// `phone_acts.py`.
export const claims = () => ({ sub: "alice", dev: "web" });
export const readPush = () => null;

const errors = {
  replaced: "This phone is open in another tab or browser. Use it here, or continue there.",
  unsupported: "This browser cannot make calls. Use a current Chrome, Edge, Firefox or Safari.",
  revoked: "This device was logged out by an operator. Log in again.",
  loginRefused: "The login was refused. Log in again.",
  microphoneDenied: "The microphone is blocked for this page. Allow it in the address bar, then try again.",
  microphoneAbsent: "No microphone was found. Connect one, then try again.",
  microphoneInsecure: "Browsers allow the microphone on secure pages only. Open this page with https.",
  microphoneBusy: "Another program uses the microphone. Close it, then try again.",
  emergency: "Emergency numbers cannot be called here. Use a telephone.",
  pushDenied: "Notifications are blocked for this page. Allow them in the address bar.",
};
const error = (code) => ({ code, text: errors[code] });

class FakeCall extends EventTarget {
  constructor(id, phase, peer, more = {}) {
    super();
    Object.assign(this, {
      id, phase, peer, direction: "incoming", progress: null, hasEarlyMedia: false, seconds: 83, isMuted: false, isHeld: false, isHeldByPeer: false,
      capabilities: { hold: true, dtmf: true, transfer: true }, isTakenUp: false, isAudioBlocked: false, microphoneFault: null, startedAt: Date.now(),
      connectedAt: phase === "connected" ? Date.now() - 83_000 : null, endReason: null, error: null, codec: phase === "connected" ? "opus" : null,
      quality: phase === "connected" ? { level: "good" } : null,
      statistics: phase === "connected" ? { loss: 0.002, jitterMs: 4, bufferMs: 61, roundTripMs: 24 } : null, remoteStream: null, localStream: null,
    }, more);
  }
  get state() {
    if (this.phase === "connected") return this.isReconnecting ? "reconnecting" : this.isHeld ? "held" : "connected";
    return { ringing: "ringing", ended: "ended", progress: "calling" }[this.phase] ?? "connecting";
  }
  set(more) {
    Object.assign(this, more);
    this.dispatchEvent(new Event("state"));
  }
  /** What the person asks for is done at once: the rest is the package's, and tried against a gateway. */
  connect() {
    for (const one of phone().calls) if (one !== this && one.phase === "connected" && !(this.group && one.group === this.group)) one.set({ isHeld: true });
    this.set({ phase: "connected", connectedAt: Date.now() - 83_000, codec: "opus", isHeld: false, quality: { level: "good" } });
  }
  finish(endReason, error = null) {
    if (this.phase === "ended") return;
    const others = phone().calls.filter((one) => one !== this && one.phase !== "ended" && this.group && one.group === this.group);
    this.set({ phase: "ended", endReason, error, group: null });
    if (others.length === 1) others[0].set({ group: null });
    setTimeout(() => fake.drop(this), 3_000);
  }
  sendDigits() { return Promise.resolve(); }
  answer() { if (this.phase === "ringing") this.connect(); }
  decline() { this.finish("localEnd"); }
  end() { this.finish(this.direction === "outgoing" && this.connectedAt === null ? "cancelled" : "localEnd"); }
  mute(isMuted) { this.set({ isMuted }); }
  hold(isHeld) { if (isHeld) this.set({ isHeld }); else this.connect(); }
  async merge(other) { for (const one of [this, other]) one.set({ group: 1, isHeld: false }); }
  async leaveGroup() { for (const one of phone().calls) one.set({ group: null, isHeld: one !== this }); }
  async openMicrophone() { this.set({ microphoneFault: null }); }
  play() {} transfer() { return new Promise(() => {}); } transferWith() { return new Promise(() => {}); }
}

const phone = () => globalThis.trunkline;
/** What the gateway and the browser would say. */
const fake = globalThis.fake = {
  ring(h, more = {}) {
    const call = new FakeCall(`ring-${h}-${Math.random()}`, "ringing", { k: "phone", h, ...(more.n !== undefined && { n: more.n }) }, more);
    fake.add(call);
    phone().dispatchEvent(Object.assign(new Event("incoming"), { call }));
    return call;
  },
  add(call) {
    phone().calls = [...phone().calls, call];
    phone().dispatchEvent(new Event("calls"));
  },
  drop(call) {
    phone().calls = phone().calls.filter((one) => one !== call);
    phone().dispatchEvent(new Event("calls"));
  },
  set(more, type = "state") {
    Object.assign(phone(), more);
    phone().dispatchEvent(new Event(type));
  },
  gone(id, reason) { phone().dispatchEvent(Object.assign(new Event("gone"), { id, reason })); },
  error: (code) => error(code),
};

const ada = { k: "phone", h: "+15557770001", n: "Ada Lovelace" }, number = { k: "phone", h: "+15557770042" };
const long = { k: "phone", h: "+15557770001", n: "Wilhelmina Katharina von Hohenlohe-Schillingsfürst, Reception Desk" };
const click = (...ids) => () => { for (const id of ids) document.getElementById(id).click(); };
const talk = (peer = ada, more) => new FakeCall("one", "connected", peer, more);
const type = (text) => { document.getElementById("number").focus(); document.getElementById("number").value = text; document.getElementById("number").oninput(); };

/** The page is loaded and drawn, twice: what it asks of this stand-in is answered by then. */
const drawn = async () => {
  while (document.readyState !== "complete") await new Promise((done) => setTimeout(done, 5));
  for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
};

/** Opened once its lists are filled, which takes the service worker's answer. */
const settings = (opener) => async () => {
  click(opener)();
  while (!document.getElementById("settings").open) await new Promise((done) => setTimeout(done, 10));
};

/** State → what the phone has in it, and what is clicked then. */
export const STATES = {
  idle: {},
  connecting: { state: "connecting" },
  setup: { mayAskForMicrophone: true, pushKey: "key" },
  dialled: { then: () => type("+15559990001") },
  ringing: { calls: [new FakeCall("one", "ringing", ada)] },
  "ringing-long": { calls: [new FakeCall("one", "ringing", long)] },
  "setting-up": { calls: [new FakeCall("one", "starting", number, { direction: "outgoing" })] },
  calling: { calls: [new FakeCall("one", "progress", number, { direction: "outgoing", progress: "ringing" })] },
  connected: { calls: [talk()] },
  "connected-long": { calls: [talk(long)] },
  keypad: { calls: [talk()], then: () => { click("pad")(); for (const key of [0, 3, 1]) document.querySelectorAll("#keypad button")[key].click(); } },
  muted: { calls: [talk(ada, { isMuted: true })] },
  held: { calls: [talk(ada, { isHeld: true })] },
  "held-by-them": { calls: [talk(ada, { isHeldByPeer: true })] },
  "add-call": { calls: [talk()], then: click("add") },
  transfer: { calls: [talk()], then: () => { click("transfer")(); type("+15559990001"); } },
  transferring: { calls: [talk()], then: () => { click("transfer")(); type("+15559990001"); click("dial")(); } },
  waiting: { calls: [talk(), new FakeCall("two", "ringing", { k: "phone", h: "+15557770042", n: "Grace Hopper" })] },
  "two-ringing": { calls: [new FakeCall("one", "ringing", ada), new FakeCall("two", "ringing", number)] },
  "two-calls": { calls: [talk(ada, { isHeld: true }), new FakeCall("two", "connected", number)] },
  merged: { calls: [talk(ada, { group: 1 }), new FakeCall("two", "connected", number, { group: 1 })] },
  settings: { then: settings("open-settings") },
  "settings-in-call": { calls: [talk()], pushKey: "key", pushFault: error("pushDenied"), doNotDisturb: true, then: settings("audio") },
  "gateway-gone": { isReachable: false, state: "connecting" },
  "gateway-gone-in-call": { isReachable: false, state: "connecting", calls: [talk()] },
  replaced: { state: "failed", error: error("replaced") },
  unsupported: { state: "failed", error: error("unsupported") },
  revoked: { state: "failed", error: error("revoked") },
  "login-refused": { state: "failed", error: error("loginRefused") },
  "microphone-denied": { microphoneFault: error("microphoneDenied") },
  "microphone-absent": { microphoneFault: error("microphoneAbsent") },
  "microphone-insecure": { microphoneFault: error("microphoneInsecure") },
  "microphone-busy": { microphoneFault: error("microphoneBusy") },
  "permission-revoked-in-call": { calls: [talk(ada, { microphoneFault: error("microphoneDenied") })] },
  "autoplay-refused": { calls: [talk(ada, { isAudioBlocked: true })] },
  found: { then: async () => { type("ada"); while (document.getElementById("found").hidden) await new Promise((done) => setTimeout(done, 10)); } },
  refused: { then: () => { type("030 123456 / 030 654321"); click("dial")(); } },
  extension: { then: () => type("1-800-FLOWERS ext. 12") },
  numbers: { numbers: ["+15551230001", "+4930123456", "+33123456789"] },
  history: { rows: 60, keepsHistory: true },
  many: { rows: 10_000, keepsHistory: true },
  missed: { rows: 60, keepsHistory: true, then: click("show-missed") },
  "odd-names": { rows: 8, odd: true, keepsHistory: true },
  emergency: { calls: [new FakeCall("one", "ended", { k: "phone", h: "112" }, { direction: "outgoing", error: error("emergency"), endReason: "forbidden" })] },
};

function pastCalls() {
  const at = new Date().setHours(9, 41), row = (n, more) => ({ id: `h${n}`, direction: "incoming", name: null, number: "+15557770042", at: at - n * 4e6, connectedMs: null, ...more });
  return [
    row(1, { name: "Ada Lovelace", connectedMs: 252_000, reason: "remoteHangup" }), row(2, { reason: "callerCancelled" }),
    row(3, { direction: "outgoing", number: "+15559990001", reason: "busy" }), row(30, { name: "Grace Hopper", connectedMs: 3_725_000, reason: "localEnd" }),
  ];
}

const ODD = ["W".repeat(500), "<img src=x onerror=alert(1)>", "e" + "\u0301".repeat(300), "דנה לוי (מזכירות)", "a\u202Egpj.exe", "\u0000\u0007", "مرحبا 123", " "];
function rows(phone) {
  return Array.from({ length: phone.rows ?? 0 }, (_, n) => ({
    id: 100_000 - n, call: `r${n}`, direction: n % 3 ? "incoming" : "outgoing", peer: { k: "phone", h: `+1555777${String(n).padStart(4, "0")}`, n: phone.odd ? ODD[n % ODD.length] : n % 4 ? undefined : "Ada Lovelace" },
    startedAt: Date.now() - n * 4e6, connectedAt: n % 2 ? null : Date.now() - n * 4e6, endedAt: Date.now() - n * 4e6 + 65_000, outcome: n % 2 ? (n % 3 ? "missed" : "busy") : "answered",
    reason: n % 2 ? "callerCancelled" : "remoteHangup", device: null, account: null,
  }));
}

export class Phone extends EventTarget {
  constructor() {
    super();
    Object.assign(this, { keepsHistory: false, keepsDirectory: true, numbers: ["+15551230001"] });
    queueMicrotask(() => this.dispatchEvent(new Event("state")));
    const wanted = STATES[new URLSearchParams(location.search).get("state")] ?? {};
    Object.assign(this, {
      state: "online", error: null, isReachable: true, user: "alice", device: "web", calls: [], doNotDisturb: false, pushKey: null, pushFault: null,
      microphoneFault: null, microphoneFallback: null, loudspeakerFallback: null, mayAskForMicrophone: false, microphone: null, loudspeaker: null,
    }, wanted);
    localStorage.setItem("trunkline.history.alice", JSON.stringify(pastCalls()));
    globalThis.shown = drawn().then(() => wanted.then?.()).then(drawn);
  }
  close() {} start() {}
  /** What the page has asked for, for tests. */
  questions = [];
  call(to, options) {
    const h = typeof to === "string" ? to : to.h;
    this.questions.push(["call", to, options]);
    const call = new FakeCall(`out-${h}-${Math.random()}`, "starting", { k: "phone", h }, { direction: "outgoing" });
    for (const one of this.calls) if (one.phase === "connected") one.set({ isHeld: true });
    fake.add(call);
    return call;
  }
  async history({ before = Infinity } = {}) {
    this.questions.push(["history", before]);
    const calls = [...(this.more ?? []), ...rows(this)].filter(({ id }) => id < before).slice(0, 50);
    return { calls, next: calls.length === 50 ? calls.at(-1).id : null };
  }
  /** So many came while nobody looked. */
  missed(count) {
    this.more = Array.from({ length: count }, (_, n) => ({ ...rows({ rows: 1 })[0], id: 200_000 + n, call: `m${n}`, direction: "incoming", outcome: "missed", reason: "callerCancelled", connectedAt: null })).reverse();
    this.dispatchEvent(Object.assign(new Event("history"), { isErased: false }));
  }
  async names() { return []; }
  async findNames(text) { this.questions.push(["findNames", text]); return ["Ada Lovelace", "Ada Byron", "Adaeze Okafor-Hohenlohe-Schillingsfürst of the Reception Desk"].map((n, i) => ({ k: "phone", h: `+155577700${i}1`, n })); }
  async ownNumbers() { return this.numbers; }
  async microphones() { return ["Built-in microphone", "USB headset with a rather long product name (0d8c:0014)"].map((label, i) => ({ deviceId: `m${i}`, label, kind: "audioinput" })); }
  async loudspeakers() { return [{ deviceId: "l0", label: "Built-in loudspeaker", kind: "audiooutput" }]; }
  async askForMicrophone() {
    this.asked = (this.asked ?? 0) + 1;
    return null;
  }
  openMicrophone() { return navigator.mediaDevices.getUserMedia({ audio: true }); }
  async useMicrophone(id) { this.microphone = id; }
  async useLoudspeaker(id) { this.loudspeaker = id; }
}
