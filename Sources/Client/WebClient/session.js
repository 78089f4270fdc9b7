// One device's session with the gateway: numbering, acks, replay, resume, heartbeat and reconnect of `trunkline.v1`.
//
// | phase      | opened           | closed             | frame                          | timers              |
// |------------|------------------|--------------------|--------------------------------|---------------------|
// | offline    | -                | -                  | -                              | connect             |
// | connecting | hello → greeting | back off → offline | -                              | elsewhere after 3 s, again after 60 s, in a call 4 s |
// | greeting   | -                | back off → offline | welcome → online, others drop  | give up after 10 s  |
// | online     | -                | back off → offline | handled                        | ping, ack           |
//
// "back off" is to go where the gateway pointed (bye, err), to spread, or to wait longer each time (docs/reference/protocol.md, Many nodes).
// | ended      | -                | -                  | -                              | -                   |

import { Timers } from "./events.js";

const LIMIT = 256, FRAME = 65536;
/** Tries and time at the node's own address, words that point elsewhere without a welcome, the longest wait they ask for. */
const TRIES = 2, TRY_TIME = 3_000, POINTERS = 4, SPREAD = 60_000;
/** A session that was online for so long is stable: after it the waits between attempts begin at the shortest again. With a call they double so often at most. */
const STABLE = 10_000, IN_CALL = 2;
/** The gateway would close on it (1009), and on each repeat after a resume. */
const isTooBig = (message) => {
  const text = JSON.stringify(message);
  return text.length > FRAME / 3 - 100 && new TextEncoder().encode(text).length > FRAME - 100;
};
const isBreak = (code) => [1001, 1005, 1006, 1012, 1013].includes(code);
export const isAddress = (text) => typeof text === "string" && text.length <= 2048 && /^wss?:\/\/[^/]/.test(text);
const WELCOME = 10_000, ACK = 100, CLOSING = 3_000, FIRST = 200, LONGEST = 5_000, HEARTBEAT = 600_000;
/** A socket that does not open is given up: a browser waits minutes. With a connected call it has less, the next one twice as long, and again. */
const OPENING = 60_000, OPENING_IN_CALL = 4_000;
/** A ping has so long to be answered where nothing else was heard; a socket that nothing answers on has another one beside it, once in so long, then in twice that. */
export const ANSWER = 1_000;
const SECOND_SOCKET = 6_000, SECOND_LONGEST = 30_000;
/** A timer that is so late ran in a tab that was throttled or frozen: frames that wait for it are heard before it judges. */
const LATE = 1_000;
/** A page may not close with 1001. */
const GOING_AWAY = 4000, GAP = 4002;
const UNNUMBERED = /^(hello|auth\.|device\.|dir\.|hist\.|user\.|ping|pong|ack|stats)/;
/** What goes again after `resumed: false`, beside requests. */
const AGAIN = /^(call\.ringing|call\.unavailable|media\.(ready|fail|active))$/;
/** What a message cannot do without, and of what type. */
const SHAPES = {
  welcome: { sid: "string", resumeToken: "string", hb: "number" },
  "call.offer": { from: "object", sdp: "string", gen: "number" },
  "call.wake": { gw: "string", wake: "string" }, "call.held": { on: "boolean" }, "call.muted": { on: "boolean" }, "media.restart": { gen: "number" }, "media.answer": { sdp: "string", gen: "number" },
};

/** The frame in this text; null if it is none. */
function decoded(text) {
  let frame;
  try { frame = JSON.parse(text); } catch { return null; }
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(frame) || typeof frame.t !== "string" || !(frame.d === undefined || isObject(frame.d))) return null;
  for (const key of ["seq", "ack"]) if (frame[key] !== undefined && !Number.isSafeInteger(frame[key])) return null;
  frame.d ??= {};
  for (const [key, type] of Object.entries(SHAPES[frame.t] ?? {})) {
    if (typeof frame.d[key] !== type || frame.d[key] === null) return null;
  }
  if (frame.t === "welcome") {
    frame.d.calls ??= [];
    const isRow = (row) => isObject(row) && typeof row.call === "string";
    if (!Array.isArray(frame.d.calls) || !frame.d.calls.every(isRow)) return null;
  }
  return frame;
}

