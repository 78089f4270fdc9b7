// trunkline.js: the browser client of the app protocol `trunkline.v1`.
//
//   import { Trunkline } from "./trunkline.js";
//   const line = new Trunkline({ url: "ws://127.0.0.1:8080/v1/connect", token });
//   line.addEventListener("incoming", ({ call }) => { … call.answer() … });
//   const call = line.call("+15551230001");
//   call.addEventListener("state", () => console.log(call.state, call.reason));
//
// A call's `state` is ringing | answering | starting | ready | progress | connected | ended. `connected` means that media flows:
// the gateway answers the telephone network only then. ICE and DTLS run while it rings; the microphone opens on answer() or call().

const PROTOCOL = "trunkline.v1";
const OUTBOX_LIMIT = 256;
const SNAPSHOT_TYPES = new Set(["call.ringing", "call.unavailable", "media.ready", "media.fail", "media.active"]);
const UNNUMBERED = new Set(["stats"]);

const uuid = () => crypto.randomUUID();

/** The claims of a JWT, unverified: only to learn this device's own name. */
export function claims(token) {
  const part = token.split(".")[1] ?? "";
  return JSON.parse(atob(part.replace(/-/g, "+").replace(/_/g, "/")));
}

/** A refused request; `code` is one of the protocol's error codes, `reason` the end reason when `code` is gone. */
export class RequestError extends Error {
  constructor(d) {
    super(d.msg || d.code);
    this.code = d.code;
    this.reason = d.reason;
  }
}

/** A microphone that did not open; `reason` is microphoneDenied, microphoneAbsent, microphoneBusy or microphoneInsecure. */
export class MicrophoneError extends Error {
  constructor(error) {
    super(error?.message ?? "no microphone");
    const names = { NotAllowedError: "Denied", SecurityError: "Denied", NotFoundError: "Absent", OverconstrainedError: "Absent" };
    this.reason = "microphone" + (error ? names[error.name] ?? "Busy" : "Insecure");
  }
}

/** What a failed step ends a call with: a refusal's code, the reason that the gateway knew, or what the microphone lacks. */
function endReason(error) {
  if (error instanceof RequestError) return error.code === "gone" ? error.reason ?? "unknown" : error.code;
  return error instanceof MicrophoneError ? error.reason : "mediaFailed";
}

/**
 * One device's connection to the gateway: reconnects, resumes and replays by itself.
 * Events: state, incoming, taken (a call that an earlier page of this device had), gone, expiring, error.
 */
