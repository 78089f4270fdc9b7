// Plays the files of Tests/Vectors/client to trunkline.js, as their README says for a client in a browser.
import { readFileSync } from "node:fs";
import { Phone } from "../../Sources/Client/WebClient/trunkline.js";
import { Clock, Stream, peerConnections, players, settle, webSockets } from "./fakes.mjs";

const split = (text) => {
  const space = text.indexOf(" ");
  return space < 0 ? [text, ""] : [text.slice(0, space), text.slice(space).trim()];
};

// — the files —

/** The cases of a file: `{name, line, phone, rows, acks, not, steps: [{line, event, expected}]}`, definitions and blocks put in. */
export function read(name) {
  const text = readFileSync(new URL(`../Vectors/client/${name}.txt`, import.meta.url), "utf8");
  const [definitions, blocks, cases] = [[], {}, []];
  let block = null;
  const replaced = (line) => definitions.reduce((all, [key, value]) => all.replaceAll("%" + key, () => value), line);
  const steps = () => (block ? blocks[block] : cases.at(-1).steps);
  text.split("\n").forEach((raw, index) => {
    const line = raw.trim();
    if (!line || line.startsWith("#")) return;
    const [word, rest] = split(line);
    if (word === "def") {
      const [key, value] = split(rest);
      definitions.push([key, replaced(value)]);
      definitions.sort((a, b) => b[0].length - a[0].length);
    } else if (word === "block") blocks[block = rest] = [];
    else if (word === "case") { block = null; cases.push({ name: rest, line: index + 1, phone: [], rows: [], acks: false, not: {}, steps: [] }); }
    else if (word === "use") steps().push(...blocks[rest].map((step) => ({ ...step, expected: [...step.expected] })));
    else if (word === "<") steps().at(-1).expected.push(replaced(rest));
    else if (word === ">") steps().push({ line: index + 1, event: replaced(rest), expected: [] });
    else if (word.startsWith("@")) steps().push({ line: index + 1, event: word, expected: [] });
    else if (word === "row") cases.at(-1).rows.push(rest.split(" ").filter(Boolean));
    else if (word === "phone") cases.at(-1).phone.push(...rest.split(" "));
    else if (word === "acks") cases.at(-1).acks = true;
    else if (word === "not") { const [who, why] = split(rest); cases.at(-1).not[who] = why; }
    else throw new Error(`${name}:${index + 1}: no such line: ${word}`);
  });
  return cases;
}

/** The case for one row: `%1` is its first word. */
export function filled(one, row) {
  const fill = (text) => row.reduceRight((all, value, index) => all.replaceAll(`%${index + 1}`, () => value), text);
  return { ...one, rows: [], steps: one.steps.map(({ line, event, expected }) => ({ line, event: fill(event), expected: expected.map(fill) })) };
}

// — what is compared —