export class Session {
  #phase = "offline";
  #resume = null;
  #attempt = 0;
  #sent = 0;
  #seen = 0;
  #outbox = [];
  /** Requests without an answer: id → { message, done }. */
  #open = new Map();
  #heard = 0;
  /** Since when a ping of ours has no answer, nor anything else was heard; null: none waits. */
  #asked = null;
  #secondTries = 0;
  #secondDue = 0;
  #openings = 0;
  #tried = null;
  #timers;
  #socket = null;
  #old = null;
  /** Where a word of the gateway points: {url, wait, mayHurry}. */
  #pointer = null;
  #pointers = 0;
  /** A fresh hello went out at once where a resume was refused; the next one waits. */
  #hasBegunAgain = false;
  #tries = 0;
  #triesUntil = null;
  #isSpread = false;
  #hello = null;
  /** The node, its own address, and the time over which those without a call come back. */
  node = null;
  home = null;
  #spread = 0;

  /** `hello()` is the proof, device and state; `on` has online, offline, failed: a socket did not open, refused, message, and settled: a frame was taken. */
  constructor({ url, hello, seams, on, hasCall, isTalking }) {
    Object.assign(this, { url, hello, seams, on, hasCall, isTalking, isWake: false });
    this.#timers = new Timers(seams.clock);
  }

