// The audio of one call: a peer connection and, while a new path is made, the next one beside it; microphone, player, statistics.
import { Timers } from "./events.js";
import { PhoneError, microphoneError } from "./texts.js";

/** ICE comes back by itself from less. */
const LOST = 1_500;
const SECOND = 1_000, SAMPLE = 500;
/** What `Watch` waits for: see there. `STEADY` packets a second are a stream without pauses. */
const QUIET = 1_500, ANSWER = 1_000, SPARSE = 4_000, PATH = 6_000, STEADY = 10, STOOD_STILL = 2_000, SUSPECTED = 1_000;

export class Media {
  /** The newest, and the one that is heard until the newest has its path. */
  #next = null;
  #current = null;
  #activated = false;
  #listening = false;
  #wanted = null;
  /** The next path goes over TURN alone: the last one did not come about, and every way was open to it. */
  #relays = false;
  #timers;
  #player;
  #playing = null;

  /** `on`: described(sdp, gen) or undescribed(gen, detail, error), connected(gen, d), failed(stage, detail), path(isDisconnected), sampled(stats), audio(), ended(), statistics(values),
   *  judged(stats, values, last): each second, also where there are no values. */
  constructor(seams, on) {
    Object.assign(this, { seams, on, microphone: null, stream: null, isPlaying: false, isBlocked: false, isPending: false });
    this.#timers = new Timers(seams.clock);
    this.#player = seams.player();
  }