/** Of a system's call screen and audio session: a browser has neither. */
const SCREEN = /^(report|update|reportEnded|reportConnecting|reportConnected|request|fulfil|fail|audio|listen|presentInApp)\b/;

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => JSON.stringify(key) + ":" + canonical(value[key]))}}`;
}

/** An expected line in a browser's terms; null: it has none. */
function translated(line, acks) {
  if (SCREEN.test(line) || (!acks && /^(#\d+ )?send ack\b/.test(line))) return null;
  // a page may not close with 1001
  if (/^(#\d+ )?close 1001$/.test(line)) return line.replace("1001", "4000");
  const brace = line.indexOf("{");
  let head = brace < 0 ? line : line.slice(0, brace).trim();
  if (!acks) head = head.replace(/ ack=\d+/, "");
  if (brace < 0) return head;
  const d = JSON.parse(line.slice(brace));
  if (/^(#\d+ )?send call\.answer\b/.test(line)) delete d.timeoutMs;
  if (/^(#\d+ )?send call\.ringing\b/.test(line)) delete d.reportMs;
  return Object.keys(d).length ? `${head} ${canonical(d)}` : head;
}

/** Socket, app and the media of each call are independent of each other: of each the order is binding. */
const kind = (line) => (/^(#\d+ )?(connect|close|send|post)/.test(line) ? "net" : line.startsWith("media") ? line.slice(0, 8) : "app");

/** `muted` is what was told last, over the whole case. */
function grouped(lines, muted) {
  const groups = new Map();
  for (const line of lines) {
    const key = kind(line);
    // muting again what is muted says nothing
    if (/^media \S+ mute/.test(line)) { if (muted[key] === line) continue; muted[key] = line; }
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  return [...groups.keys()].sort().flatMap((key) => groups.get(key));
}

// — the phone —

export class VectorPhone {
  constructor(one) {
    this.one = one;
    this.out = [];
    this.clock = new Clock();
    this.made = [];
    this.sent = {};
    this.told = {};
    this.state = "idle";
    this.tokens = [];
    this.window = new EventTarget();
    this.peers = [];
    this.owner = null;
    this.world = {
      connected: ({ url }) => this.say(`connect #${this.world.sockets.length}${url === GATEWAY ? "" : ` ${url}`}`),
      sent: (socket, text) => { if (this.speaks(socket)) this.write(JSON.parse(text), this.number(socket)); },
      closed: (socket, code) => { if (this.speaks(socket)) this.say(`${this.number(socket)}close ${code}`); },
      made: (peer) => this.peers.push(Object.assign(peer, { call: this.owner.call, gen: this.owner.gen })),
      offered: (peer) => this.say(`media ${this.name(peer.call.id)} offer ${peer.gen}`),
      remote: (peer, type, sdp) => this.say(`media ${this.name(peer.call.id)} ${type === "offer" ? "answer" : "apply"} ${peer.gen} ${sdp}`),
    };
  }

  say(line) { this.out.push(line); }
  get hasNodes() { return this.one.phone.includes("nodes"); }
  speaks(socket) { return this.hasNodes ? socket.readyState !== 0 && socket.isOpened : socket === this.world.sockets.at(-1); }
  /** In a case with several sockets at a time each line has its number. */
  number(socket) { return this.hasNodes ? `#${this.world.sockets.indexOf(socket) + 1} ` : ""; }

  // ids

  id(text) {
    const word = text.slice(1);
    if (/^\d+$/.test(word)) return this.made[word - 1];
    if (this.sent[word]) return this.sent[word];
    if (!/^[A-H]$/.test(word)) throw new Error(`the phone has made no id ${text}`);
    return `00000000-0000-4000-8000-0000000000${word.charCodeAt(0).toString(16)}`;
  }
  name(id) {
    const letter = /^00000000-0000-4000-8000-0000000000(4[1-8])$/.exec(id);
    if (letter) return "$" + String.fromCharCode(parseInt(letter[1], 16));
    if (!this.made.includes(id)) this.made.push(id);
    return `$${this.made.indexOf(id) + 1}`;
  }
  handle(text) {
    const [h, n] = text.split(/\/(.*)/s);
    return { k: h.startsWith("+") ? "phone" : h.includes("@") ? "email" : "generic", h, ...(n && { n }) };
  }
  call(text) { return this.known[this.id(text)]; }

  // outputs

  write(frame, number = "") {
    if (frame.t === "stats") return;
    if (frame.t === "ack" && !this.one.acks) return;
    if (frame.id) { this.sent[frame.t] = frame.id; }
    const words = [`${number}send`, frame.t];
    if (frame.call) words.push(this.name(frame.call));
    if (frame.id) words.push(`id=${this.name(frame.id)}`);
    if (frame.seq !== undefined) words.push(`seq=${frame.seq}`);
    if (frame.ack !== undefined && this.one.acks) words.push(`ack=${frame.ack}`);
    const d = frame.d ?? {};
    for (const key of ["model", "os", "sdk"]) delete d.device?.[key];
    if (d.withCall) d.withCall = this.name(d.withCall);
    if (Object.keys(d).length) words.push(canonical(d));
    this.say(words.join(" "));
  }

  tell(call) {
    const { peer, capabilities: caps } = call;
    const words = [call.phase, peer.h + (peer.n ? `/${peer.n}` : "")];
    if (call.isMuted) words.push("muted");
    if (call.isHeld) words.push("held");
    if (call.isHeldByPeer) words.push("heldByPeer");
    if (call.account) words.push(`acct=${call.account}`);
    if (call.connectedAt) words.push(`at=${call.connectedAt}`);
    if (call.codec) words.push(`codec=${call.codec}`);
    if (call.quality?.level) words.push(`quality=${call.quality.level}`);
    // until PhoneMachine has it too: a call of one's own that was given up
    if (call.endReason) words.push(`reason=${call.endReason === "cancelled" ? "localEnd" : call.endReason}`);
    if (call.refusal) words.push(`refusal=${call.refusal}`);
    if (caps) words.push(`caps=${["hold", "dtmf", "transfer", "group"].filter((key) => caps[key]).join()}`);
    const line = words.join(" ");
    if (this.told[call.id] === line) return;
    this.told[call.id] = line;
    this.say(`call ${this.name(call.id)} ${line}`);
  }

  follow() {
    for (const call of this.phone.calls) {
      if (this.known[call.id]) continue;
      this.known[call.id] = call;
      call.addEventListener("state", () => this.tell(call));
      call.addEventListener("digit", (event) => this.say(`digit ${this.name(call.id)} ${event.digit}`));
      call.addEventListener("transferred", (event) => this.say(`transferred ${this.name(call.id)} ${event.status}`));
    }
    for (const call of this.phone.calls) this.tell(call);
  }

  tellState() {
    const { state, error } = this.phone;
    const refused = { loginRefused: 4001, revoked: 4003, replaced: 4009 }[error?.code];
    const text = state === "failed" ? (refused ? `refused ${refused}` : "idle") : state;
    if (text !== this.state) this.say(`state ${this.state = text}`);
  }

  /** Orders to a call's media are told as they are given; what they cause is told by the fakes. */
  watch(call) {
    const { media } = call;
    for (const name of ["answer", "offer"]) {
      const order = media[name];
      media[name] = (...all) => { this.owner = { call, gen: all.at(-1) }; return order.apply(media, all); };
    }
    let stage = null;
    const { activate, mute, close } = media;
    media.activate = () => {
      const next = call.phase === "connected" ? "activate" : "activate early";
      if (stage !== next) this.say(`media ${this.name(call.id)} ${stage = next}`);
      return activate.apply(media);
    };
    media.mute = (isOn) => { this.say(`media ${this.name(call.id)} mute ${isOn ? "on" : "off"}`); return mute.call(media, isOn); };
    media.close = () => { if (!media.isClosed) this.say(`media ${this.name(call.id)} close`); return close.apply(media); };
  }

  start() {
    this.known = {};
    const vector = this;
    let seed = 1_234_567;
    this.phone = new class extends Phone {
      // what is told of a call begins with its first moment
      emit(type, fields) {
        if (type === "calls") for (const call of this.calls) if (!vector.known[call.id]) vector.watch(call);
        super.emit(type, fields);
      }
    }(GATEWAY, {
      token: () => { this.say("needsToken"); return new Promise((resolve, reject) => { this.tokens.push({ resolve, reject }); }); },
      device: "phone-1", platform: "test", capabilities: ["media.active", ...(this.hasNodes ? ["nodes"] : [])], takesUp: false, isBackground: this.one.phone.includes("background"),
      WebSocket: webSockets(this.world), RTCPeerConnection: peerConnections(this.world), MediaStream: Stream,
      microphone: async () => new Stream(), player: players(this.world), clock: this.clock,
      random: () => (seed = (seed * 16807) % 2147483647) / 2147483647,
      uuid: () => { const id = this.nextID; this.nextID = null; return id ?? `11111111-0000-4000-8000-${String(++seedOfIDs).padStart(12, "0")}`; },
      fetch: async (url, { headers, body }) => this.say(
        `post ${this.name(/calls\/(.*)\/reject/.exec(url)[1])} ${headers.authorization.replace("Bearer ", "bearer=")} ${canonical(JSON.parse(body))}`),
      storage: null, mediaDevices: null, window: this.window, document: null, connection: null, permissions: null,
    });
    this.phone.addEventListener("state", () => this.tellState());
    this.phone.addEventListener("calls", () => this.follow());
    this.phone.addEventListener("tokenStale", () => this.say("tokenStale"));
    this.phone.addEventListener("registered", (event) => this.say(`registered ${event.error ?? "ok"}`));
  }

  // events

  frame(text) {
    const brace = text.indexOf("{");
    const words = (brace < 0 ? text : text.slice(0, brace)).trim().split(" ");
    const frame = { t: words[0] };
    for (const word of words.slice(1)) {
      if (word.startsWith("$")) { frame.call = this.id(word); continue; }
      const [key, value] = word.split("=");
      frame[key] = value.startsWith("$") ? this.id(value) : Number(value);
    }
    if (brace >= 0) frame.d = JSON.parse(text.slice(brace).replace(/"\$([A-H])"/g, (_, letter) => `"${this.id("$" + letter)}"`));
    return JSON.stringify(frame);
  }

  async play(event) {
    this.out = [];
    if (event.startsWith("@")) await this.clock.advance(Number(event.slice(1)));
    else this.act(event);
    await settle();
    return this.out;
  }

  act(event) {
    let [word, rest] = split(event);
    let socket = this.world.sockets?.at(-1);
    if (word.startsWith("#")) {
      socket = this.world.sockets[word.slice(1) - 1];
      [word, rest] = split(rest);
    }
    const words = rest.split(" ");
    const isOn = words.at(-1) === "on";
    switch (word) {
      case "start": return this.start();
      case "opened": socket.isOpened = true; return socket.open();
      case "closed": return socket.end(Number(rest));
      case "raw": return socket.say(rest);
      case "recv": return socket.say(this.frame(rest));
      case "path": return this.window.dispatchEvent(new Event("online"));
      case "token": {
        const { resolve, reject } = this.tokens.pop();
        return rest === "none" ? reject(new Error("none")) : resolve(rest);
      }
      case "foreground": return this.phone.foreground(rest === "on");
      case "logOut": return void this.phone.logOut().then(() => this.say("loggedOut"));
      case "pushToken":
        return this.phone.register(rest === "none" ? null : { kind: "apns-voip", token: rest, env: "production", topic: "org.example.voip" });
      case "push": return this.phone.push({ call: this.id(words[0]), from: this.handle(words[1]), wake: words[2], gw: words.find((one) => one.startsWith("gw="))?.slice(3) });
      case "audio":
        this.world.plays = rest === "runs";
        return this.world.plays ? this.world.run() : undefined;
      case "ask": {
        const [type, text] = split(rest), phone = this.phone;
        const told = (list) => this.say(["answered", ...list.map((one) => one.h ? one.h + (one.n ? `/${one.n}` : "") : one)].join(" "));
        const refused = (error) => this.say(error.code === "unreachable" ? "answered unreachable" : `answered refused ${error.reason}`);
        return void (type === "user.get" ? phone.ownNumbers() : phone.findNames(text)).then(told, refused);
      }
      case "dial": this.nextID = this.id(words[0]); return this.phone.call(this.handle(words[1]));
      case "wish": case "perform": {
        const [call, name] = word === "wish" ? [this.call(words[0]), words[1]] : [this.call(words[2]), words[1]];
        switch (name) {
          case "answer": return call.answer();
          case "end": return call.end();
          case "hold": return call.hold(isOn);
          case "mute": return call.mute(isOn);
          case "digits": return call.sendDigits(words.at(-1)).catch(() => {});
          case "transfer": return call.transfer(this.handle(words.at(-1))).catch(() => {});
          case "join": return call.transferWith(this.call(words.at(-1))).catch(() => {});
        }
        break;
      }
      case "media": {
        const peer = this.peers.filter((one) => one.call.id === this.id(words[0])).at(-1);
        if (words[1] === "described") return peer.describe(words[3]);
        if (words[1] === "connected") return peer.become("connected");
        if (words[1] === "failed") return peer.become("failed", words[2] === "ice" ? "failed" : "connected");
        break;
      }
    }
    throw new Error(`no such event: ${event}`);
  }
}
let seedOfIDs = 0;
const GATEWAY = "wss://gateway.example.com/v1/connect";

