// What the page says: end reasons, refusals and states in words that a person can act upon.

const REASONS = {
  remoteHangup: "They hung up", callerCancelled: "The caller gave up", answeredElsewhere: "Answered on another device",
  declinedElsewhere: "Declined on another device", busyElsewhere: "Busy on another device", unanswered: "No answer", busy: "Busy",
  declined: "Declined", mediaTimeout: "The audio did not connect in time", mediaFailed: "The audio could not be set up",
  networkLost: "The network connection was lost", trunkLost: "The telephone side went silent",
  trunkFailed: "The phone network could not take the call", notFound: "This number does not exist", forbidden: "This call is not allowed",
  codec: "No common audio format", overload: "The gateway is busy. Try again in a moment", server: "The gateway ended the call",
  gatewayRestart: "The gateway restarted", appRestart: "The app was restarted", unknown: "The call is over", diverted: "Taken by another line", dnd: "Do not disturb is on",
  blocked: "This caller is blocked", localEnd: "You hung up", cancelled: "You cancelled the call", localDecline: "You declined", transferred: "Transferred",
  auth: "The login has expired. Log in again", revoked: "This device may no longer call. Ask for a new login link",
  emergency: "Emergency numbers cannot be called here. Use a telephone", tooMany: "Too many calls. Try again later",
  badRequest: "The gateway did not understand this call", unsupported: "The gateway cannot do this", badState: "Not possible at this moment",
  staleGen: "The audio could not be set up", gone: "The call is over",
  microphoneDenied: "The microphone is blocked", microphoneAbsent: "No microphone found", microphoneBusy: "The microphone is in use elsewhere",
  microphoneInsecure: "This page may not use the microphone", tooManyCalls: "Too many calls. Try again later",
  loggedOut: "Logged out", loginRefused: "The login was refused", replaced: "This phone was open elsewhere", emptyNumber: "There was no number",
  noResources: "The browser could not set up the call", unreachable: "The gateway could not be reached",
};

/** Calls that nobody here took. */
const MISSED = new Set(["callerCancelled", "unanswered", "mediaTimeout", "mediaFailed", "networkLost", "microphoneDenied", "microphoneAbsent",
  "microphoneBusy", "microphoneInsecure"]);

export const reasonWords = (reason) => REASONS[reason] ?? "The call ended";
export const isMissed = (entry) => entry.direction === "incoming" && entry.connectedMs === null && MISSED.has(entry.reason);

/** Why the whole page waits for its user: a heading, and what the button says, if one helps. */
export const AWAY = {
  replaced: ["Open somewhere else", "Use it here"],
  unsupported: ["No calls in this browser", null],
};

/** What the page asks for before the first call; empty if nothing. */
export function setupWords({ microphone, notifications, push }) {
  const calls = push ? "so that calls ring also while this page is closed" : "so that a call shows while this tab is in the background";
  const permissions = [microphone && "the microphone, so that you are heard", notifications && `notifications, ${calls}`];
  const said = permissions.filter(Boolean).join(", and ");
  return said && `Allow ${said}.`;
}

/** What a call does now, without the clock. */
export function callWords(call, isReachable) {
  if (call.phase === "ended") return reasonWords(call.error?.code ?? call.endReason);
  if (call.isReconnecting) return "Reconnecting…";
  if (!isReachable) return "The gateway cannot be reached";
  switch (call.phase) {
    case "ringing": return ["is calling", call.called?.n && `for ${call.called.n}`, call.diverted?.[0] && `by way of ${call.diverted[0].n || call.diverted[0].h}`].filter(Boolean).join(" ");
    case "answering": return "Connecting…";
    case "starting": return "Setting up the audio…";
    case "ready": return "Calling…";
    case "progress": return { ringing: "Ringing…", queued: "Waiting in a queue…", divertedPstn: "Being forwarded…" }[call.progress] ?? "Calling…";
    default:
      if (call.isTakenUp) return "Taking the call up again…";
      if (call.isHeld) return "On hold";
      if (call.isHeldByPeer) return "They put you on hold";
      return call.isMuted ? "Muted: they cannot hear you" : "Connected";
  }
}

/** How a transfer goes: of `call.transferred`. */
export const transferWords = (status) => ({ ringing: "Transferring: it rings there…", failed: "The transfer did not work" })[status] ?? "Transferring…";

export { duration } from "./ui/times.js";

/** The numbers of a call's audio, as far as they are known. */
export function statisticsWords({ loss, jitterMs, bufferMs, roundTripMs }) {
  const parts = [["loss", loss, () => `${(100 * loss).toFixed(1)} %`], ["jitter", jitterMs], ["buffer", bufferMs], ["round trip", roundTripMs]];
  return parts.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value, text]) => `${name} ${text?.() ?? `${Math.round(value)} ms`}`).join(" · ");
}
