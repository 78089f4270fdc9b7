// What a user is told.

const CALL_FAILED = "call failed", NO_AUDIO = "no audio could be set up", NO_TRUNK = "the telephone network failed";

/** docs/reference/protocol.md, Reasons; the words are those of Tests/Vectors/client/texts.txt. */
const REASONS = {
  remoteHangup: "ended", localEnd: "ended", cancelled: "cancelled", callerCancelled: "missed", answeredElsewhere: "answered on another device",
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
  answeredElsewhere: "answeredElsewhere", notFound: "notFound", forbidden: "forbidden", callerNumber: "forbidden", emergency: "forbidden", codec: "codec", auth: "auth",
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
  replaced: "This phone is open in another tab or browser. Use it here, or continue there.",
  noToken: "The login could not be renewed. Trying again.",
  staleToken: "The login could not be renewed. Trying again.",
  loggedOut: "You are logged out. Log in to make calls.",
  emptyNumber: "No number was given.",
  badParameters: "This call carries what the gateway does not take. Its parameters are at most 16 texts, 1 KB in all.",
  callerNumber: "You cannot call from this number. Choose another of your numbers.",
  emergency: "Emergency numbers cannot be called here. Use a telephone.",
  microphoneDenied: "The microphone is blocked for this page. Allow it in the address bar, then try again.",
  microphoneAbsent: "No microphone was found. Connect one, then try again.",
  microphoneBusy: "Another program uses the microphone. Close it, then try again.",
  microphoneInsecure: "Browsers allow the microphone on secure pages only. Open this page with https.",
  microphoneGone: "The chosen microphone was disconnected. Another one is used until it is back.",
  loudspeakerGone: "The chosen loudspeaker was disconnected. The system’s loudspeaker is used until it is back.",
  loudspeakerAbsent: "This loudspeaker cannot be used. Choose another one.",
  tooManyCalls: "Too many calls. End one of them, or try again later.",
  autoplayRefused: "The browser blocks the sound. Click to hear the call.",
  noResources: "The browser cannot set up another call. Close other tabs, then try again.",
  pushUnsupported: "Calls cannot ring here while the page is closed.",
  pushDenied: "Notifications are blocked for this page. Allow them in the address bar.",
  workerOutdated: "Reload this page so that calls ring again while it is closed.",
  unreachable: "The gateway cannot be reached. Trying again.",
  noMedia: "No audio passes between this browser and the gateway. A firewall may block UDP; another network may help.",
  refused: "That was not possible. Try again.",
};

/** What is wrong with a call's audio, and what to do. */
const WARNINGS = {
  loss: ["loss", null, "The network loses audio. Move closer to the Wi-Fi, or use another network."],
  roundTrip: ["roundTrip", null, "The connection to the gateway is slow: speech arrives late. Another network may help."],
  oneWayIn: ["oneWay", "in", "No sound arrives from the other side. Ask whether they can hear you, or call again."],
  oneWayOut: ["oneWay", "out", "The other side cannot hear you. Call again, or use another network."],
  microphoneLow: ["microphoneLow", null, "Your microphone is very quiet. Speak closer to it, or choose another one."],
};
export const warning = (name) => { const [cause, direction, text] = WARNINGS[name]; return { cause, direction, text }; };

/** `unreachable`, by the likely cause. */
const CAUSES = {
  address: "The gateway’s address is not valid. It consists of wss://, the host and /v1/connect.",
  offline: "This device has no network. Trying again.",
  insecure: "A page loaded with https cannot use a ws address. Use the gateway’s wss address.",
  nothing: "The gateway does not answer. It may be down, or its name or certificate may be wrong. Trying again.",
  closed: "A server answers, but it refuses this page. Check the address, and that the gateway’s auth.origins lists this page’s origin. Trying again.",
  notGateway: "The server at this address is not a gateway. Check the host and the path of the address. Trying again.",
  notReady: "The gateway is starting, or has no capacity for calls. Trying again.",
  origin: "The gateway refuses pages of this origin. Add it to the gateway’s auth.origins. Trying again.",
  host: "The gateway receives another host name than this page’s. The proxy in front of it must pass on the Host header. Trying again.",
  noWebSocket: "The gateway answers, but its WebSocket cannot be opened. A proxy in front of it must pass on Upgrade, Connection and Host. Trying again.",
};

export class PhoneError extends Error {
  constructor(code, detail = "") {
    const text = (code === "unreachable" && CAUSES[detail]) || ERRORS[code];
    super(text + (detail && ` (${detail})`));
    Object.assign(this, { name: "PhoneError", code, text, reason: ["refused", "unreachable"].includes(code) ? detail : null });
  }
}

/** What `getUserMedia` refused with. */
export function microphoneError(error) {
  if (error instanceof PhoneError) return error;
  const codes = { NotAllowedError: "Denied", SecurityError: "Denied", NotFoundError: "Absent", OverconstrainedError: "Absent" };
  return new PhoneError("microphone" + (codes[error?.name] ?? "Busy"), error?.message);
}

/** Digits, and what a telephone has beside them. */
const isNumber = (text) => /^\+?[0-9*#]{1,32}$/.test(text);
/** Whom a call is with, whatever was said. A number has one kind, wherever it comes from: of an extension an offer says `generic`, the history `phone`, and a call back to `generic` would mean a user's id. */
export function party(value) {
  if (typeof value?.h !== "string" || !value.h) return { k: "generic", h: "Unknown" };
  const k = isNumber(value.h) ? "phone" : value.k === "email" ? "email" : "generic";
  return k === value.k ? value : { ...value, k };
}
