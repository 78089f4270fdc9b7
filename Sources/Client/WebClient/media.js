// The audio of one call: a peer connection and, while a new path is made, the next one beside it; microphone, player, statistics.
import { Timers } from "./events.js";
import { PhoneError, microphoneError } from "./texts.js";

/** ICE comes back by itself from less. */
const LOST = 1_500;
const SECOND = 1_000;

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

  /** `on`: described(sdp, gen) or undescribed(gen, detail, error), connected(gen, d), failed(stage, detail), audio(), ended(), statistics(values). */
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
      if (path === this.#current && pc.iceConnectionState === "disconnected") {
        this.#timers.after("lost", LOST, () => this.on.failed("ice", "disconnected"));
      }
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

  /** Each second from now on. */
  #count() {
    if (this.#timers.has("count")) return;
    const round = async () => {
      const stats = await this.#stats();
      if (this.isClosed) return;
      this.#timers.after("count", SECOND, round);
      const values = measured(stats, this.last);
      if (!values) return;
      this.last = values;
      this.on.statistics(values);
    };
    this.#timers.after("count", SECOND, round);
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
  const milliseconds = (seconds) => (seconds === undefined ? null : Math.round(seconds * 1000));
  return {
    roundTripMs: milliseconds(rtt), jitterMs: milliseconds(inbound.jitter),
    bufferMs: inbound.jitterBufferEmittedCount ? milliseconds(inbound.jitterBufferDelay / inbound.jitterBufferEmittedCount) : null,
    loss: lost > 0 && lost + got > 0 ? Math.min(1, lost / (lost + got)) : 0, packets, packetsLost, bytes,
    concealedMs: Math.round((1000 * (inbound.concealedSamples ?? 0)) / (codec?.clockRate ?? 48_000)),
    codec: codec?.mimeType?.split("/")[1]?.toLowerCase() ?? null, pair: pair ?? null,
  };
}
