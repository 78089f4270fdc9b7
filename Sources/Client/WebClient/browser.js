// What a browser gives a phone, each part of which an app may give instead.

/** What the browser gives, unless the app gives another, or null for none. Nothing is touched before a Phone is made. */
export function seamsOf(options) {
  const g = globalThis, seams = { MessageChannel: g.MessageChannel };
  const take = (from, ...names) => { for (const name of names) seams[name] = options[name] === undefined ? from?.[name] : options[name]; };
  const random = options.random ?? Math.random;
  take(g, "WebSocket", "RTCPeerConnection", "MediaStream", "document");
  take(g.navigator, "mediaDevices", "permissions", "connection");
  take({
    window: g.document && g, random, player, testAudio, fetch: (...all) => g.fetch(...all), uuid: () => g.crypto?.randomUUID?.() ?? uuid(random),
    // Unix time that no clock change moves
    clock: { now: () => g.performance.timeOrigin + g.performance.now(), setTimeout: (f, ms) => g.setTimeout(f, ms), clearTimeout: (t) => g.clearTimeout(t) },
    get storage() { try { return g.localStorage; } catch { return null; } },
  }, "window", "random", "player", "testAudio", "fetch", "uuid", "clock", "storage");
  /** To the app's sink, which breaks nothing; never a token, a description or what a message holds. */
  seams.log = options.log ? (event, fields = {}) => { try { options.log({ at: seams.clock.now(), event, ...fields }); } catch { /* the app's */ } } : () => {};
  /** Adds a listener; the result removes it. */
  seams.listen = (target, type, f) => {
    target.addEventListener(type, f);
    return () => target.removeEventListener(type, f);
  };
  return seams;
}

/** For pages that are no secure context, and old Nodes. */
const uuid = (random) => "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, () => Math.floor(random() * 16).toString(16));

/** An audio element. */
function player() {
  const audio = new globalThis.Audio();
  return {
    play(stream) { audio.srcObject = stream; return audio.play(); },
    stop() { audio.pause(); audio.srcObject = null; },
    setSinkId: audio.setSinkId && ((id) => audio.setSinkId(id)),
  };
}

/** What a test call sends in place of a voice: a tone that comes and goes, as speech does, in no microphone and no loudspeaker. Null without Web Audio. */
function testAudio() {
  const { AudioContext, Audio } = globalThis;
  if (!AudioContext || !Audio) return null;
  const context = new AudioContext(), out = context.createMediaStreamDestination(), audio = new Audio();
  const [tone, beat] = [context.createOscillator(), context.createOscillator()], [level, depth] = [context.createGain(), context.createGain()];
  Object.assign(tone.frequency, { value: 440 });
  Object.assign(beat.frequency, { value: 3 });
  level.gain.value = depth.gain.value = 0.15;
  beat.connect(depth).connect(level.gain);
  tone.connect(level).connect(out);
  tone.start();
  beat.start();
  // without a click before it a browser may keep it suspended
  context.resume?.().catch(() => {});
  audio.muted = true;
  return {
    track: out.stream.getAudioTracks()[0],
    get isRunning() { return context.state === "running"; },
    // a browser decodes what an element has, even one that is muted
    listen(stream) { audio.srcObject = stream; audio.play().catch(() => {}); },
    stop() {
      audio.pause();
      audio.srcObject = null;
      for (const track of out.stream.getTracks()) track.stop();
      context.close().catch(() => {});
    },
  };
}

const ANSWER_TIME = 5_000;
const isLoopback = ({ hostname }) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);

/**
 * Why no WebSocket came about, as far as a browser lets one know; the `reason` of a PhoneError `unreachable`. A WebSocket says nothing of it, so a plain
 * request for `ready` beside it is asked: the gateway answers `{"ready": true}`, and may say what it saw of the page (`page`, `host`).
 */
export async function likelyCause(address, { window, fetch, clock }) {
  let url;
  try { url = new URL(address); } catch { return "address"; }
  if (url.protocol !== "ws:" && url.protocol !== "wss:") return "address";
  if (window?.navigator?.onLine === false && !isLoopback(url)) return "offline";
  if (window?.location?.protocol === "https:" && url.protocol === "ws:" && !isLoopback(url)) return "insecure";
  const beside = new URL(/\/v1\/connect$/.test(url.pathname) ? "ready" : "/v1/ready", address.replace(/^ws/i, "http")).href;
  const get = (mode) => {
    let timer;
    const late = new Promise((_, reject) => { timer = clock.setTimeout(() => reject(new Error("no answer")), ANSWER_TIME); });
    const asked = Promise.resolve().then(() => fetch(beside, { mode, cache: "no-store", credentials: "omit" })).then((answer) => answer ?? Promise.reject(new Error("no answer")));
    return Promise.race([asked, late]).finally(() => clock.clearTimeout(timer));
  };
  let answer;
  // who answers and lets no page read it is there
  try { answer = await get("cors"); } catch { return get("no-cors").then(() => "closed", () => "nothing"); }
  const { ready, page, host } = (await Promise.resolve(answer.json?.()).catch(() => null)) ?? {};
  if (typeof ready !== "boolean") return "notGateway";
  if (!ready) return "notReady";
  if (page === false) return "origin";
  return typeof host === "string" && host.toLowerCase() !== url.host ? "host" : "noWebSocket";
}
