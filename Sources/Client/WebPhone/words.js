// What the page says: end reasons, refusals and states in words that a person can act upon.

const REASONS = {
  remoteHangup: "They hung up", callerCancelled: "The caller gave up", answeredElsewhere: "Answered on another device",
  declinedElsewhere: "Declined on another device", busyElsewhere: "Busy on another device", unanswered: "No answer", busy: "Busy",
  declined: "Declined", mediaTimeout: "The audio did not connect in time", mediaFailed: "The audio could not be set up",
  networkLost: "The network connection was lost", trunkLost: "The telephone side went silent",
  trunkFailed: "The phone network could not take the call", notFound: "This number does not exist", forbidden: "This call is not allowed",
  codec: "No common audio format", overload: "The gateway is busy. Try again in a moment", server: "The gateway ended the call",
  gatewayRestart: "The gateway restarted", appRestart: "The app was restarted", unknown: "The call is over", diverted: "Taken by another line", dnd: "Do not disturb is on",
  blocked: "This caller is blocked", localEnd: "You hung up", localDecline: "You declined",
  auth: "The login has expired. Log in again", revoked: "This device may no longer call. Ask for a new login link",
  emergency: "Emergency numbers cannot be called here. Use a telephone", tooMany: "Too many calls. Try again later",
  badRequest: "The gateway did not understand this call", unsupported: "The gateway cannot do this", badState: "Not possible at this moment",
  staleGen: "The audio could not be set up", gone: "The call is over",
  microphoneDenied: "The microphone is blocked", microphoneAbsent: "No microphone found", microphoneBusy: "The microphone is in use elsewhere",
  microphoneInsecure: "This page may not use the microphone",
};

/** Why a microphone cannot be used, and what to do. */
const MICROPHONE = {
  microphoneDenied: "The microphone is blocked for this page. Click the icon beside the address, allow the microphone, then try again.",
  microphoneAbsent: "No microphone was found. Connect one, then try again.",
  microphoneBusy: "Another program uses the microphone. Close it, then try again.",
  microphoneInsecure: "Browsers give the microphone to secure pages only. Open this page by https, or on the gateway's own machine by 127.0.0.1.",
};

/** Calls that nobody here took. */
const MISSED = new Set(["callerCancelled", "unanswered", "mediaTimeout", "mediaFailed", "networkLost", "microphoneDenied", "microphoneAbsent",
  "microphoneBusy", "microphoneInsecure"]);

export const reasonWords = (reason) => REASONS[reason] ?? "The call ended";
export const microphoneWords = (reason) => MICROPHONE[reason];
export const isMissed = (entry) => entry.direction === "incoming" && entry.connectedMs === null && MISSED.has(entry.reason);

/** What the page asks for before the first call; empty if nothing. */
export function setupWords({ microphone, notifications }) {
  const permissions = [microphone && "the microphone, so that you are heard", notifications && "notifications, so that a call shows while this tab is in the background"];
  const said = permissions.filter(Boolean).join(", and ");
  return said && `Allow ${said}.`;
}

/** What a call does now, without the clock. */
export function callWords(call, isReachable) {
  if (call.phase === "ended") return reasonWords(call.endReason);
  if (!isReachable) return "The gateway cannot be reached";
  switch (call.phase) {
    case "ringing": return "is calling";
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

/** Milliseconds as minutes and seconds. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
