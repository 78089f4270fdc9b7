// One call: what to send, what its media has to do, and what the user sees.
//
// | phase                     | offer                          | tap                       | media connected | call.connected | end of the gateway | end()          |
// |---------------------------|--------------------------------|---------------------------|-----------------|----------------|--------------------|----------------|
// | ringing                   | prepare; the same again: rings | answering, then answer    | media.ready     | -              | ended              | reject → ended |
// | answering                 | prepare                        | -                         | media.ready     | connected      | ended              | end → ended    |
// | answering, call.progress  | -                              | -                         | media.ready     | connected      | ended              | end → ended    |
// | starting, ready, progress | -                              | -                         | media.ready     | connected      | ended              | end → ended    |
// | connected                 | -                              | -                         | media.ready     | -              | ended              | end → ended    |
// | ended                     | -                              | -                         | -               | -              | -                  | -              |
import { Source } from "./events.js";
import { Media, Warnings, Watch } from "./media.js";
import { PhoneError, endReason, errorCode, party, reasonText, refusalReason, warning } from "./texts.js";

/** The gateway's deadline for media, from the tap, and what a new attempt needs of it (docs/reference/protocol.md, The media gate). */
const GATE = 10_000, RESTART = 3_000;
const MUTE_BURST = 300;
const DIVERSIONS = 10;
/** Rules of `parameters` as the gateway has them (docs/reference/protocol.md, Parameters): names of header fields, each once in whatever case, values without
 *  control characters, so many pairs, so many octets of names and values. */
