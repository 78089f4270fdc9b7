// A call to the gateway itself, which sends back what it gets (docs/reference/protocol.md, Test calls): what both directions are worth.
import { PhoneError, refusalReason } from "./texts.js";

const ECHO = { k: "generic", h: "trunkline:echo" };
/** The gateway hangs up after 5 s. */
const TIME = 20_000;
/** G.109's low quality begins here: what is less is poor. */
const POOR = 3.1;

/** ITU-T G.107 as the gateway counts it, for Opus: of audio that was lost, and from mouth to ear. */
export function opinion(loss, delayMs) {
  const percent = 100 * Math.min(1, Math.max(0, loss)), sixth = (value) => (1 + value ** 6) ** (1 / 6), x = Math.log2(Math.max(100, delayMs) / 100);
  const rating = 93.2 - 25 * (sixth(x) - 3 * sixth(x / 3) + 2) - (5 + (90 * percent) / (percent + 10));
  return rating <= 0 ? 1 : Math.max(1, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6);
}

const number = (value) => (Number.isFinite(value) ? value : null);
const rounded = (value, digits = 0) => (Number.isFinite(value) ? Math.round(value * 10 ** digits) / 10 ** digits : null);

/** What came from the gateway, by the browser's statistics. `isHeard` is null where it does not say, and where silence was sent:
 *  of what no loudspeaker plays Chromium counts no energy. */
function received(stats, isSilent) {
  const inbound = stats.find((one) => one.type === "inbound-rtp"), pair = stats.find((one) => one.type === "candidate-pair" && one.nominated && one.state === "succeeded");
  // a pair without a round trip is not one without delay
  const roundTrip = number(pair?.currentRoundTripTime), roundTripMs = roundTrip === null ? null : rounded(1_000 * roundTrip);
  if (!inbound) return { roundTripMs, direction: null };
  const { packetsReceived: packets = 0, packetsLost: lost = 0 } = inbound, loss = packets + lost > 0 ? Math.max(0, lost) / (packets + Math.max(0, lost)) : 0;
  const buffer = inbound.jitterBufferEmittedCount ? (1_000 * inbound.jitterBufferDelay) / inbound.jitterBufferEmittedCount : 0;
  return {
    roundTripMs,
    direction: {
      loss: rounded(loss, 4), jitterMs: rounded(1_000 * inbound.jitter), mos: packets > 0 ? rounded(opinion(loss, (roundTripMs ?? 0) / 2 + buffer + 26), 2) : null,
      isHeard: packets === 0 ? false : !isSilent && inbound.totalAudioEnergy > 1e-5 ? true : null,
    },
  };
}

/** What the gateway says that it got. `isSilent`: there was no signal to send. */
function sent(d, isSilent) {
  if (typeof d !== "object" || d === null) return null;
  return {
    loss: rounded(number(d.loss), 4), jitterMs: rounded(number(d.jitterMs)), mos: rounded(number(d.mos), 2),
    isHeard: isSilent ? null : d.audio === true,
  };
}

/** Null: this gateway has no such call, or another call goes on. */
export async function testCall(phone) {
  const { seams } = phone;
  if (!phone.isOnline || !phone.gatewayCaps.includes("echo") || phone.calls.some((call) => !call.isOver)) return null;
  const id = seams.uuid(), audio = seams.testAudio?.() ?? null;
  let pc, timer, isOver = false;
  try {
    pc = new seams.RTCPeerConnection({ iceServers: seams.iceServers(), bundlePolicy: "max-bundle" });
    const ended = new Promise((done) => {
      phone.watchTest(id, (type, d) => { if (type === "call.ended" || type === "call.gone") { isOver = true; done(d); } });
      timer = seams.clock.setTimeout(() => done(null), TIME);
    });
    pc.ontrack = ({ track, streams }) => audio?.listen(streams[0] ?? new seams.MediaStream([track]));
    pc.onconnectionstatechange = () => {
      if (pc.connectionState !== "connected") return;
      phone.tell("media.ready", id, { gen: 1 });
      phone.tell("media.active", id, { capture: true, playout: true });
    };
    const { sender } = pc.addTransceiver("audio", { direction: "sendrecv" });
    if (audio) await sender.replaceTrack(audio.track);
    await pc.setLocalDescription();
    const started = await new Promise((done) => {
      const start = { to: ECHO, sdp: pc.localDescription.sdp, gen: 1 };
      if (!phone.ask("call.start", id, start, (d, failure) => done(d ? { sdp: d.sdp } : { failure }))) done({ failure: { code: "server" } });
      ended.then(() => done({ failure: { code: "server" } }));
    });
    // it could not be tried: that says nothing of the way
    if (started.failure) {
      isOver = true;
      return { isGood: null, score: null, roundTripMs: null, sent: null, received: null, error: new PhoneError("refused", refusalReason(started.failure)) };
    }
    await pc.setRemoteDescription({ type: "answer", sdp: started.sdp });
    const end = await ended;
    const stats = await pc.getStats().then((all) => [...all.values()], () => []);
    const isSilent = !audio?.isRunning, down = received(stats, isSilent), up = sent(end?.received, isSilent);
    const scores = [up?.mos, down.direction?.mos].filter(Number.isFinite), score = scores.length === 2 ? Math.min(...scores) : null;
    const isHeard = up !== null && down.direction !== null && up.isHeard !== false && down.direction.isHeard !== false;
    const error = up ? null : new PhoneError("noMedia", end?.reason ?? "no answer in time");
    return { isGood: !error && isHeard && score !== null && score >= POOR, score, roundTripMs: down.roundTripMs, sent: up, received: down.direction, error };
  } catch (error) {
    return { isGood: false, score: null, roundTripMs: null, sent: null, received: null, error: new PhoneError("noMedia", String(error?.message ?? error)) };
  } finally {
    seams.clock.clearTimeout(timer);
    phone.watchTest(id, null);
    if (!isOver) phone.ask("call.end", id, { reason: "localEnd" });
    if (pc) {
      pc.ontrack = pc.onconnectionstatechange = null;
      pc.close();
    }
    audio?.stop();
  }
}