export class Trunkline extends EventTarget {
  /** With `wake` and `device`, of a push, in place of `token`: a session for the call that it woke this device for. */
  constructor({ url, token, wake, device, getMicrophone, platform = "web" }) {
    super();
    this.url = url;
    Object.assign(this, { token, wake });
    this.device = { id: device ?? claims(token).dev, platform, model: navigator.platform || "browser", os: navigator.userAgent.slice(0, 80), sdk: "trunkline.js/1" };
    this.getMicrophone = getMicrophone ?? (() => navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true } }));
    this.calls = new Map();
    this.state = "offline";
    this.iceServers = [];
    this.requests = new Map(); // id → { message, resolve, reject }, until ok or err
    this.session = null; // { sid, token }
    this.resetNumbers();
    this.attempt = 0;
    this.isReachable = true; // false from a lost socket until the next welcome
    this.closedByUser = false;
    addEventListener("online", this.onNetwork = () => this.networkChanged());
    navigator.connection?.addEventListener?.("change", this.onNetwork);
    this.connect();
  }

  resetNumbers() {
    this.sent = 0; // last seq sent
    this.seen = 0; // last seq received in order
    this.outbox = []; // numbered messages not acked yet
  }

  setState(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  /** Ends the session for good; calls end with it. */
  close() {
    this.closedByUser = true;
    removeEventListener("online", this.onNetwork);
    clearTimeout(this.retry);
    for (const call of this.calls.values()) call.hangUp();
    this.socket?.close(1000);
    this.setState("offline");
  }

  // — the socket —

  connect() {
    clearTimeout(this.retry);
    this.setState("connecting");
    const socket = this.socket = new WebSocket(this.url, PROTOCOL);
    this.welcomed = false;
    socket.onopen = () => {
      const d = { device: this.device, caps: ["media.active", "quality"], state: "fg" };
      if (this.session) d.resume = { sid: this.session.sid, token: this.session.token, lastSeq: this.seen };
      else if (this.wake) d.wake = this.wake;
      else d.auth = this.token;
      socket.send(JSON.stringify({ t: "hello", id: this.helloId = uuid(), d }));
    };
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      this.heard = performance.now();
      let message;
      try { message = JSON.parse(event.data); } catch { return socket.close(4002); }
      this.receive(message);
    };
    socket.onclose = (event) => { if (socket === this.socket) this.lost(event.code); };
  }

  setReachable(isReachable) {
    if (this.isReachable === isReachable) return;
    this.isReachable = isReachable;
    this.dispatchEvent(new Event("state"));
  }

  lost(code) {
    clearInterval(this.heartbeat);
    this.socket = null;
    if (this.closedByUser) return;
    if (code === 4001 && this.session) { this.session = null; this.attempt = 0; return this.connect(); } // resume refused: fresh hello
    if (code === 4001 || code === 4003) return this.fail(code === 4001 ? "The login was refused. Ask for a new link." : "This device was revoked.");
    if (code === 4009) return this.fail("This device connected elsewhere.");
    if (code === 4002) this.session = null;
    this.setState("connecting");
    this.setReachable(false);
    const wait = Math.min(5000, 200 * 2 ** this.attempt++) * (0.75 + Math.random() / 2);
    this.retry = setTimeout(() => this.connect(), wait);
  }

  fail(text) {
    this.closedByUser = true;
    this.setState("offline");
    this.dispatchEvent(Object.assign(new Event("error"), { message: text }));
  }

  networkChanged() {
    if (this.closedByUser) return;
    for (const call of this.calls.values()) call.restart("net");
    if (!this.socket) { this.attempt = 0; this.connect(); }
  }

  startHeartbeat(interval) {
    clearInterval(this.heartbeat);
    this.heard = performance.now();
    this.heartbeat = setInterval(() => {
      if (performance.now() - this.heard > 2 * interval) { this.socket?.close(4000); return this.lost(1006); }
      this.write({ t: "ping" });
    }, interval);
  }

  write(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  // — numbering, replay —

  /** Sends a numbered message; it is kept until acked. */
  post(message) {
    if (UNNUMBERED.has(message.t)) return this.write(message);
    message.seq = ++this.sent;
    this.outbox.push(message);
    if (this.outbox.length > OUTBOX_LIMIT) { this.session = null; this.socket?.close(4002); return; }
    if (this.welcomed) this.write({ ...message, ack: this.seen });
  }

  /** A request: resolves with the `d` of ok, rejects with RequestError. Survives reconnects with the same id. */
  request(t, call, d, re = false) {
    return new Promise((resolve, reject) => {
      const message = { t, id: uuid(), call, ...(d && { d }) };
      this.requests.set(message.id, { message, resolve, reject });
      this.post(message);
    });
  }

  notify(t, call, d) { this.post({ t, call, ...(d && { d }) }); }

  receive(message) {
    if (message.ack !== undefined) this.outbox = this.outbox.filter((m) => m.seq > message.ack);
    if (message.seq !== undefined) {
      if (message.seq <= this.seen) return;
      if (message.seq !== this.seen + 1) { this.session = null; this.socket.close(4002); return this.lost(4002); }
      this.seen = message.seq;
      this.ackTimer ??= setTimeout(() => { this.ackTimer = null; this.write({ t: "ack", ack: this.seen }); }, 100);
    }
    const d = message.d ?? {};
    switch (message.t) {
      case "welcome": return this.welcome(d);
      case "ok": case "media.answer": return this.complete(message.re, (r) => r.resolve(d));
      case "err": return this.complete(message.re, (r) => r.reject(new RequestError(d)));
      case "call.offer": return this.offer(message.call, d);
      case "auth.expiring": return this.dispatchEvent(Object.assign(new Event("expiring"), { at: d.at }));
      case "pong": return this.pong();
      case "call.gone":
        if (!this.calls.has(message.call)) return this.dispatchEvent(Object.assign(new Event("gone"), { id: message.call, reason: d.reason }));
        return this.calls.get(message.call).receive(message.t, d);
      default: return this.calls.get(message.call)?.receive(message.t, d);
    }
  }

  complete(id, finish) {
    const entry = this.requests.get(id);
    if (!entry) return;
    this.requests.delete(id);
    finish(entry);
  }

  welcome(d) {
    this.attempt = 0;
    this.welcomed = true;
    this.session = { sid: d.sid, token: d.resumeToken };
    this.iceServers = (d.ice ?? []).map(({ urls, username, credential }) => ({ urls, username, credential }));
    if (d.resumed) {
      this.outbox = this.outbox.filter((m) => m.seq >= d.replayFrom);
      for (const message of this.outbox) this.write(message);
      const queued = new Set(this.outbox.map((m) => m.id));
      for (const { message } of this.requests.values()) if (!queued.has(message.id)) this.post(message);
    } else {
      const pending = this.outbox.filter((m) => SNAPSHOT_TYPES.has(m.t));
      this.resetNumbers();
      const live = new Map((d.calls ?? []).map((entry) => [entry.call, entry]));
      for (const { message } of this.requests.values()) this.post(message);
      for (const message of pending) if (live.has(message.call)) this.post(message);
      for (const entry of live.values()) {
        if (this.calls.has(entry.call)) continue;
        if (entry.state === "ringing") this.offer(entry.call, entry);
        else this.takeUp(entry, d.time);
      }
      this.verify = new Set([...this.calls.keys()].filter((id) => !live.has(id) && this.calls.get(id).state !== "starting"));
    }
    this.isReachable = true;
    this.setState("online");
    this.startHeartbeat(d.hb ?? 15000);
    this.write({ t: "ping" });
  }

  /** A call that neither the snapshot nor a call.gone named before this pong has ended. */
  pong() {
    for (const id of this.verify ?? []) this.calls.get(id)?.finish("unknown");
    this.verify = null;
  }

  offer(id, d) {
    let call = this.calls.get(id);
    if (!call) {
      call = new Call(this, id, "incoming", d.from, d.to);
      this.calls.set(id, call);
      this.notify("call.ringing", id);
      this.dispatchEvent(Object.assign(new Event("incoming"), { call }));
    }
    call.prepared = call.prepare(d);
  }

  /** A call of the snapshot that this page did not make: the page was loaded again in it. */
  takeUp(entry, now) {
    const call = new Call(this, entry.call, entry.dir === "in" ? "incoming" : "outgoing", entry.from, entry.to);
    this.calls.set(call.id, call);
    const taken = call.takeUp(entry, now);
    this.dispatchEvent(Object.assign(new Event("taken"), { call }));
    return taken;
  }

  /** Calls a number. The microphone opens at once; the telephone rings only when audio can flow. */
  call(number, from) {
    const call = new Call(this, uuid(), "outgoing", from && { k: "phone", h: from }, { k: "phone", h: number });
    this.calls.set(call.id, call);
    call.start();
    return call;
  }
}

