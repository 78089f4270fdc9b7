// A phone on the fakes, with what tests say most.
import { Phone } from "../../Sources/Client/WebClient/trunkline.js";
// The phone loads these when they are wanted; loaded before, a slow disk takes no turns of a test.
import "../../Sources/Client/WebClient/preflight.js";
import "../../Sources/Client/WebClient/test-call.js";
import "../../Sources/Client/WebClient/push.js";
import { Clock, Stream, peerConnections, players, settle, webSockets } from "./fakes.mjs";

export const A = "7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a10";
export const B = "7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a11";
export const OFFER = { from: { k: "phone", h: "+15550001", n: "Ann" }, to: { k: "phone", h: "+15551230001" }, acct: "default", video: false, sdp: "offer", gen: 1 };

let ids = 0;

export class Rig {
  constructor(options = {}, world = {}) {
    this.clock = options.clock ?? new Clock();
    this.sent = [];
    this.world = Object.assign({ describesAtOnce: true, plays: true, sent: (socket, text) => this.#heard(socket, JSON.parse(text)) }, world);
    this.window = Object.assign(new EventTarget());
    this.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
    this.microphones = [];
    this.seq = 0;
    this.options = {
      token: () => "e30." + btoa(JSON.stringify({ sub: "alice", dev: "web" })) + ".x",
      WebSocket: webSockets(this.world), RTCPeerConnection: peerConnections(this.world), MediaStream: Stream, player: players(this.world),
      microphone: async () => { const stream = new Stream(); this.microphones.push(stream); return stream; },
      clock: this.clock, random: () => 0.5, uuid: () => `11111111-0000-4000-8000-${String(++ids).padStart(12, "0")}`, storage: null, mediaDevices: null, permissions: null, connection: null,
      window: this.window, document: this.document, fetch: async (url, request) => { this.posted = { url, ...request }; }, ...options,
    };
    this.phone = new Phone("wss://gateway.example.com/v1/connect", this.options);
  }

  /** The gateway answers pings by itself. */
  #heard(socket, frame) {
    this.sent.push(frame);
    if (frame.t === "ping" && !this.world.isDeaf) queueMicrotask(() => socket.say({ t: "pong" }));
  }

  get socket() { return this.world.sockets.at(-1); }
  get peer() { return this.world.peers.at(-1); }
  get call() { return this.phone.calls.at(-1); }
  /** Frames of this type that were sent. */
  said(type) { return this.sent.filter((frame) => frame.t === type); }

  async say(frame) { this.socket.say(frame); await settle(); }
  /** A numbered message. */
  async tell(t, call, d = {}) {
    const ack = this.sent.filter((frame) => frame.seq).at(-1)?.seq;
    await this.say({ t, call, seq: ++this.seq, ...(ack && { ack }), d });
  }
  async ok(type, d = {}) { await this.say({ t: "ok", re: this.said(type).at(-1).id, d }); }
  async refuse(type, d) { await this.say({ t: "err", re: this.said(type).at(-1).id, d }); }

  async welcome(d = {}) {
    await settle();
    this.socket.open();
    await settle();
    if (!d.resumed) this.seq = 0;
    await this.say({ t: "welcome", re: this.said("hello").at(-1).id, d: {
      sid: "s1", resumeToken: "r1", resumed: false, replayFrom: 1, time: this.clock.now(), hb: 15000, ice: [], calls: [], dirVersion: 0, caps: [], ...d } });
    return this;
  }

  async ring(id = A) {
    await this.tell("call.offer", id, OFFER);
    await this.ok("call.prepare");
    this.peer.become("connected");
    await settle();
    return this.call;
  }

  /** An incoming call that talks. */
  async talk(id = A) {
    const call = await this.ring(id);
    call.answer();
    await settle();
    await this.ok("call.answer", { won: true });
    await this.tell("call.connected", id, { at: this.clock.now(), codec: "opus" });
    return call;
  }

  async dial(number = "+15559990001") {
    const call = this.phone.call(number);
    await settle();
    await this.ok("call.start", { sdp: "answer" });
    this.peer.become("connected");
    await settle();
    return call;
  }

  /** Nothing of it is left. */
  left() {
    return { timers: this.clock.count, peers: (this.world.peers ?? []).filter((peer) => !peer.isClosed).length,
      microphones: this.microphones.filter((stream) => stream.getTracks().some((track) => track.readyState === "live")).length };
  }
}

export const online = async (options, world) => new Rig(options, world).welcome();
export { Clock, Stream, settle };
