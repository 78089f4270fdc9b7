// What the status page says of a call, a trunk and a component: sentences for who is on call.
import { span } from "../ui/times.js";

const REASONS = {
  remoteHangup: "The telephone side hung up", localEnd: "The app hung up", callerCancelled: "The caller hung up before an answer",
  cancelled: "The app cancelled before an answer", answeredElsewhere: "Another device answered", declinedElsewhere: "Another device declined",
  busyElsewhere: "Another device was busy", unanswered: "No answer", busy: "Busy", declined: "Declined", localDecline: "Declined by the app",
  mediaTimeout: "No audio within 10 s of the answer", mediaFailed: "The audio could not be set up", networkLost: "The app's network was lost",
  trunkLost: "The trunk stopped sending during the call", trunkFailed: "The trunk failed", notFound: "No such number, or no route to it",
  forbidden: "The number is not allowed", codec: "No codec that both sides have", auth: "The trunk refused the gateway's login, or the app was not logged in",
  overload: "The gateway accepted no more calls", server: "The gateway ended the call", gatewayRestart: "The gateway was restarted",
  appRestart: "The app was killed in the call", unknown: "Unknown reason", diverted: "Forwarded to another number",
  dnd: "Do not disturb", blocked: "The caller is blocked", transferred: "Transferred",
};
/** Ends that are a fault of the gateway, a network or a trunk. */
const FAULTS = new Set(["mediaTimeout", "mediaFailed", "networkLost", "trunkLost", "trunkFailed", "codec", "auth", "overload", "server", "gatewayRestart", "appRestart"]);

export const reasonText = (reason) => REASONS[reason] ?? reason;
export const isFault = (reason) => FAULTS.has(reason);

/** The section of docs/operate/runbooks.md for a component that is not ready, or a trunk that is down; null: there is none. */
const RUNBOOKS = {
  trunks: "trunk-down", store: "records-failing", load: "limit-near", "shared-store": "shared-store-away", cluster: "node-isolated", recordings: "recordings-failing",
  "OPTIONS not answered": "trunk-down", "not located": "trunk-down", disabled: "trunk-down", "no listener reaches it": "trunk-down",
  "not registered": "registration-failing",
};
export function runbook(name) {
  const section = RUNBOOKS[name] ?? (name.startsWith("thread ") ? "late-ticks" : null);
  return section && `status/runbooks.html#${section}`;
}

const TRUNK = {
  removed: "Removed from the configuration", disabled: "Disabled by an operator", "no listener reaches it": "No listener reaches it",
  "not located": "Its name cannot be resolved", "OPTIONS not answered": "Does not answer OPTIONS", "not registered": "Not registered",
};
export const trunkText = (trunk) => (trunk.up ? "Up" : TRUNK[trunk.why] ?? trunk.why ?? "Down");

/** In the middle of a sentence. */
export const lowered = (text) => text.slice(0, 1).toLowerCase() + text.slice(1);

/** What a trunk refused last. */
export function refusalText(refusal, now) {
  if (!refusal) return "";
  return `${refusal.method}: ${refusal.failure ?? refusal.code}, ${span(now - refusal.at)} ago`;
}

const STATES = {
  parked: "Waiting", ringing: "Ringing", answering: "Being answered", diverting: "Being forwarded", starting: "Starting", ready: "Calling", progress: "Ringing",
  connected: "Connected", ended: "Ending",
};
export const stateText = (call) => (call.held ? "On hold" : STATES[call.state] ?? call.state);

const QUALITY = { poor: ["Poor", "bad"], fair: ["Fair", "wait"], good: ["Good", "good"], unknown: ["Not measured", ""] };
export const qualityLevel = (quality) => QUALITY[quality]?.[1] ?? "";

/** The worse of both directions. */
export function worstScore(call) {
  const scores = [call.fromTrunk?.mos, call.fromApp?.mos].filter((mos) => typeof mos === "number");
  return scores.length ? Math.min(...scores) : null;
}
export function qualityText(call) {
  const score = worstScore(call), text = QUALITY[call.quality]?.[0] ?? call.quality;
  return score === null ? text : `${text} ${score.toFixed(1)}`;
}

/** What one side is received like: MOS 4.3, 0.2 % lost. */
export function heardText(heard) {
  if (!heard) return "nothing received";
  return [typeof heard.mos === "number" && `MOS ${heard.mos.toFixed(1)}`, `${(100 * heard.loss).toFixed(1)} % lost`].filter(Boolean).join(", ");
}

export const directionText = (direction) => (direction === "in" ? "Incoming" : "Outgoing");

/** The first line, and the sign and words of the tab's title. */
export function headline({ status, ready, fault, age, isHidden }) {
  if (fault?.kind === "login") return { level: "unknown", text: "Token required", title: "Token required" };
  if (fault?.kind === "forbidden") return { level: "unknown", text: `Refused: ${fault.text}`, title: "Refused" };
  if (fault) {
    const since = status || ready ? ` for ${span(age)}` : "";
    const text = fault.kind === "busy" ? `Too busy to answer${since}: ${fault.text}` : `No answer${since}`;
    return { level: "unknown", text: fault.kind === "busy" || !fault.text ? text : `${text}. ${fault.text}`, title: `No answer${since}` };
  }
  if (!ready) return { level: "unknown", text: "Loading…", title: "Loading…" };
  if (ready.ready) {
    const down = status && !isHidden ? status.trunks.down : 0;
    return down ? { level: "wait", text: `Ready, ${down} ${down === 1 ? "trunk" : "trunks"} down`, title: `Ready, ${down} down` } : { level: "good", text: "Ready", title: "Ready" };
  }
  const why = ready.reasons.map(({ name, reason }) => `${name}: ${reason ?? "not ready"}`).join("; ") || "no component has reported";
  return { level: "bad", text: `Not ready: ${why}`, title: `NOT READY: ${ready.reasons[0]?.name ?? "starting"}` };
}

export const aboutText = (status, age) => `${status.node.length > 40 ? `${status.node.slice(0, 39)}…` : status.node} · ${status.version} · up ${span(status.now - status.started + age)}`;