  get isOnline() { return this.#phase === "online"; }
  /** Online, and the gateway has all that was said. */
  get isQuiet() { return this.isOnline && !this.#open.size && !this.#outbox.length; }

  // — the socket —

  connect() {
    this.#phase = "connecting";
    this.#timers.stop();
    this.#asked = null;
    const url = this.#tried = this.#choose();
    // the one before serves until this one does; nothing of it is heard any more
    const last = this.#socket;
    if (last) { this.#drop(this.#old); this.#old = last; }
    let socket;
    try { socket = new this.seams.WebSocket(url, "trunkline.v1"); } catch { this.#socket = null; return this.#closed(1006); }
    this.#socket = socket;
    this.seams.log("connect", { url });
    const patience = this.isTalking() ? OPENING_IN_CALL * 2 ** Math.min(this.#openings++, 2) : OPENING;
    this.#timers.after("open", patience, () => { this.#drop(socket); this.#socket = null; this.#closed(1006); });
    const mine = (f) => (event) => { if (socket === this.#socket) f(event); };
    socket.onopen = mine(() => this.#opened());
    socket.onmessage = mine((event) => this.#received(event.data));
    socket.onclose = mine((event) => { this.#socket = null; this.#closed(event.code); });
  }

  #drop(socket) {
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // a socket that never opened fails to close in some browsers, which is an error event and no more
    try { socket.close(1000); } catch { /* it is closed */ }
  }

  #close(code) {
    try { this.#socket?.close(code); } catch { /* it is closed */ }
  }

  #opened() {
    this.#phase = "greeting";
    this.#timers.stop("home", "open");
    this.#openings = 0;
    this.#drop(this.#old);
    this.#old = null;
    this.#timers.after("welcome", WELCOME, () => this.#giveUp(GOING_AWAY));
    const { proof, ...d } = this.hello();
    this.#write({ t: "hello", id: this.#hello = this.seams.uuid(), d: { ...d, ...(this.#resume ? { resume: { ...this.#resume, lastSeq: this.#seen } } : proof) } });
  }

  /** Closes; a peer that does not answer the close is not waited for long. */
  #giveUp(code) {
    this.#close(code);
    this.#timers.after("closing", CLOSING, () => { this.#drop(this.#socket); this.#socket = null; this.#closed(1006); });
  }

  #closed(code) {
    if (this.#phase === "ended" || this.#phase === "offline") return;
    const wasOnline = this.isOnline, wasConnecting = this.#phase === "connecting";
    this.#phase = "offline";
    this.seams.log("closed", { code });
    this.#timers.stop();
    if (wasOnline) this.on.offline();
    if (wasConnecting && this.#tried === this.url) this.on.failed?.(this.url);
    // of a session that a push's token began, behind `welcome`: its end, nothing to repeat (docs/reference/protocol.md, Details)
    if (code === 4001 && this.#resume && !(wasOnline && this.isWake)) {
      this.#resume = null;
      if (this.#hasBegunAgain) return this.#connectLater();
      this.#hasBegunAgain = true;
      return this.connect();
    }
    if (code === 4001 || code === 4003 || code === 4009) {
      this.#phase = "ended";
      this.#open.clear();
      return this.on.refused(code);
    }
    if (code === GAP || code === 4008) this.#resume = null;
    if (wasOnline) this.#lookAnew();
    const pointer = this.#pointer;
    if (pointer && this.#pointers++ < POINTERS) {
      this.#isSpread = pointer.mayHurry;
      return pointer.wait ? this.#timers.after("connect", pointer.wait, () => this.connect()) : this.connect();
    }
    this.#pointer = null;
    if (wasOnline && this.#spread && isBreak(code) && !this.hasCall() && ![...this.#open.values()].some(({ message }) => message.call)) {
      this.#isSpread = true;
      return this.#timers.after("connect", this.seams.random() * this.#spread, () => this.connect());
    }
    this.#connectLater();
  }

  #connectLater() {
    const wait = Math.min(LONGEST, FIRST * 2 ** Math.min(this.#attempt++, this.hasCall() ? IN_CALL : 5));
    this.#timers.after("connect", wait * (1 + this.seams.random() / 4), () => this.connect());
  }

  #lookAnew() { this.#tries = 0; this.#triesUntil = null; }

  /** The gateway names another node, or only a time; one that drains spreads its sessions by it. */
  #point(url, ms, mayHurry) {
    const wait = Math.min(SPREAD, Math.max(0, Number(ms) || 0));
    this.home = null;
    this.#pointer = isAddress(url) || wait ? { url: isAddress(url) ? url : this.url, wait, mayHurry } : null;
  }

  #choose() {
    const pointer = this.#pointer;
    this.#pointer = null;
    this.#isSpread = false;
    if (pointer) return pointer.url;
    const now = this.seams.clock.now();
    if (!this.#resume || !this.home) return this.url;
    this.#triesUntil ??= now + TRY_TIME;
    if (this.#tries >= TRIES || now >= this.#triesUntil) return this.url;
    this.#tries++;
    // an address that nobody answers at must not hold up the next one
    this.#timers.after("home", this.#triesUntil - now, () => this.connect());
    return this.home;
  }

  /** There is a reason not to wait for the end of a spread. */
  hurry() { if (this.#phase === "offline" && this.#isSpread) this.connect(); }

  /** The network path has changed, or the tab was frozen: a new socket at once. */
  renew() {
    if (this.#phase === "ended") return;
    this.#attempt = 0;
    const wasOnline = this.isOnline;
    this.#phase = "connecting";
    if (wasOnline) this.on.offline();
    this.#lookAnew();
    this.connect();
  }

  /** When the last frame came. */
  get lastFrameAt() { return this.#heard; }
  /** A ping of ours has no answer, and has had the time for one. */
  get isUnanswered() { return this.#asked !== null && this.seams.clock.now() - this.#asked >= ANSWER; }

  /** A ping: a browser can send none of WebSocket's, and the gateway answers this one at once. */
  ask() {
    if (!this.isOnline) return;
    this.#asked ??= this.seams.clock.now();
    this.#write({ t: "ping" });
  }

  /** Nothing answers, it seems: a socket beside the one there is. Bounded, whoever asks for it. */
  openSecond() {
    const now = this.seams.clock.now();
    if (!this.isOnline || now < this.#secondDue) return;
    this.#secondDue = now + Math.min(SECOND_LONGEST, SECOND_SOCKET * 2 ** this.#secondTries++);
    this.renew();
  }

  /** After a time without timers the session may not be what it was. A ping says so: a tab that was only throttled is not cut. */
  wake() {
    if (!this.isOnline) return this.#phase === "offline" ? this.renew() : undefined;
    // a machine that slept may not have counted the time
    const isStale = this.seams.clock.now() - this.#heard > this.heartbeat * 1.5;
    this.#asked = null;
    this.ask();
    this.#timers.after("answer", isStale ? ANSWER : 3 * ANSWER, () => { if (this.#asked !== null) this.openSecond(); });
  }

  finish() {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#timers.stop();
    this.#drop(this.#old);
    this.#drop(this.#socket);
    this.#old = this.#socket = null;
    this.#open.clear();
  }

  // — saying —

  /** `done(d, failure)` once: one of them is null. Survives reconnects with the same id. False: too many are open. */
  request(t, call, d, done = () => {}) {
    if (this.#open.size >= LIMIT) return false;
    const message = { t, id: this.seams.uuid(), ...(call && { call }), ...(d && { d }) };
    if (isTooBig(message)) { queueMicrotask(() => done(null, { code: "badRequest" })); return true; }
    this.#open.set(message.id, { message, done });
    this.#post(message);
    if (call) this.hurry();
    return true;
  }

  /** A request of this kind has no answer yet. */
  isAsking(t, call) { return [...this.#open.values()].some(({ message }) => message.t === t && message.call === call); }

  notify(t, call, d) {
    const message = { t, call, ...(d && { d }) };
    if (!isTooBig(message)) this.#post(message);
  }

  #post(message) {
    if (UNNUMBERED.test(message.t)) return this.isOnline ? this.#write(message) : undefined;
    if (this.#outbox.length >= LIMIT) return this.#startAfresh();
    const entry = { ...message, seq: ++this.#sent };
    this.#outbox.push(entry);
    if (this.isOnline) this.#send(entry);
  }

  #send(entry) {
    this.#timers.stop("ack");
    this.#write(this.#seen ? { ...entry, ack: this.#seen } : entry);
  }

  #write(message) {
    if (this.#socket?.readyState !== 1) return;
    this.#log("sent", message);
    this.#socket.send(JSON.stringify(message));
  }

  /** What a frame is, not what it holds; of a refusal its code, of an end its reason. */
  #log(event, { t, call, id, re, seq, d }) {
    const text = (value) => (typeof value === "string" || typeof value === "number" ? String(value).slice(0, 64) : undefined);
    const fields = { t: text(t), call: text(call), id: text(id), re: text(re), seq, code: text(d?.code), reason: text(d?.reason) };
    this.seams.log(event, Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
  }

  /** A gap, an overflow, or a frame that is none: the next hello is a fresh one. */
  #startAfresh() {
    this.#resume = null;
    if ((this.isOnline || this.#phase === "greeting") && !this.#timers.has("closing")) this.#giveUp(GAP);
  }

  // — hearing —

  #received(text) {
    if ((this.#phase !== "greeting" && !this.isOnline) || this.#timers.has("closing") || text.length > FRAME) return;
    this.#heard = this.seams.clock.now();
    this.#asked = null;
    const frame = decoded(text);
    if (!frame) {
      this.seams.log("unreadable");
      return this.#startAfresh();
    }
    this.#log("received", frame);
    if (frame.ack !== undefined) this.#outbox = this.#outbox.filter((entry) => entry.seq > frame.ack);
    if (frame.seq !== undefined) {
      if (frame.seq <= this.#seen) return;
      if (frame.seq !== this.#seen + 1) return this.#startAfresh();
      this.#seen = frame.seq;
      if (!this.#timers.has("ack")) this.#timers.after("ack", ACK, () => this.#write({ t: "ack", ack: this.#seen }));
    }
    this.#handle(frame);
    this.on.settled();
  }

  #handle({ t, re, call, d }) {
    switch (t) {
      case "welcome": return this.#welcomed(d);
      case "ok": case "media.answer": return this.#complete(re, d, null);
      case "err":
        if (this.#phase === "greeting" && re === this.#hello && d.code === "overload") this.#point(d.url, d.retryMs, false);
        return this.#complete(re, null, d);
      case "bye": return d.code === 1012 ? this.#point(d.url, d.afterMs, true) : undefined;
      case "ping": return this.#write({ t: "pong" });
      default: return this.on.message(t, call, d);
    }
  }

  #complete(id, d, failure) {
    const entry = this.#open.get(id);
    if (!entry) return;
    this.#open.delete(id);
    entry.done(d, failure);
  }

  #welcomed(d) {
    if (this.#phase !== "greeting") return;
    this.#phase = "online";
    this.#resume = { sid: d.sid, token: d.resumeToken };
    this.node = typeof d.node === "string" ? d.node : null;
    this.home = isAddress(d.url) ? d.url : null;
    this.#spread = Math.min(SPREAD, Math.max(0, Number(d.spreadMs) || 0));
    this.#pointer = null;
    this.#lookAnew();
    this.heartbeat = Math.min(HEARTBEAT, Math.max(1000, d.hb));
    this.#timers.stop();
    this.#timers.after("stable", STABLE, () => { this.#attempt = this.#pointers = 0; this.#hasBegunAgain = false; if (this.#asked === null) this.#secondTries = 0; });
    this.#beat();
    if (d.resumed) this.#replay(d.replayFrom); else this.#renumber(new Set(d.calls.map((row) => row.call)));
    this.ask();
    this.on.online(d, d.resumed ? null : d.calls);
  }

  /**
   * Dead is who leaves a ping of ours without an answer, twice the time after the last frame: the ping after that would find it half
   * as long again later. That nobody was heard for long says nothing where nobody was asked.
   */
  #beat(wait = this.heartbeat, isSecondLook = false) {
    const begun = this.seams.clock.now(), pingAt = begun + wait;
    const deadAt = this.#asked === null || isSecondLook ? pingAt : Math.max(this.#heard + 2 * this.heartbeat, this.#asked + this.heartbeat);
    const due = Math.min(pingAt, deadAt);
    this.#timers.after("ping", due - begun, () => {
      const now = this.seams.clock.now();
      if (this.#asked !== null && now - this.#asked >= this.heartbeat && now - this.#heard >= 2 * this.heartbeat) {
        if (now - due >= LATE) return this.#beat(LATE, true);
        this.#close(GOING_AWAY);
        this.#drop(this.#socket);
        this.#socket = null;
        return this.#closed(1006);
      }
      if (now < pingAt) return this.#beat(pingAt - now);
      this.ask();
      this.#beat();
    });
  }

  #replay(from) {
    this.#outbox = this.#outbox.filter((entry) => entry.seq >= from);
    const queued = new Set(this.#outbox.map((entry) => entry.id));
    for (const entry of this.#outbox) this.#send(entry);
    for (const [id, { message }] of this.#open) if (!queued.has(id)) this.#post(message);
  }

  /** After `resumed: false` the old numbers are void: open requests and what the snapshot's calls still need go again. */
  #renumber(live) {
    const pending = this.#outbox.filter((entry) => AGAIN.test(entry.t) && live.has(entry.call));
    this.#outbox = [];
    this.#sent = this.#seen = 0;
    for (const { message } of this.#open.values()) this.#post(message);
    for (const { t, call, d } of pending) this.notify(t, call, d);
  }
}