/** One call. Events: state, digit, quality. `heldHere` and `heldThere` say who holds it, `audioBlocked` that a click is needed to hear. */
export class Call extends EventTarget {
  constructor(line, id, direction, from, to) {
    super();
    Object.assign(this, { line, id, direction, from, to, gen: 1, muted: false, reason: null, codec: null, heldHere: false, heldThere: false });
    this.state = direction === "incoming" ? "ringing" : "starting";
    this.audio = new Audio();
    this.audio.autoplay = true;
    this.times = { created: performance.now() };
  }

  get held() { return this.heldHere || this.heldThere; }

  get peer() { return (this.direction === "incoming" ? this.from : this.to) ?? {}; }

  setState(state) {
    if (this.state === "ended" || this.state === state) return;
    this.state = state;
    this.times[state] ??= performance.now();
    this.dispatchEvent(new Event("state"));
  }

  makePeer() {
    const pc = this.pc = new RTCPeerConnection({ iceServers: this.line.iceServers, bundlePolicy: "max-bundle" });
    pc.ontrack = ({ track, streams }) => { this.audio.srcObject = this.remoteStream = streams[0] ?? new MediaStream([track]); };
    pc.onconnectionstatechange = () => {
      if (pc !== this.pc) return;
      if (pc.connectionState === "connected") this.mediaUp();
      if (pc.connectionState === "failed") this.mediaDown();
    };
    pc.oniceconnectionstatechange = () => {
      clearTimeout(this.iceTimer);
      if (pc === this.pc && pc.iceConnectionState === "disconnected") this.iceTimer = setTimeout(() => this.restart("timeout"), 1500);
    };
    return pc;
  }

  /** ICE and DTLS for an offer, before anybody taps. No microphone yet: the track comes with answer(). */
  async prepare(d) {
    try {
      this.gen = d.gen ?? 1;
      const pc = this.makePeer();
      await pc.setRemoteDescription({ type: "offer", sdp: d.sdp });
      const transceiver = pc.getTransceivers()[0];
      transceiver.direction = "sendrecv";
      this.sender = transceiver.sender;
      if (this.microphone) await this.sender.replaceTrack(this.microphone.getAudioTracks()[0]);
      await pc.setLocalDescription();
      this.announced = false;
      await this.line.request("call.prepare", this.id, { sdp: pc.localDescription.sdp, gen: this.gen });
      this.unable = null;
    } catch (error) {
      this.unprepared(error);
    }
  }

