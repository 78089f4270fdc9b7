// What a call needs, tried before there is one: the gateway, the microphone, each TURN server.
import { likelyCause } from "./browser.js";
import { testCall } from "./test-call.js";
import { PhoneError, microphoneError } from "./texts.js";

/** For each part; a round trip is the best of so many. */
const TIME = 5_000, ROUND_TRIPS = 3, SERVERS = 6;

/** The promise, or a refusal when its time is over. */
function within(clock, promise, ms = TIME) {
  let timer;
  const late = new Promise((_, reject) => { timer = clock.setTimeout(() => reject(new Error("no answer in time")), ms); });
  return Promise.race([promise, late]).finally(() => clock.clearTimeout(timer));
}

/** The session's round trip, by a request that changes nothing. */
async function network(phone, { clock }) {
  if (!phone.isOnline) {
    const error = phone.error ?? new PhoneError("unreachable", await likelyCause(phone.gateway, phone.seams).catch(() => "nothing"));
    return { isGood: false, roundTripMs: null, error };
  }
  let best = Infinity;
  for (let turn = 0; turn < ROUND_TRIPS; turn++) {
    const began = clock.now();
    const isAnswered = await within(clock, phone.echo()).then((isAsked) => isAsked, () => false);
    if (!isAnswered) return { isGood: false, roundTripMs: null, error: new PhoneError("unreachable", "nothing") };
    best = Math.min(best, clock.now() - began);
  }
  return { isGood: true, roundTripMs: Math.round(best), error: null };
}

/** Opened and let go, also where the person answers after the time. */
async function microphone({ seams }) {
  let isLate = false;
  const opened = Promise.resolve().then(() => seams.microphone());
  const stop = (stream) => { for (const track of stream.getTracks()) track.stop(); };
  opened.then((stream) => { if (isLate) stop(stream); }, () => {});
  try {
    const stream = await within(seams.clock, opened, 6 * TIME), [track] = stream.getAudioTracks();
    const label = track?.label ?? "";
    stop(stream);
    if (!track) throw new PhoneError("microphoneAbsent");
    return { isGood: true, label, error: null };
  } catch (error) {
    isLate = true;
    return { isGood: false, label: "", error: microphoneError(error) };
  }
}

/** A relayed candidate of this one server. */
async function relay({ seams }, server) {
  const began = seams.clock.now();
  let pc;
  try {
    pc = new seams.RTCPeerConnection({ iceServers: [server], iceTransportPolicy: "relay" });
    const found = new Promise((done) => {
      pc.onicecandidate = ({ candidate }) => { if (!candidate) done(false); else if (/ typ relay\b/.test(candidate.candidate ?? "")) done(true); };
    });
    pc.addTransceiver("audio", { direction: "sendrecv" });
    await within(seams.clock, Promise.resolve(pc.setLocalDescription()));
    const isGood = await within(seams.clock, found).catch(() => false);
    return { urls: server.urls, isGood, milliseconds: isGood ? Math.round(seams.clock.now() - began) : null };
  } catch {
    return { urls: server.urls, isGood: false, milliseconds: null };
  } finally {
    if (pc) {
      pc.onicecandidate = null;
      pc.close();
    }
  }
}

const isTURN = ({ urls }) => [].concat(urls).some((url) => /^turns?:/.test(url));

/** The test call comes last, so that nothing else of it is on the way meanwhile. */
export async function preflight(phone) {
  const { seams } = phone, servers = seams.iceServers().filter(isTURN).slice(0, SERVERS);
  const [net, mic, turn] = await Promise.all([network(phone, seams), microphone(phone), Promise.all(servers.map((server) => relay(phone, server)))]);
  const call = net.isGood ? await testCall(phone) : null;
  return { isReady: net.isGood && mic.isGood && call?.isGood !== false, network: net, microphone: mic, turn, call };
}
