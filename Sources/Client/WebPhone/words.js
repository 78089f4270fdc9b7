// What the page says of calls: end reasons, refusals and states in words that a person can act upon. The texts are those of language.js.
import { hasText, milliseconds, percent, t } from "./language.js";

/** Incoming calls that nobody here took. */
const MISSED = new Set(["callerCancelled", "unanswered", "mediaTimeout", "mediaFailed", "networkLost", "microphoneDenied", "microphoneAbsent",
  "microphoneBusy", "microphoneInsecure"]);

const known = (key, otherwise) => (hasText(key) ? t(key) : otherwise);

export const reasonWords = (reason) => known(`reason.${reason}`, t("reason.other"));
/** The same as the gateway's outcomes: nobody took it, nobody wanted to be disturbed, or it failed. */
const MISSED_OUTCOMES = new Set(["missed", "filtered", "failed"]);
export const isMissed = (entry) => entry.direction === "incoming" && entry.connectedMs === null
  && (entry.outcome ? MISSED_OUTCOMES.has(entry.outcome) : MISSED.has(entry.reason));

/** Outcomes that say more than the reason of the end. */
const OUTCOMES = new Set(["answeredElsewhere", "cancelled", "declined", "busy", "diverted", "blocked", "filtered"]);
/** How a call of the history came out: as this device has noted it, else as the gateway says. */
export function historyWords(entry) {
  if (!entry.isNoted && OUTCOMES.has(entry.outcome)) return t(`outcome.${entry.outcome}`);
  return entry.reason ? reasonWords(entry.reason) : t("recent.goesOn");
}

/** An error of the package in the language of the page: what is wrong, and what to do. Its own words where the page has none. */
export function errorWords(error) {
  if (!error) return "";
  const cause = error.code === "unreachable" && error.reason ? known(`unreachable.${error.reason}`, null) : null;
  return cause ?? known(`error.${error.code}`, error.text ?? "");
}

/** What is wrong with a call's audio, and what to do. */
export const warningWords = ({ cause, direction, text }) => known(direction ? `warning.${cause}.${direction}` : `warning.${cause}`, text ?? "");

/** Why the whole page waits for its user: a heading, and what the button says, if one helps. */
export function awayWords(code) {
  if (code !== "replaced" && code !== "unsupported") return null;
  return [t(`away.${code}`), known(`away.${code}.do`, null)];
}

/** What the page asks for before the first call; empty if nothing. */
export function setupWords({ microphone, notifications, push }) {
  const asked = [microphone && "microphone", notifications && (push ? "push" : "notifications")].filter(Boolean).join(".");
  return asked && t(`setup.${asked}`);
}

function ringingWords({ called, diverted }) {
  const via = diverted?.[0]?.n || diverted?.[0]?.h, name = called?.n;
  return t(`call.isCalling${name ? "For" : ""}${via ? "Via" : ""}`, { called: name, via });
}

/** What a call does now, without the clock. */
export function callWords(call, isReachable) {
  if (call.phase === "ended") return reasonWords(call.error?.code ?? call.endReason);
  if (call.isReconnecting) return t("call.reconnecting");
  if (!isReachable) return t("call.unreachable");
  switch (call.phase) {
    case "ringing": return ringingWords(call);
    case "answering": return t("call.answering");
    case "starting": return t("call.starting");
    case "ready": return t("call.dialling");
    case "progress": return t({ ringing: "call.ringing", queued: "call.queued", divertedPstn: "call.forwarded" }[call.progress] ?? "call.dialling");
    default:
      if (call.isTakenUp) return t("call.takenUp");
      if (call.isHeld) return t("call.held");
      if (call.isHeldByPeer) return t("call.heldByPeer");
      return t(call.isMuted ? "call.muted" : "call.connected");
  }
}

/** How a transfer goes: of `call.transferred`. */
export const transferWords = (status) => t({ ringing: "transfer.ringing", failed: "transfer.failed" }[status] ?? "transfer.trying");

export { duration } from "./ui/times.js";

/** The numbers of a call's audio, as far as they are known. */
export function statisticsWords({ loss, jitterMs, bufferMs, roundTripMs }) {
  const parts = [["loss", loss, percent], ["jitter", jitterMs, milliseconds], ["buffer", bufferMs, milliseconds], ["roundTrip", roundTripMs, milliseconds]];
  return parts.filter(([, value]) => value !== null && value !== undefined).map(([name, value, written]) => t(`quality.${name}`, { value: written(value) })).join(" · ");
}

/** What the gateway measured, with what it lacks. */
export const qualityWords = ({ level, cause }) => [t("quality.level", { level: known(`quality.${level}`, level) }), cause && known(`quality.cause.${cause}`, cause)]
  .filter(Boolean).join(" · ");