  unprepared(error) {
    if (this.state === "ended" || error.code === "gone") return;
    if (error.code === "codec") return this.finish("codec"); // the refusal is this device's last word of the call
    this.unable = error;
    this.line.notify("media.fail", this.id, { stage: "ice", detail: String(error.message ?? error) });
  }

  mediaUp() {
    this.times.media ??= performance.now();
    if (this.announced === this.gen) return;
    this.announced = this.gen;
    this.pair().then((pair) => this.line.notify("media.ready", this.id, { gen: this.gen, ...pair }));
  }

  async pair() {
    const stats = [...(await this.pc.getStats()).values()];
    const chosen = stats.find((s) => s.type === "candidate-pair" && s.nominated && s.state === "succeeded");
    const kind = (id) => stats.find((s) => s.id === id)?.candidateType ?? "unknown";
    const transport = stats.find((s) => s.type === "transport");
    return {
      pair: { local: kind(chosen?.localCandidateId), remote: kind(chosen?.remoteCandidateId) },
      rttMs: Math.round((chosen?.currentRoundTripTime ?? 0) * 1000),
      dtls: transport?.srtpCipher ?? transport?.dtlsState ?? "connected",
    };
  }

  mediaDown() {
    if (this.state === "connected") return this.restart("iceFailed");
    this.line.notify("media.fail", this.id, { stage: this.pc.iceConnectionState === "failed" ? "ice" : "dtls" });
  }

  /** New ICE credentials on the same DTLS association; audio goes on over the old pair meanwhile. */
  async restart(cause, gen = this.gen + 1) {
    if (!this.pc || this.state === "ended" || this.state === "ringing" || this.restarting === gen) return;
    this.restarting = gen;
    try {
      this.pc.restartIce();
      await this.pc.setLocalDescription(await this.pc.createOffer({ iceRestart: true }));
      const d = await this.line.request("media.restart", this.id, { sdp: this.pc.localDescription.sdp, gen, cause });
      this.gen = gen;
      await this.pc.setRemoteDescription({ type: "answer", sdp: d.sdp });
      if (this.pc.connectionState === "connected") this.mediaUp();
    } catch (error) {
      if (this.pc?.signalingState === "have-local-offer") await this.pc.setLocalDescription({ type: "rollback" }).catch(() => {});
    } finally {
      this.restarting = null;
    }
  }

  async openMicrophone() {
    try {
      this.microphone ??= await this.line.getMicrophone();
    } catch (error) {
      throw new MicrophoneError(navigator.mediaDevices ? error : null);
    }
    if (this.state === "ended") this.closeMicrophone(); // it ended while the person was asked
    const track = this.microphone.getAudioTracks()[0];
    track.enabled = !this.muted;
    return track;
  }

  closeMicrophone() {
    for (const track of this.microphone?.getTracks() ?? []) track.stop();
  }

  /**
   * The call of a snapshot: `media.restart` from a new peer connection, whose other fingerprint makes a new DTLS association.
   * The far side is heard before the microphone is there, because that may ask the person first.
   */
  async takeUp(entry, now) {
    const isConnected = entry.state === "connected" || entry.state === "held";
    Object.assign(this, { gen: entry.gen, heldHere: entry.state === "held", takesUp: true });
    this.state = isConnected ? "connected" : entry.state;
    this.times[this.state] = performance.now() - Math.max(0, now - entry.at);
    this.sender = this.makePeer().addTransceiver("audio", { direction: "sendrecv" }).sender;
    await this.restart("net");
    if (!this.pc.remoteDescription) return this.failMedia();
    if (isConnected) await this.connected({ codec: this.codec });
    try {
      await this.sender.replaceTrack(await this.openMicrophone());
    } catch (error) {
      if (this.state === "ended") return;
      this.microphoneFault = endReason(error);
    }
    this.takesUp = false;
    this.dispatchEvent(new Event("state"));
  }

  /** Takes the call. Resolves when this device has won it; `connected` follows when media flows. */
  async answer() {
    const tapped = performance.now();
    this.setState("answering");
    try {
      const track = await this.openMicrophone();
      await this.prepared; // no answer without a description that the gateway has taken
      if (this.state === "ended") return;
      if (this.unable) throw this.unable;
      await this.sender?.replaceTrack(track);
      const d = { ageMs: Math.round(performance.now() - tapped) };
      await this.line.request("call.answer", this.id, d);
      this.times.won = performance.now();
    } catch (error) {
      // Nobody declined: this device is out, others ring on. Who was refused for one of these is out already.
      const isOut = error instanceof RequestError && ["gone", "answeredElsewhere", "codec"].includes(error.code);
      if (!isOut) this.line.request("call.reject", this.id, { scope: "device", reason: "mediaFailed" }).catch(() => {});
      this.finish(endReason(error));
    }
  }