const NAME = /^[\w.!%*+`'~-]{1,64}$/, CONTROL = /[\0-\x1f\x7f-\x9f]/, PAIRS = 16, OCTETS = 1_024;
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isPair = ([name, value]) => NAME.test(name) && typeof value === "string" && !CONTROL.test(value);
function fits(pairs) {
  const text = new TextEncoder(), octets = pairs.flat().reduce((sum, one) => sum + text.encode(one).length, 0);
  return pairs.length <= PAIRS && octets <= OCTETS && new Set(pairs.map(([name]) => name.toLowerCase())).size === pairs.length;
}

/** What an app gives: null if it may not be sent. */
export function given(parameters) {
  if (parameters === undefined || parameters === null) return {};
  const pairs = isObject(parameters) ? Object.entries(parameters) : null;
  return pairs?.every(isPair) && fits(pairs) ? Object.fromEntries(pairs) : null;
}
/** What has come: pairs that are none are left out, and all of what is too much. */
function taken(parameters) {
  const pairs = isObject(parameters) ? Object.entries(parameters).filter(isPair) : [];
  return fits(pairs) ? Object.fromEntries(pairs) : {};
}
/** Media of a connected call is made anew once in so long, then in twice that, until something is heard again. */
const REMAKE = 6_000, REMAKE_LONGEST = 15_000;
const STATES = { answering: "connecting", starting: "connecting", ready: "connecting", progress: "calling" };

/** A switch that the user throws and the gateway confirms: what is wanted meanwhile is asked for afterwards. */
class Switch {
  isOn = false;
  #wanted = false;
  #isAsked = false;
  constructor(ask) { this.ask = ask; }

  want(isOn) {
    this.#wanted = isOn;
    if (this.#isAsked || isOn === this.isOn) return;
    this.#isAsked = true;
    this.ask(isOn, (isDone) => {
      this.#isAsked = false;
      if (isDone) this.isOn = isOn; else if (this.#wanted === isOn) this.#wanted = this.isOn;
      this.want(this.#wanted);
    });
  }
}

export class Call extends Source {
  #gen = 1;
  #readyGen = 0;
  #offer = null;
  #restartCause = null;
  #heldRestart = null;
  #isPrepared = false;
  #isDescribed = false;
  #isUnable = false;
  #tap = null;
  #age = null;
  #hasRestarted = false;
  #told = "";
  #hold;
  /** Names of timers. */
  #muting = {};
  #skew = 0;
  #count = 0;
  #watch = new Watch();
  #warnings = new Warnings();
  #remakeDue = 0;
  #remakes = 0;

  constructor(phone, id, direction, peer, options = {}) {
    super();
    Object.assign(this, {
      phone, id, direction, peer, from: options.from, account: options.account ?? null, location: options.location,
      called: direction === "outgoing" ? peer : null, attestation: null, isPrivate: false, diverted: [], parameters: options.parameters ?? {},
      phase: direction === "incoming" ? "ringing" : "starting", progress: null, hasEarlyMedia: false, isMuted: false, isHeldByPeer: false,
      capabilities: null, group: null, isTakenUp: false, microphoneFault: null, startedAt: phone.seams.clock.now(), connectedAt: null, endedAt: null,
      session: null, node: null, hasNoSession: false, ringsAlone: false, endReason: null, error: null, codec: null, quality: null, statistics: null, isListening: false, tappedAt: null, isReconnecting: false, warnings: [],
    });
    const { seams } = phone;
    this.media = new Media(seams, {
      described: (sdp, gen) => this.#described(sdp, gen),
      connected: (gen, d) => this.#mediaConnected(gen, d),
      failed: (stage, detail) => this.#mediaFailed(stage, detail),
      path: (isDisconnected) => {
        if (!isDisconnected) return this.#reconnects(false);
        this.#watch.suspect();
        phone.pingGateway(this);
      },
      sampled: (stats) => this.#sampled(stats),
      judged: (...all) => this.#judged(...all),
      undescribed: (gen, detail, error) => this.#undescribed(gen, detail, error),
      audio: () => { this.#tellAudio(); this.changed(); },
      ended: () => this.#microphoneEnded(),
      statistics: (values) => this.#counted(values),
    });
    this.#hold = new Switch((isOn, done) => {
      const isAsked = phone.ask("call.hold", this.id, { on: isOn }, (d) => {
        if (this.isOver) return;
        done(!!d);
        this.#shown();
      });
      if (!isAsked) done(false);
    });
  }

  // — what is shown —

  get isOver() { return this.phase === "ended"; }
  get isOutgoing() { return this.direction === "outgoing"; }
  get state() {
    if (this.phase !== "connected") return STATES[this.phase] ?? this.phase;
    return this.isReconnecting ? "reconnecting" : this.isHeld ? "held" : "connected";
  }
  get isHeld() { return this.#hold.isOn; }
  get isPlaying() { return this.media.isPlaying; }
  get isAudioBlocked() { return this.media.isBlocked; }
  get isCapturing() { return this.media.isCapturing && !this.isMuted; }
  get text() { return this.endReason && reasonText(this.endReason); }
  get remoteStream() { return this.media.stream; }
  get localStream() { return this.media.microphone; }
  get peerConnection() { return this.media.peerConnection; }
  get seconds() { return Math.max(0, Math.floor(((this.endedAt ?? this.phone.seams.clock.now()) + this.#skew - (this.connectedAt ?? Infinity)) / 1000)); }

  /** Microphone and loudspeaker are for a call that is connected, or goes out. */
  get isHeard() { return !this.isHeld && (this.phase === "connected" || this.phase === "ready" || this.phase === "progress"); }

  #log(event, fields) { this.phone.seams.log(event, { call: this.id, ...fields }); }

  #shown() {
    this.phone.listen();
    this.changed();
  }

  #move(phase) {
    if (this.phase === phase) return;
    this.phase = phase;
    this.#log("call", { phase });
    this.#shown();
  }

  // — what the user wants —

  answer() {
    if (this.isOver || this.isOutgoing || this.tappedAt !== null) return;
    this.phone.holdOthers(this);
    this.tappedAt = this.phone.seams.clock.now();
    this.phone.tapped(this);
    if (this.#isUnable) return this.withdraw("mediaFailed");
    this.#move("answering");
    this.#age = this.#offer ? 0 : null;
    // nobody answers into silence: the tap goes out when the microphone is open
    this.#open().then((isOpen) => {
      if (!isOpen || this.isOver) return;
      this.#tap = true;
      this.#answerIfPrepared();
    });
  }

  /** False, and the call is over, if there is no microphone. */
  async #open() {
    try {
      await this.media.openMicrophone();
      return true;
    } catch (error) {
      if (this.isOver) return false;
      this.error = error;
      this.phone.devices.failed(error);
      this.failMedia();
      return false;
    }
  }

  decline() { this.end(); }

  end() {
    if (this.isOver) return;
    if (!this.isOutgoing && this.phase === "ringing" || !this.isOutgoing && !this.#offer) {
      this.phone.reject(this, { scope: "all", reason: "declined" });
    } else if (!this.isOutgoing || this.isStarted) {
      this.phone.ask("call.end", this.id, { reason: "localEnd" });
    }
    this.finish("localEnd");
  }

  /** Its media cannot be: before our answer has gone out others ring on, after it the other side is told. */
  failMedia() {
    if (this.isOver) return;
    if (!this.isOutgoing && (this.phase === "ringing" || this.#tap || !this.#wasAnswered)) return this.withdraw("mediaFailed");
    if (this.isStarted || !this.isOutgoing) this.phone.ask("call.end", this.id, { reason: "mediaFailed" });
    this.finish("mediaFailed");
  }
  #wasAnswered = false;

  /** This device cannot take the call: it is out, others ring on. */
  withdraw(reason) {
    this.phone.reject(this, { scope: "device", reason: "mediaFailed" });
    this.finish(reason);
  }

  mute(isOn) {
    if (this.isOver || this.isMuted === isOn) return;
    this.isMuted = isOn;
    this.media.mute(isOn);
    // at once here; the gateway hears the last of a burst
    const { timers } = this.phone;
    if (!timers.has(this.#muting)) timers.after(this.#muting, MUTE_BURST, () => this.#tellMute());
    this.changed();
  }

  /** What the gateway holds, by a snapshot: an operator's program may have muted the call meanwhile. What this page has yet to say is newer. */
  heardMuted(isOn, session) {
    if (this.phase !== "connected" || typeof isOn !== "boolean" || this.phone.timers.has(this.#muting) || session.isAsking("call.mute", this.id)) return;
    this.mute(isOn);
  }

  #tellMute() {
    this.phone.timers.stop(this.#muting);
    if (this.phase === "connected") this.phone.ask("call.mute", this.id, { on: this.isMuted, mode: "input" });
  }

  hold(isOn) {
    if (this.isOver) return;
    if (!isOn) this.phone.holdOthers(this);
    this.#hold.want(isOn);
  }

  async sendDigits(text) {
    const digits = text.toUpperCase().replace(/[^0-9A-D*#]/g, "").slice(0, 64);
    if (digits) await this.#request("call.dtmf", { digits, durMs: 160, gapMs: 80, kind: "tone" });
  }

  transfer(to) { return this.#request("call.transfer", { target: typeof to === "string" ? { k: "phone", h: to } : to, mode: "blind" }); }
  transferWith(other) { return this.#request("call.transfer", { withCall: other.id, mode: "attended" }); }

  /** All sides hear each other: those of this call, of the other, and of all that either is in a group with. */
  async merge(other) {
    if (this.capabilities?.group !== true || other.capabilities?.group !== true) throw new PhoneError("refused", "unsupported");
    await this.#request("call.group", { with: other.id });
    this.phone.merged(this, other);
  }

  async leaveGroup() {
    if (this.group === null) return;
    await this.#request("call.group", { with: null });
    this.phone.parted(this);
    this.phone.holdUnheard();
  }

  #request(t, d) {
    return new Promise((resolve, reject) => {
      const refused = (code) => reject(new PhoneError("refused", code));
      if (this.isOver || !this.phone.ask(t, this.id, d, (ok, failure) => (ok ? resolve() : refused(failure.code)))) refused("gone");
    });
  }

  play() { return this.media.play(); }

  async openMicrophone() {
    try {
      await this.media.openMicrophone();
      this.microphoneFault = null;
    } catch (error) {
      this.microphoneFault = error;
      this.phone.devices.failed(error);
      throw error;
    } finally {
      if (!this.isOver) this.changed();
    }
  }

  /** The permission was taken away, or the device unplugged: the call goes on without. */
  async #microphoneEnded() {
    this.#tellAudio();
    const isDenied = await this.phone.devices.isDenied();
    this.microphoneFault = new PhoneError(isDenied ? "microphoneDenied" : "microphoneAbsent");
    if (this.isOver) return;
    this.phone.devices.failed(this.microphoneFault);
    this.changed();
    if (!isDenied) this.phone.devices.replace(this);
  }

  // — what the gateway says —

  /** Beside who calls: of an offer, a snapshot's row, or a push. What is absent stays as it was. */
  describe({ to, pstn, parameters }) {
    if (!this.isOutgoing && typeof to?.h === "string") this.called = party(to);
    if (typeof pstn === "object" && pstn !== null) {
      this.attestation = ["A", "B", "C"].includes(pstn.attest) ? pstn.attest : null;
      this.isPrivate = pstn.privacy === true;
      this.diverted = (Array.isArray(pstn.diverted) ? pstn.diverted : []).filter((one) => typeof one?.h === "string").slice(0, DIVERSIONS).map(party);
    }
    if (parameters !== undefined && !this.isOutgoing) this.parameters = taken(parameters);
  }

  /** The offer, first or again. */
  offered(sdp, gen, ringing) {
    // a tap may have come before the offer
    if (this.isOutgoing || (this.phase !== "ringing" && (this.phase !== "answering" || this.#offer))) return;
    if (!(gen >= 1 && gen < 1_000_000)) return;
    this.phone.tell("call.ringing", this.id, ringing);
    // the same one, from the snapshot of a fresh session: our description holds, or is on its way
    if (this.#offer?.sdp === sdp && this.#offer.gen === gen && !this.#isUnable) return;
    this.#offer = { sdp, gen };
    this.#gen = gen;
    this.#readyGen = 0;
    this.#isPrepared = this.#isDescribed = this.#isUnable = false;
    this.#heldRestart = null;
    if (this.tappedAt !== null) this.#age ??= Math.round(this.phone.seams.clock.now() - this.tappedAt);
    this.media.answer(sdp, gen);
  }

  /** `call.answer` without a description that the gateway has taken would be refused. */
  #answerIfPrepared() {
    if (!this.#isPrepared || !this.#tap) return;
    this.#tap = null;
    this.#wasAnswered = true;
    this.phone.ask("call.answer", this.id, { ageMs: this.#age ?? 0 }, (d, failure) => { if (failure) this.#refused(failure); });
  }

  #refused(failure) {
    if (this.isOver) return;
    const reason = refusalReason(failure);
    if (["gone", "answeredElsewhere", "codec"].includes(failure.code)) this.finish(reason); else this.withdraw(reason);
  }

  receive(type, d) {
    if (this.isOver) return;
    switch (type) {
      case "call.connected": return this.#connected(d);
      case "call.cancel": case "call.ended": case "call.gone": return this.finish(endReason(d.reason));
      case "call.progress":
        // of a call that came in: the gateway makes it for this user, who has answered first
        if (this.phase === "connected" || (!this.isOutgoing && this.phase === "ringing")) return;
        this.progress = d.stage;
        this.hasEarlyMedia ||= d.stage === "early";
        this.#move(d.stage === "trying" ? "ready" : "progress");
        if (this.hasEarlyMedia) this.media.activate();
        return this.changed();
      case "call.update":
        if (typeof d.from?.h === "string") this.peer = party(d.from);
        this.capabilities = d.caps ?? this.capabilities;
        return this.changed();
      case "call.held":
        if (d.by === "remote") this.isHeldByPeer = d.on;
        // an operator's program did it: this page says the same to the gateway once more, and shows it
        if (d.by === "gateway") this.hold(d.on);
        return this.changed();
      case "call.muted": return this.mute(d.on);
      case "call.digit": return this.emit("digit", { digit: String(d.digit ?? "").slice(0, 1) });
      case "call.transferred": return this.emit("transferred", { status: d.status });
      case "quality":
        this.quality = d;
        this.emit("quality");
        return this.changed();
      case "media.restart": return this.#restart(d.gen, d.cause ?? "timeout");
    }
  }

  #connected(d) {
    // never without the user's tap: the microphone would be open
    if (this.phase === "connected" || (!this.isOutgoing && this.phase === "ringing")) return;
    this.#tap = null;
    this.#wasAnswered = true;
    this.connectedAt = Number.isFinite(d.at) ? d.at : this.phone.seams.clock.now() + this.phone.skew;
    this.#skew = this.phone.skew;
    this.codec = d.codec ?? null;
    this.#move("connected");
    this.media.activate();
    if (this.isMuted) this.#tellMute();
    this.#tellAudio();
  }

  // — an outgoing call —

  /** A session is there, and may dial. */
  dial() {
    if (this.isDialled || this.isOver || !this.isOutgoing || this.isTakenUp) return;
    this.isDialled = true;
    this.#opened = this.#open();
    this.media.offer(1);
  }
  #opened = null;

  async #start(sdp, gen) {
    if (!(await this.#opened) || this.isOver) return;
    this.isStarted = true;
    const d = { ...(this.from && { from: this.from }), to: this.peer, ...(this.account && { acct: this.account }), ...(this.location && { location: this.location }),
      ...(Object.keys(this.parameters).length && { parameters: this.parameters }), sdp, gen };
    this.phone.ask("call.start", this.id, d, (ok, failure) => {
      this.phone.answeredStart(this);
      if (this.isOver) return;
      if (ok) {
        this.#read(ok.to);
        return ok.sdp && this.media.apply(ok.sdp, 1);
      }
      const error = { emergency: "emergency", callerNumber: "callerNumber", auth: "loggedOut", tooMany: "tooManyCalls" }[failure.code];
      this.refusal = errorCode(failure);
      if (error) this.error = new PhoneError(error);
      this.finish(refusalReason(failure));
    });
  }

  /** What the gateway has read from the text that was dialled: known before it rings. */
  #read(to) {
    if (typeof to?.h !== "string" || !to.h || to.h === this.peer.h) return;
    this.peer = this.called = party({ ...this.peer, ...to });
    this.changed();
  }

  // — media —

  #described(sdp, gen) {
    if (this.isOver) return;
    if (this.#restartCause) {
      const cause = this.#restartCause;
      this.#restartCause = null;
      this.phone.ask("media.restart", this.id, { sdp, gen, cause }, (d, failure) => {
        if (this.isOver) return;
        if (d?.sdp) return this.media.apply(d.sdp, d.gen);
        // refused: the generation did not come about
        this.#gen = Math.max(1, this.#gen - 1);
        this.media.abandon(gen);
        if (this.isTakenUp && failure) this.failMedia();
      });
    } else if (!this.isOutgoing) {
      this.#isDescribed = true;
      this.phone.ask("call.prepare", this.id, { sdp, gen }, (d, failure) => this.#prepared(failure));
    } else {
      this.#start(sdp, gen);
    }
  }

  #prepared(failure) {
    if (this.isOver) return;
    // a description of an older offer, or a second one of this
    if (failure) return failure.code === "staleGen" || this.#isPrepared ? undefined : this.#refused(failure);
    this.#isPrepared = true;
    this.#answerIfPrepared();
    if (this.#heldRestart) this.#restart(this.#gen + 1, this.#heldRestart);
    this.#heldRestart = null;
  }

  #mediaConnected(gen, d) {
    if (this.isOver || gen !== this.#gen || this.#readyGen === gen) return;
    this.#readyGen = gen;
    this.#log("media connected", { gen, ...d });
    this.#watch.begin(this.phone.seams.clock.now());
    this.#reconnects(false);
    this.phone.tell("media.ready", this.id, { gen, ...d });
  }

  /** No description came about. Of a restart: what there is goes on. */
  #undescribed(gen, detail, error) {
    if (this.isOver) return;
    this.error ??= error;
    if (this.#restartCause) {
      this.#restartCause = null;
      this.#gen = Math.max(1, gen - 1);
      return this.isTakenUp ? this.failMedia() : undefined;
    }
    if (this.isOutgoing) return this.failMedia();
    this.#isUnable = true;
    this.phone.tell("media.fail", this.id, { gen: this.#gen, stage: "ice", detail });
    if (this.phase === "answering") this.withdraw("mediaFailed");
  }

  #mediaFailed(stage, detail) {
    if (this.isOver) return;
    this.#log("media failed", { stage, detail });
    // while the tap's deadline leaves time, media is made anew once instead of failing
    if (this.phase === "answering" && !this.#hasRestarted && this.#isDescribed
      && this.phone.seams.clock.now() + RESTART <= this.tappedAt + GATE) {
      this.#hasRestarted = true;
      return this.#restart(this.#gen + 1, "iceFailed");
    }
    // a connected call without a path goes on: the gateway says when it is lost
    if (stage === "ice" && this.phase === "connected") {
      this.#reconnects(true);
      return this.#remake("iceFailed");
    }
    this.phone.tell("media.fail", this.id, { gen: this.#gen, stage, detail });
  }

  /** Media anew, as soon as the gateway can be asked. */
  #remake(cause) {
    if (this.phone.hears(this) && !this.phone.isUnanswered(this)) {
      if (this.#mayRemake) return this.#restart(this.#gen + 1, cause);
    } else {
      this.phone.openSecond(this);
    }
    this.restartsOnline = true;
    // nobody says any more that it is lost
    if (this.hasNoSession) this.phone.watchCallWithoutSession(this);
  }

  get #mayRemake() { return this.phone.seams.clock.now() >= this.#remakeDue; }

  #reconnects(isOn) {
    if (!isOn) [this.restartsOnline, this.#remakes] = [false, 0];
    if (this.isReconnecting === isOn || this.phase !== "connected") return;
    this.isReconnecting = isOn;
    this.#log("reconnecting", { isOn });
    this.changed();
  }

  /** A network that dies says nothing: what the browser counts says it (`Watch`). */
  #sampled(stats) {
    if (this.phase !== "connected") return;
    const { clock } = this.phone.seams, isPaused = this.isHeld || this.isHeldByPeer;
    const { asks, lost, isSilent, isBack } = this.#watch.sample(clock.now(), stats, this.phone.lastFrameAt(this), isPaused);
    if (asks) this.phone.pingGateway(this);
    if (isBack) this.#reconnects(false);
    if (isSilent || lost) this.#reconnects(true);
    if (lost) {
      this.#remake(lost === "path" ? "timeout" : "net");
    } else {
      this.restartIfBroken();
    }
  }

  #restart(gen, cause) {
    if (gen !== this.#gen + 1 || this.#restartCause || this.isOver) return;
    // before the first description is accepted there is nothing to make anew
    if (!this.isOutgoing && !this.#isPrepared && !this.isTakenUp) { this.#heldRestart = cause; return; }
    this.#restartCause = cause;
    this.#gen = gen;
    this.#log("restart", { gen, cause });
    this.#remakeDue = this.phone.seams.clock.now() + Math.min(REMAKE * 2 ** this.#remakes++, REMAKE_LONGEST);
    this.media.offer(gen);
  }

  /** The browser says that it has no network. */
  wentOffline() {
    this.#watch.suspect();
    this.phone.pingGateway(this);
  }

  /** The network path has changed. */
  pathChanged() {
    this.restartsOnline = false;
    if (!this.isOutgoing || this.isDialled) this.#restart(this.#gen + 1, "net");
  }

  restartIfBroken() { if (this.restartsOnline && this.#mayRemake && this.phone.hears(this)) this.pathChanged(); }

  /** What of the audio really runs, for a connected call. A browser that has not said yet whether it plays says nothing. */
  #tellAudio() {
    if (this.phase !== "connected" || (this.isListening && this.media.isPending)) return;
    const [capture, playout] = this.isListening ? [this.media.isCapturing, this.media.isPlaying] : [false, false];
    const told = `${capture}${playout}`;
    if (told === (this.#told || "falsefalse")) return;
    this.#told = told;
    this.phone.tell("media.active", this.id, { capture, playout });
  }

  /** Of the call that is heard: one on hold has nothing to complain of, and one that reconnects says so. */
  #judged(stats, values, last) {
    const isJudged = this.phase === "connected" && this.isListening && !this.isHeld && !this.isReconnecting && !this.isTakenUp;
    const isNews = isJudged
      ? this.#warnings.judge(stats, values, last, { isHearing: !this.isHeldByPeer, isTalking: this.isCapturing && !this.isHeldByPeer }) : this.#warnings.clear();
    if (!isNews) return;
    this.#log("warnings", { on: [...this.#warnings.on] });
    const before = this.warnings;
    this.warnings = [...this.#warnings.on].map(warning);
    const isIn = (list, { text }) => list.some((one) => one.text === text);
    for (const one of this.warnings) if (!isIn(before, one)) this.emit("warning", { warning: one, isOn: true });
    for (const one of before) if (!isIn(this.warnings, one)) this.emit("warning", { warning: one, isOn: false });
    if (!this.isOver) this.changed();
  }

  listenTo(isOn) {
    if (this.isListening === isOn) return;
    this.isListening = isOn;
    this.media.listen(isOn);
  }

  #counted(values) {
    // what the browser counts as lost are gaps between packets: of nothing at all it counts none
    const { loss } = values;
    if (this.isReconnecting && values.packets === this.statistics?.packets) values.loss = 1;
    this.statistics = values;
    this.codec ??= values.codec; // of a call that was connected before this page was loaded
    this.emit("statistics");
    if (this.phase === "connected" && ++this.#count % 5 === 0) {
      const { roundTripMs, jitterMs, bytes, concealedMs, codec } = values;
      this.phone.tell("stats", this.id, {
        ...(roundTripMs !== null && { rttMs: roundTripMs }), ...(jitterMs !== null && { jitterMs }), loss, bytes, plc: concealedMs,
        ...(codec && { codec }) });
    }
  }

  /** An earlier load of this page had it: a new peer connection goes on where that one was (docs/reference/protocol.md, Reconnect and handover). */
  takeUp(row, tell) {
    this.#offer = { sdp: "", gen: row.gen };
    this.#gen = row.gen;
    this.#isPrepared = this.#wasAnswered = this.isDialled = this.isStarted = this.isTakenUp = true;
    this.phase = row.state === "held" ? "connected" : row.state;
    this.tappedAt = this.startedAt;
    this.#hold.isOn = row.state === "held";
    if (this.phase === "connected") this.connectedAt = row.at;
    if (row.muted === true) {
      this.isMuted = true;
      this.media.mute(true);
    }
    this.#skew = this.phone.skew;
    tell();
    if (this.isOver) return;
    if (this.phase === "connected") this.media.activate();
    this.phone.listen();
    // the other side is heard before the microphone is there: the browser may ask the person first
    this.#restart(this.#gen + 1, "net");
    this.openMicrophone().catch(() => {}).finally(() => {
      this.isTakenUp = false;
      if (!this.isOver) this.changed();
    });
  }

  // — the end —

  finish(reason) {
    if (this.isOver) return;
    // the user gave up before anybody answered: `localEnd` on the wire, as each end of one's own
    this.endReason = reason === "localEnd" && this.isOutgoing && this.connectedAt === null ? "cancelled" : reason;
    this.phase = "ended";
    this.endedAt = this.phone.seams.clock.now();
    this.warnings = [];
    this.#log("ended", { reason: this.endReason, ...(this.error && { error: this.error.message }) });
    this.phone.timers.stop(this.#muting);
    this.media.close();
    this.phone.ended(this);
    this.changed();
  }
}
