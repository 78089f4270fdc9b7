// What a user is told.

const CALL_FAILED = "call failed", NO_AUDIO = "no audio could be set up", NO_TRUNK = "the telephone network failed";

/** docs/protocol.md, Reasons; the words are those of Tests/Vectors/client/texts.txt. */
const REASONS = {
  remoteHangup: "ended", localEnd: "ended", callerCancelled: "missed", answeredElsewhere: "answered on another device",
  declinedElsewhere: "declined on another device", busyElsewhere: "busy on another device", unanswered: "no answer", busy: "busy",
  declined: "declined", mediaTimeout: NO_AUDIO, mediaFailed: NO_AUDIO, networkLost: "connection lost", trunkLost: NO_TRUNK,
  trunkFailed: NO_TRUNK, notFound: "number not in service", forbidden: "not allowed", codec: "no common codec", auth: "not logged in",
  overload: "the service is busy, try again", server: CALL_FAILED, unknown: CALL_FAILED, gatewayRestart: "the service was restarted",
  appRestart: "the app was restarted", diverted: "forwarded", dnd: "do not disturb", blocked: "blocked",
};

const isKnown = (reason) => typeof reason === "string" && Object.hasOwn(REASONS, reason);

/** A reason of a later version is `unknown`. */
export const endReason = (text) => (isKnown(text) ? text : "unknown");
export const reasonText = (reason) => REASONS[endReason(reason)];

/** Error codes, and what a refused `call.answer` or `call.start` means for the call. */
const REFUSALS = {
  answeredElsewhere: "answeredElsewhere", notFound: "notFound", forbidden: "forbidden", emergency: "forbidden", codec: "codec", auth: "auth",
  revoked: "auth", busy: "busy", overload: "overload", tooMany: "overload", server: "server", badRequest: "unknown", unsupported: "unknown",
  badState: "unknown", gone: "unknown", staleGen: "unknown",
};
/** A code of a later version is `server`. */
export const errorCode = ({ code }) => (Object.hasOwn(REFUSALS, code) ? code : "server");
export const refusalReason = (failure) => (failure.reason ? endReason(failure.reason) : REFUSALS[errorCode(failure)]);

const ERRORS = {
  unsupported: "This browser cannot make calls. Use a current Chrome, Edge, Firefox or Safari.",
  loginRefused: "The login was refused. Log in again.",
  revoked: "This device was logged out by an operator. Log in again.",
  replaced: "This phone is open in another tab or browser. Take it back here, or go on there.",
  noToken: "The login could not be renewed. Trying again.",
  staleToken: "The login could not be renewed. Trying again.",
  loggedOut: "You are logged out. Log in to make calls.",
  emptyNumber: "There is no number to call.",
  emergency: "Emergency numbers cannot be called here. Use a telephone.",
  microphoneDenied: "The microphone is blocked for this page. Allow it beside the address, then try again.",
  microphoneAbsent: "No microphone was found. Connect one, then try again.",
  microphoneBusy: "Another program uses the microphone. Close it, then try again.",
  microphoneInsecure: "Browsers give the microphone to secure pages only. Open this page by https.",
  loudspeakerAbsent: "This loudspeaker cannot be used. Choose another one.",
  tooManyCalls: "Too many calls. End one of them, or try again later.",
  autoplayRefused: "The browser keeps the sound off. Click to hear the call.",
  noResources: "The browser cannot set up another call. Close other tabs, then try again.",
  pushUnsupported: "Calls cannot ring here while the page is closed.",
  pushDenied: "Notifications are blocked for this page. Allow them beside the address.",
  workerOutdated: "Calls ring here again, while the page is closed, once it was loaded anew.",
  refused: "That was not possible. Try again.",
};

export class PhoneError extends Error {
  constructor(code, detail = "") {
    super(ERRORS[code] + (detail && ` (${detail})`));
    Object.assign(this, { name: "PhoneError", code, text: ERRORS[code], reason: code === "refused" ? detail : null });
  }
}

/** What `getUserMedia` refused with. */
export function microphoneError(error) {
  if (error instanceof PhoneError) return error;
  const codes = { NotAllowedError: "Denied", SecurityError: "Denied", NotFoundError: "Absent", OverconstrainedError: "Absent" };
  return new PhoneError("microphone" + (codes[error?.name] ?? "Busy"), error?.message);
}