  get peerConnection() { return this.#current?.pc ?? this.#next?.pc ?? null; }
  get isCapturing() { return this.#listening && this.#track?.readyState === "live"; }
  get #track() { return this.microphone?.getAudioTracks()[0] ?? null; }

  // — the peer connection —

  #make(gen) {
    const path = { gen, stream: null, sender: null };
    const iceServers = this.seams.iceServers();
    const iceTransportPolicy = this.#relays && iceServers.some(isTURN) ? "relay" : "all";
    const pc = path.pc = new this.seams.RTCPeerConnection({ iceServers, iceTransportPolicy, bundlePolicy: "max-bundle" });
    pc.ontrack = ({ track, streams }) => {
      path.stream = streams[0] ?? new this.seams.MediaStream([track]);
      if (path === this.#current) this.#use(path);
    };
    pc.onconnectionstatechange = () => {
      if (pc.connectionState === "connected") this.#connected(path);
      if (pc.connectionState === "failed" && path === (this.#next ?? this.#current)) {
        // a firewall may let checks pass and nothing after them
        this.#relays = iceTransportPolicy === "all";
        this.on.failed(pc.iceConnectionState === "failed" ? "ice" : "dtls", "");
      }
    };
    pc.oniceconnectionstatechange = () => {
      this.#timers.stop("lost");
      if (path !== this.#current) return;
      const isDisconnected = pc.iceConnectionState === "disconnected";
      if (isDisconnected) this.#timers.after("lost", LOST, () => this.on.failed("ice", "disconnected"));
      if (isDisconnected || ["connected", "completed"].includes(pc.iceConnectionState)) this.on.path(isDisconnected);
    };
    this.#drop(this.#next);
    this.#next = path;
    if (!this.#current) this.#current = path;
    return path;
  }

  #drop(path) {
    if (!path || path === this.#current) return;
    const { pc } = path;
    pc.ontrack = pc.onconnectionstatechange = pc.oniceconnectionstatechange = null;
    pc.close();
  }

  /** Describes ourselves as the answer to this offer. ICE and DTLS run then; no microphone is open yet. */
  async answer(sdp, gen) {
    await this.#describe(gen, async (path) => {
      await path.pc.setRemoteDescription({ type: "offer", sdp });
      const transceiver = path.pc.getTransceivers()[0];
      transceiver.direction = "sendrecv";
      return transceiver;
    });
  }

  /** The first offer of an outgoing call, or one from a new peer connection beside the one there is. */
  async offer(gen) {
    await this.#describe(gen, async (path) => path.pc.addTransceiver("audio", { direction: "sendrecv" }));
  }

  async #describe(gen, prepare) {
    let path;
    try {
      path = this.#make(gen);
      path.sender = (await prepare(path)).sender;
      if (this.#track) await path.sender.replaceTrack(this.#track);
      await path.pc.setLocalDescription();
      if (path === this.#next && !this.isClosed) this.on.described(path.pc.localDescription.sdp, gen);
    } catch (error) {
      if (this.isClosed || (path && path !== this.#next)) return;
      // no peer connection at all: the browser has no more
      this.#drop(path);
      if (path) this.#next = this.#current;
      this.on.undescribed(gen, String(error?.message ?? error), path ? null : new PhoneError("noResources", error?.message));
    }
  }

  async apply(sdp, gen) {
    const path = this.#next;
    if (path?.gen !== gen || this.isClosed) return;
    try {
      await path.pc.setRemoteDescription({ type: "answer", sdp });
    } catch (error) {
      if (path === this.#next && !this.isClosed) this.on.failed("ice", String(error?.message ?? error));
    }
  }

  /** The gateway refused it: what was there goes on. */
  abandon(gen) {
    if (this.#next?.gen !== gen || this.#next === this.#current) return;
    this.#drop(this.#next);
    this.#next = this.#current;
  }

  async #connected(path) {
    if (path !== this.#next || this.isClosed) return;
    this.#relays = false;
    if (path !== this.#current) {
      const last = this.#current;
      this.#current = path;
      this.#drop(last);
      if (path.stream) this.#use(path);
    }
    const stats = await this.#stats();
    if (path !== this.#current || this.isClosed) return;
    const transport = stats.find((s) => s.type === "transport");
    const { pair, rtt } = chosen(stats);
    this.on.connected(path.gen, {
      ...(pair && { pair }), ...(rtt !== undefined && { rttMs: Math.round(rtt * 1000) }),
      dtls: transport?.srtpCipher ?? transport?.dtlsState ?? "connected",
    });
  }

  // — what is heard —

  #use(path) {
    this.stream = path.stream;
    this.#sound();
  }

  /** Audio may flow: the call is connected, or its early media is heard. */
  activate() {
    this.#activated = true;
    this.#count();
    this.#sound();
  }

  /** Microphone and loudspeaker belong to this call, or to none or another. */
  listen(isOn) {
    if (this.#listening === isOn || this.isClosed) return;
    this.#listening = isOn;
    // until the browser has said whether it plays
    this.isPending = isOn;
    this.#enable();
    if (isOn) return this.#sound();
    this.#silence();
    this.on.audio();
  }

  #silence() {
    this.#wanted = null;
    this.#playing = null;
    this.#player.stop();
    this.isPlaying = this.isPending = false;
  }

  /** Plays what there is; honest about it: a browser that refuses is silent. */
  async #sound() {
    const { stream } = this;
    if (!this.#activated || !this.#listening || !stream || this.isClosed) return;
    if (this.#playing === stream) return;
    this.#playing = stream;
    this.isPending = true;
    const turn = this.#wanted = {};
    const name = await this.#player.play(stream).then(() => null, (error) => error?.name ?? "Error");
    if (turn !== this.#wanted || this.isClosed) return;
    this.isPending = false;
    this.isPlaying = name === null;
    this.isBlocked = name === "NotAllowedError";
    this.on.audio();
  }

  /** From a click. */
  async play() {
    this.#playing = null;
    await this.#sound();
  }

  async useLoudspeaker(id) {
    if (!this.#player.setSinkId) throw new PhoneError("loudspeakerAbsent");
    try { await this.#player.setSinkId(id ?? ""); } catch (error) { throw new PhoneError("loudspeakerAbsent", error?.message); }
  }

  // — what is said —

  mute(isOn) {
    this.isMuted = isOn;
    this.#enable();
  }

  #enable() {
    // before the call is heard the gateway drops what is said
    for (const track of this.microphone?.getAudioTracks() ?? []) track.enabled = !this.isMuted && (this.#listening || !this.#activated);
  }

  /** Opens the microphone, or another one in its place. Throws a PhoneError, and what was open stays. */
  async openMicrophone() {
    let stream;
    try { stream = await this.seams.microphone(); } catch (error) { throw microphoneError(error); }
    const track = stream.getAudioTracks()[0];
    // it ended while the person was asked
    if (this.isClosed || !track) {
      for (const one of stream.getTracks()) one.stop();
      if (!track) throw new PhoneError("microphoneAbsent");
      return;
    }
    const last = this.microphone;
    this.microphone = stream;
    this.#enable();
    await Promise.all([this.#next, this.#current].map((path) => path?.sender?.replaceTrack(track)));
    stop(last);
    if (this.isClosed) return stop(stream);
    track.onended = () => this.on.ended();
    this.on.audio();
  }

  // — numbers —

  async #stats() {
    try { return [...(await this.peerConnection.getStats()).values()]; } catch { return []; }
  }

  #isCounting = false;

  /** Samples twice a second from now on, statistics each second. */
  #count() {
    if (this.#isCounting) return;
    this.#isCounting = true;
    const { clock } = this.seams;
    let judgedAt = clock.now();
    const round = async () => {
      const stats = await this.#stats();
      if (this.isClosed) return;
      this.#timers.after("count", SAMPLE, round);
      this.on.sampled(stats);
      if (this.isClosed || clock.now() - judgedAt < SECOND) return;
      judgedAt = clock.now();
      const values = measured(stats, this.last);
      this.on.judged(stats, values, this.last);
      if (!values) return;
      this.last = values;
      this.on.statistics(values);
    };
    this.#timers.after("count", SAMPLE, round);
  }

  close() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#timers.stop();
    const paths = new Set([this.#next, this.#current]);
    this.#next = this.#current = null;
    for (const path of paths) this.#drop(path);
    if (this.#activated) this.#silence();
    stop(this.microphone);
    this.microphone = this.stream = null;
  }
}

function stop(stream) {
  for (const track of stream?.getTracks() ?? []) {
    track.onended = null;
    track.stop();
  }
}

/** RTCIceServer's `urls` are a text or a list of texts. */
function isTURN({ urls }) { return [].concat(urls).some((url) => String(url).startsWith("turn")); }

function chosen(stats) {
  const found = stats.find((s) => s.type === "candidate-pair" && s.nominated && s.state === "succeeded");
  const kind = (id) => stats.find((s) => s.id === id)?.candidateType ?? "unknown";
  return { rtt: found?.currentRoundTripTime, pair: found && { local: kind(found.localCandidateId), remote: kind(found.remoteCandidateId) } };
}

/** `Statistics`, with what was counted before; null: nothing has come in yet. */
function measured(stats, last) {
  const inbound = stats.find((s) => s.type === "inbound-rtp");
  if (!inbound) return null;
  const { rtt, pair } = chosen(stats);
  const { packetsReceived: packets = 0, packetsLost = 0, bytesReceived: bytes = 0 } = inbound;
  const codec = stats.find((s) => s.id === inbound.codecId);
  const [lost, got] = [packetsLost - (last?.packetsLost ?? 0), packets - (last?.packets ?? 0)];
  const milliseconds = (seconds) => (Number.isFinite(seconds) ? Math.round(seconds * 1000) : null);
  return {
    roundTripMs: milliseconds(rtt), jitterMs: milliseconds(inbound.jitter),
    bufferMs: inbound.jitterBufferEmittedCount ? milliseconds(inbound.jitterBufferDelay / inbound.jitterBufferEmittedCount) : null,
    loss: lost > 0 && lost + got > 0 ? Math.min(1, lost / (lost + got)) : 0, packets, packetsLost, bytes,
    concealedMs: Math.round((1000 * (inbound.concealedSamples ?? 0)) / (codec?.clockRate ?? 48_000)),
    codec: codec?.mimeType?.split("/")[1]?.toLowerCase() ?? null, pair: pair ?? null,
  };
}

/** Counters that move with what comes from the gateway: RTP, RTCP, and answers to the browser's own STUN checks. */
const HEARD = {
  "inbound-rtp": ["packetsReceived"], "remote-inbound-rtp": ["roundTripTimeMeasurements"], "remote-outbound-rtp": ["reportsSent", "packetsSent"],
  "candidate-pair": ["packetsReceived", "bytesReceived", "responsesReceived"], transport: ["packetsReceived", "bytesReceived"],
};

/** All of them; null where the browser counts none. */
function heard(stats) {
  const all = stats.flatMap((one) => (HEARD[one.type] ?? []).map((name) => one[name])).filter(Number.isFinite);
  return all.length ? all.reduce((sum, value) => sum + value, 0) : null;
}

/**
 * Whether anything still comes from the gateway, which sends RTCP each 0.5 to 1.5 s whatever the call does (docs/reference/protocol.md, Media on the app leg): on
 * hold, in a pause of DTX and muted there is less to hear, never nothing.
 *
 * | nothing for | and                                          |                                                     |
 * |-------------|----------------------------------------------|-----------------------------------------------------|
 * | 1.5 s       |                                              | `asks`: the socket is asked; the browser's ICE checks by itself |
 * | 2.5 s       | the socket is silent, there was a stream     | `lost`: `gateway`                                   |
 * | 4 s         | the socket is silent, there was a pause      | `lost`: `gateway`                                   |
 * | 6 s         | the socket answers                           | `lost`: `path`                                      |
 *
 * `isSilent` is what a person is to be shown: after 2.5 s of nothing where there was a stream, whether the socket answers or not; after 1 s once the
 * browser says that it is offline or its path disconnected; in a pause together with `lost`.
 *
 * Reports alone may be lost: four in a row, with a ping that TCP cannot deliver meanwhile, is what a network that loses a fifth does not do in hours.
 */
export class Watch {
  #count = null;
  #packets = 0;
  #rates = [0, 0];
  #lastAt = 0;
  #sampledAt = -Infinity;
  #askedAt = null;
  #lost = null;
  #isSilent = false;
  /** Samples that may still count what came before the browser said that it is offline. */
  #suspicion = 0;

  /** The browser itself says that nothing can come. */
  suspect() { this.#suspicion = 2; }

  /** `socketAt`: when the socket was heard last; `isPaused`: on hold, by whomever. `{asks, lost, isSilent, isBack}`. */
  sample(now, stats, socketAt, isPaused) {
    const count = heard(stats), packets = stats.find((one) => one.type === "inbound-rtp")?.packetsReceived ?? 0;
    const time = now - this.#sampledAt;
    this.#sampledAt = now;
    // timers stood still: what came meanwhile is not known
    if (time > STOOD_STILL || count === null) this.begin(now);
    if (count === null) return { asks: false, lost: null, isSilent: false, isBack: false };
    if (count !== this.#count) {
      this.#rates = [this.#rates[1], ((packets - this.#packets) * 1000) / time];
      [this.#count, this.#packets] = [count, packets];
      const isBack = this.#lost !== null || this.#isSilent;
      this.#suspicion = Math.max(0, this.#suspicion - 1);
      this.begin(now);
      return { asks: false, lost: null, isSilent: false, isBack };
    }
    const quiet = now - this.#lastAt;
    const asks = quiet >= QUIET && this.#askedAt === null;
    if (asks) this.#askedAt = now;
    const isAnswered = this.#askedAt !== null && socketAt >= this.#askedAt;
    const isSteady = !isPaused && Math.max(...this.#rates) >= STEADY;
    if (this.#askedAt !== null && quiet >= (isAnswered ? PATH : isSteady ? QUIET + ANSWER : SPARSE)) this.#lost = isAnswered ? "path" : "gateway";
    const isStream = !isPaused && Math.min(...this.#rates) >= STEADY;
    this.#isSilent ||= quiet >= (this.#suspicion > 0 ? SUSPECTED : isStream ? QUIET + ANSWER : PATH);
    return { asks, lost: this.#lost, isSilent: this.#isSilent, isBack: false };
  }

  /** From now on: a new path has its own time. */
  begin(now) {
    this.#lastAt = now;
    this.#askedAt = this.#lost = null;
    this.#isSilent = false;
  }
}

/** What is wrong with a call's audio: after so many seconds in a row that are bad, and until as many good ones have been (`TABLE`). */
const LOSS = [0.05, 0.02], ROUND_TRIP = [400, 300], GONE = 0.9;
/** Energy of a second's samples (RMS of -50 and -45 dBFS, squared): the loudest of all that time counts, since who listens is silent. */
const QUIET_VOICE = [1e-5, 3e-5];
const TABLE = { loss: [3, 5], roundTrip: [3, 5], oneWayIn: [5, 1], oneWayOut: [5, 2], microphoneLow: [30, 1] };

export class Warnings {
  #bad = {};
  #good = {};
  #losses = [];
  #energy = null;
  /** The names of TABLE that hold. */
  on = new Set();

  /** Once a second. True: `on` has changed. `isHearing`, `isTalking`: something should come, and go. */
  judge(stats, values, last, { isHearing, isTalking }) {
    const before = [...this.on].join();
    const remote = stats.find((one) => one.type === "remote-inbound-rtp"), up = Number.isFinite(remote?.fractionLost) ? remote.fractionLost : null;
    this.#losses = [...this.#losses, values?.loss ?? 0].slice(-5);
    const loss = Math.max(this.#losses.reduce((sum, one) => sum + one, 0) / this.#losses.length, up !== null && up < GONE ? up : 0);
    this.#step("loss", loss >= LOSS[0], loss < LOSS[1]);
    const trip = values?.roundTripMs ?? (Number.isFinite(remote?.roundTripTime) ? 1000 * remote.roundTripTime : null);
    this.#step("roundTrip", trip !== null && trip >= ROUND_TRIP[0], trip === null || trip < ROUND_TRIP[1]);
    const hasCome = (values?.packets ?? 0) !== (last?.packets ?? 0);
    this.#step("oneWayIn", isHearing && stats.length > 0 && !hasCome, !isHearing || hasCome);
    this.#step("oneWayOut", isTalking && up !== null && up >= GONE, !isTalking || up === null || up < GONE);
    const energy = isTalking ? this.#spoken(stats.find((one) => one.type === "media-source" && one.kind === "audio")) : null;
    this.#step("microphoneLow", energy !== null && energy < QUIET_VOICE[0], !isTalking || (energy !== null && energy >= QUIET_VOICE[1]));
    return [...this.on].join() !== before;
  }

  /** Mean energy since the last second; null: not known. */
  #spoken(source) {
    const { totalAudioEnergy: sum, totalSamplesDuration: time } = source ?? {}, last = this.#energy;
    this.#energy = Number.isFinite(sum) && Number.isFinite(time) ? { sum, time } : null;
    return this.#energy && last && time > last.time && sum >= last.sum ? (sum - last.sum) / (time - last.time) : null;
  }

  /** Between bad and good nothing is said. What is good in between begins the bad ones anew. */
  #step(name, isBad, isGood) {
    const [after, until] = TABLE[name];
    this.#bad[name] = isBad ? (this.#bad[name] ?? 0) + 1 : isGood ? 0 : this.#bad[name] ?? 0;
    this.#good[name] = isGood ? (this.#good[name] ?? 0) + 1 : 0;
    if (this.#bad[name] >= after) this.on.add(name);
    if (this.#good[name] >= until) this.on.delete(name);
  }

  /** True: there were some. */
  clear() {
    const had = this.on.size > 0;
    [this.#bad, this.#good, this.#losses, this.#energy] = [{}, {}, [], null];
    this.on.clear();
    return had;
  }
}
