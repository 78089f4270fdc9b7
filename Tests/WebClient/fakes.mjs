// What a browser gives, on a virtual clock: sockets, peer connections, microphone, player. Nothing here waits.

/** Until nothing is left to do at this moment. */
export async function settle() { for (let turn = 0; turn < 4; turn++) await new Promise((done) => setImmediate(done)); }

export class Clock {
  time = 0;
  #timers = new Map();
  #last = 0;
  constructor(start = 1_700_000_000_000) { this.start = start; }
  now() { return this.start + this.time; }
  setTimeout(f, ms) {
    this.#timers.set(++this.#last, { at: this.time + Math.max(0, ms), f, number: this.#last });
    return this.#last;
  }
  clearTimeout(timer) { this.#timers.delete(timer); }
  get count() { return this.#timers.size; }

  /** Runs what is due until then, in its order. */
  async advance(to) {
    await settle();
    for (let turns = 0; ; turns++) {
      if (turns > 10_000) throw new Error("a timer does not move");
      const [next] = [...this.#timers.values()].filter((timer) => timer.at <= to).sort((a, b) => a.at - b.at || a.number - b.number);
      if (!next) break;
      this.#timers.delete(next.number);
      this.time = Math.max(this.time, next.at);
      next.f();
      await settle();
    }
    this.time = to;
  }
  /** Time passes and no timer runs: a tab that is frozen. */
  freeze(ms) { this.time += ms; }
}

export class Track extends EventTarget {
  kind = "audio";
  enabled = true;
  readyState = "live";
  onended = null;
  stop() { this.readyState = "ended"; }
  /** Taken away by the browser, which says so. */
  end() { this.readyState = "ended"; this.onended?.(new Event("ended")); }
}

export class Stream {
  constructor(tracks = [new Track()]) { this.tracks = tracks; }
  getTracks() { return this.tracks; }
  getAudioTracks() { return this.tracks; }
}

/** An RTCPeerConnection that describes itself when it is told to; `world` hears what is asked of it. */
export function peerConnections(world) {
  return class Peer {
    connectionState = "new";
    iceConnectionState = "new";
    signalingState = "stable";
    localDescription = null;
    #described = null;
    #transceivers = [];
    constructor(configuration) {
      this.configuration = configuration;
      world.made?.(this);
      (world.peers ??= []).push(this);
    }
    #add(direction) {
      const peer = this;
      const sender = { track: null, async replaceTrack(track) { if (peer.isClosed) throw new DOMException("closed", "InvalidStateError"); this.track = track; } };
      const transceiver = { direction, sender };
      this.#transceivers.push(transceiver);
      return transceiver;
    }
    addTransceiver(kind, { direction }) {
      world.offered?.(this);
      return this.#add(direction);
    }
    getTransceivers() { return this.#transceivers; }
    async setRemoteDescription({ type, sdp }) {
      if (this.isClosed) throw new DOMException("closed", "InvalidStateError");
      world.remote?.(this, type, sdp);
      if (world.refuses?.(sdp)) throw new DOMException("not SDP", "OperationError");
      if (type === "offer") this.#add("recvonly");
      this.ontrack?.({ track: new Track(), streams: [new Stream()] });
    }
    setLocalDescription() {
      return new Promise((done) => {
        this.#described = done;
        if (world.describesAtOnce) this.describe("v=0");
      });
    }
    describe(sdp) {
      this.localDescription = { sdp };
      this.#described?.();
      this.#described = null;
    }
    become(state, ice = state) {
      this.iceConnectionState = ice;
      this.oniceconnectionstatechange?.();
      this.connectionState = state;
      this.onconnectionstatechange?.();
    }
    async getStats() { return new Map(Object.entries(world.stats ?? { t: { type: "transport", srtpCipher: "AEAD_AES_128_GCM" } })); }
    close() { this.isClosed = true; this.connectionState = "closed"; }
  };
}

/** `world.connected(socket)` and `world.sent(socket, text)` hear it; the test calls `open`, `say` and `end`. */
export function webSockets(world) {
  return class Socket {
    readyState = 0;
    constructor(url, protocol) {
      Object.assign(this, { url, protocol });
      (world.sockets ??= []).push(this);
      world.connected?.(this);
    }
    send(text) { world.sent?.(this, text); }
    /** As a browser: only 1000 and 3000 to 4999 may be said. */
    close(code) {
      if (code !== undefined && code !== 1000 && !(code >= 3000 && code < 5000)) throw new DOMException(String(code), "InvalidAccessError");
      if (this.readyState >= 2) return;
      this.readyState = 2;
      world.closed?.(this, code);
    }
    open() { this.readyState = 1; this.onopen?.({}); }
    say(data) { this.onmessage?.({ data: typeof data === "string" ? data : JSON.stringify(data) }); }
    end(code = 1006) { this.readyState = 3; this.onclose?.({ code }); }
  };
}

/** Plays when `world.plays` is true, refuses with its name when it is a text, else waits for `world.run()`. */
export function players(world) {
  const waiting = [];
  world.run = () => { for (const done of waiting.splice(0)) done(); };
  return () => ({
    stream: null,
    play(stream) {
      this.stream = stream;
      world.heard = stream;
      if (typeof world.plays === "string") return Promise.reject(new DOMException("no click", world.plays));
      return world.plays ? Promise.resolve() : new Promise((done) => waiting.push(done));
    },
    stop() { this.stream = null; },
    async setSinkId(id) { if (world.refusesSink) throw new DOMException("gone", "NotFoundError"); world.sink = id; },
  });
}