/** Events that a browser has none of: what they cause has happened by then. */
function isPassive(step, asked) {
  const [word, rest] = split(step.event);
  if (word === "didActivate" || word === "didDeactivate" || (word === "reported" && / (ok|exists)$/.test(rest))) return true;
  if (word !== "perform") return false;
  const wanted = rest.split(" ").slice(1).filter((one) => !one.startsWith("timeout=")).join(" ");
  const index = asked.indexOf(wanted);
  if (index < 0) return false;
  asked.splice(index, 1);
  return true;
}

/** Null: the case went as the file says; else where it went another way. */
export async function difference(one) {
  const phone = new VectorPhone(one);
  const [asked, mutedThere, mutedHere] = [[], {}, {}];
  for (let index = 0; index < one.steps.length;) {
    const step = one.steps[index];
    let seen, expected = [];
    try { seen = await phone.play(step.event); } catch (error) { return `${step.line}: ${one.name}: ${error.stack}`; }
    for (let isFirst = true; index < one.steps.length && (isFirst || isPassive(one.steps[index], asked)); index++, isFirst = false) {
      const lines = one.steps[index].expected;
      for (const line of lines) if (line.startsWith("request ")) asked.push(line.slice(8));
      expected.push(...lines.map((line) => translated(line, one.acks)).filter(Boolean));
    }
    const [a, b] = [grouped(expected, mutedThere), grouped(seen, mutedHere)];
    if (a.join("\n") === b.join("\n")) continue;
    const lost = a.filter((line) => !b.includes(line)).map((line) => `- ${line}`);
    const extra = b.filter((line) => !a.includes(line)).map((line) => `+ ${line}`);
    const text = lost.length + extra.length ? [...lost, ...extra] : ["another order:", ...a.map((line) => `- ${line}`), ...b.map((line) => `+ ${line}`)];
    return [`${step.line}: ${one.name}`, `after: ${step.event}`, ...text].join("\n");
  }
  phone.phone?.close();
  await settle();
  const left = phone.peers.filter((peer) => !peer.isClosed).length;
  if (left || phone.clock.count) return `${one.line}: ${one.name}: ${left} peer connections and ${phone.clock.count} timers are left after close()`;
  return null;
}