  async start() {
    try {
      const pc = this.makePeer();
      this.sender = pc.addTransceiver("audio", { direction: "sendrecv" }).sender;
      await this.sender.replaceTrack(await this.openMicrophone());
      await pc.setLocalDescription();
      const d = { to: this.to, ...(this.from && { from: this.from }), video: false, sdp: pc.localDescription.sdp, gen: 1 };
      const ok = await this.line.request("call.start", this.id, d);
      await pc.setRemoteDescription({ type: "answer", sdp: ok.sdp });
    } catch (error) {
      this.finish(endReason(error));
    }
  }

  /** `busy` or `declined`, on all devices of the user. */
  reject(reason = "declined") {
    this.line.request("call.reject", this.id, { scope: "all", reason }).catch(() => {});
    this.finish(reason === "busy" ? "busy" : "localDecline");
  }

  /** Its media cannot be set up any more. */
  failMedia() {
    if (this.state === "ended") return;
    this.line.request("call.end", this.id, { reason: "mediaFailed" }).catch(() => {});
    this.finish("mediaFailed");
  }

  hangUp() {
    if (this.state === "ended") return;
    this.line.request("call.end", this.id, { reason: "localEnd" }).catch(() => {});
    this.finish("localEnd");
  }

  mute(on) {
    this.muted = on;
    for (const track of this.microphone?.getAudioTracks() ?? []) track.enabled = !on;
    this.line.request("call.mute", this.id, { on, mode: "input" }).catch(() => {});
    this.dispatchEvent(new Event("state"));
  }

  hold(on) { return this.line.request("call.hold", this.id, { on }); }

  /** Digits `0-9 A-D * #` to the telephone side. */
  dtmf(digits) { return this.line.request("call.dtmf", this.id, { digits, durMs: 160, gapMs: 80, kind: "tone" }); }

  receive(type, d) {
    switch (type) {
      case "call.connected": return this.connected(d);
      case "call.progress": this.progressed(d.stage); this.setState(d.stage === "trying" ? "ready" : "progress"); return this.dispatchEvent(new Event("state"));
      case "call.cancel": case "call.ended": case "call.gone": return this.finish(d.reason, d);
      case "call.update": this.from = d.from ?? this.from; return this.dispatchEvent(new Event("state"));
      case "call.digit": return this.dispatchEvent(Object.assign(new Event("digit"), { digit: d.digit }));
      case "call.held": this[d.by === "remote" ? "heldThere" : "heldHere"] = d.on; return this.dispatchEvent(new Event("state"));
      case "quality": this.quality = d; return this.dispatchEvent(new Event("quality"));
      case "media.restart": return this.restart(d.cause, d.gen);
    }
  }

  progressed(stage) {
    this.progress = stage;
    if (stage === "early") this.hasEarlyMedia = true;
  }

  /** Again from a click, where the browser did not let the page sound. */
  async play() {
    const isBlocked = await this.audio.play().then(() => false, (error) => error.name === "NotAllowedError");
    if (isBlocked === !!this.audioBlocked) return;
    this.audioBlocked = isBlocked;
    this.dispatchEvent(new Event("state"));
  }

  async connected(d) {
    this.codec = d.codec;
    this.setState("connected");
    await this.play();
    if (this.state === "ended") return;
    this.line.notify("media.active", this.id, { capture: !!this.microphone, playout: true });
    this.statsTimer = setInterval(() => this.report(), 5000);
  }

  async report() {
    const inbound = [...(await this.pc.getStats()).values()].find((s) => s.type === "inbound-rtp");
    if (!inbound) return;
    const total = inbound.packetsReceived + inbound.packetsLost;
    this.line.notify("stats", this.id, {
      jitterMs: Math.round(inbound.jitter * 1000), loss: total ? inbound.packetsLost / total : 0, bytes: inbound.bytesReceived,
      plc: inbound.concealedSamples ?? 0, codec: this.codec });
  }

  finish(reason, d = {}) {
    if (this.state === "ended") return;
    this.reason = reason;
    this.sip = d.sip;
    this.setState("ended");
    clearInterval(this.statsTimer);
    clearTimeout(this.iceTimer);
    this.closeMicrophone();
    this.pc?.close();
    this.audio.srcObject = null;
    this.line.calls.delete(this.id);
  }
}
