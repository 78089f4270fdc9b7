// The types of `trunkline.js`: a telephone in the browser, on a gateway that speaks `trunkline.v1`. Names and states are those of the Swift SDK.

/** Where a telephone stands with its gateway. `failed`: `phone.error` says why and what to do; logged out elsewhere is `failed` with `replaced` or `revoked`. */
export type PhoneState = "idle" | "connecting" | "online" | "failed" | "loggedOut";

/**
 * What a user sees of a call. `connecting`: the tap, or the number, is on its way. `calling`: the other side's telephone rings. `reconnecting`: nothing has
 * come from the gateway for seconds, and media is made anew; who talks is not heard meanwhile.
 */
export type CallState = "ringing" | "connecting" | "calling" | "connected" | "reconnecting" | "held" | "ended";

/** The same in the protocol's words, finer: `answering` and `starting`, `ready` are `connecting`; `progress` is `calling`. */
export type CallPhase = "ringing" | "answering" | "starting" | "ready" | "progress" | "connected" | "ended";

/** docs/reference/protocol.md, Reasons. `cancelled` is the client's: this user ended an outgoing call that nobody had answered (`localEnd` on the wire). */
export type EndReason =
  | "remoteHangup" | "callerCancelled" | "answeredElsewhere" | "declinedElsewhere" | "busyElsewhere" | "unanswered" | "busy" | "declined"
  | "mediaTimeout" | "mediaFailed" | "networkLost" | "trunkLost" | "trunkFailed" | "notFound" | "forbidden" | "codec" | "auth" | "overload"
  | "server" | "gatewayRestart" | "appRestart" | "unknown" | "diverted" | "dnd" | "blocked" | "localEnd" | "cancelled";

/** The words for a user: "answered on another device". */
export function reasonText(reason: EndReason): string;

export type PhoneErrorCode =
  /** This browser has no WebRTC or no WebSocket. */
  | "unsupported"
  /** 4001 with a fresh token. */
  | "loginRefused"
  /** 4003: an operator turned this device away. */
  | "revoked"
  /** 4009: the same device is online in another tab or browser. `phone.start()` takes it back. */
  | "replaced"
  /** The token function failed; it is asked again by itself. */
  | "noToken"
  /** The token function returned a token that ends no later than the one in use: fetch a new one, do not return a cached one. It is asked again by itself. */
  | "staleToken"
  | "loggedOut"
  | "emptyNumber"
  /** `parameters` of `call()` are no texts by names of header fields (letters, digits, ``-.!%*_+`'~``), or more than 16, or more than 1,024 bytes. */
  | "badParameters"
  /** The number to call from is none of the user's: `ownNumbers()` has those. */
  | "callerNumber"
  /** Emergency calls are not carried: use a telephone. */
  | "emergency"
  | "microphoneDenied" | "microphoneAbsent" | "microphoneBusy"
  /** The page is no secure context: https, or 127.0.0.1. */
  | "microphoneInsecure"
  | "tooManyCalls"
  /** The browser does not let the page sound before a click: `call.play()` from one. */
  | "autoplayRefused"
  /** RTCPeerConnection could not be made: too many are open. */
  | "noResources"
  | "noMedia"
  /** The browser, or the gateway, has no Web Push, or the user does not want notifications. */
  | "pushUnsupported" | "pushDenied"
  /** The page is served by a service worker of an older version, until it is loaded anew. */
  | "workerOutdated"
  /** The loudspeaker chosen is gone, or this browser has no choice. */
  | "loudspeakerAbsent"
  /** The one chosen was unplugged: another one is used until it is back (`microphoneFallback`, `loudspeakerFallback`). */
  | "microphoneGone" | "loudspeakerGone"
  /** No socket to the gateway opens; `reason` is the likely `UnreachableCause`. It is tried on by itself, but for `address` and `insecure`, which an app mends. */
  | "unreachable"
  /** A request that the gateway refused; `reason` is its code. */
  | "refused";

/**
 * Why no WebSocket comes about, as far as a browser lets one know. `nothing` answers: the gateway is down, its name unknown, its certificate refused, the
 * network gone. `closed`: something answers and does not say what to a page of this origin: a path or origin that is none. `notGateway`: what answers is none.
 * `noWebSocket`: the gateway answers, its socket does not: a proxy without `Upgrade`, or an origin that it refuses. `origin`, `host`: of these the gateway says which.
 */
export type UnreachableCause = "address" | "offline" | "insecure" | "nothing" | "closed" | "notGateway" | "notReady" | "origin" | "host" | "noWebSocket";

export class PhoneError extends Error {
  constructor(code: PhoneErrorCode, detail?: string);
  readonly code: PhoneErrorCode;
  /** A sentence for the user, with what to do next. `message` is the same, with the detail for a log. */
  readonly text: string;
  /** Of `refused`: the protocol's error code. Of `unreachable`: an `UnreachableCause`. */
  readonly reason: string | null;
}

/** `k` is `phone` (E.164 with +), `email` or `generic`. */
export interface Handle { k: "phone" | "email" | "generic"; h: string; n?: string }

/** A call of the user's history, over all devices. `outcome`: docs/integrate/directory.md, History; `id` grows with each call that ended, `call` is the call's own id. */
export interface HistoryEntry {
  id: number;
  call: string;
  direction: "incoming" | "outgoing";
  /** The other side; `n` is what the user's directory calls it. */
  peer: Handle;
  /** Milliseconds since 1970 by the gateway's clock; `connectedAt` null: nobody answered. */
  startedAt: number;
  connectedAt: number | null;
  endedAt: number;
  outcome: "answered" | "answeredElsewhere" | "missed" | "cancelled" | "declined" | "busy" | "diverted" | "blocked" | "filtered" | "failed";
  reason: EndReason;
  /** The user's device that had it. */
  device: string | null;
  account: string | null;
}

/** What may be offered to the user; what is not there is not to be had. */
export interface Capabilities { hold?: boolean; dtmf?: boolean; transfer?: boolean; group?: boolean }

/** Each second while the call lives; loss is 0 to 1 of the last second. */
export interface Statistics {
  roundTripMs: number | null;
  jitterMs: number | null;
  bufferMs: number | null;
  loss: number;
  packets: number;
  packetsLost: number;
  bytes: number;
  /** Milliseconds made up for lost packets, since the call began. */
  concealedMs: number;
  codec: string | null;
  pair: { local: string; remote: string } | null;
}

export interface Quality { level: string; cause?: string }

/**
 * What is wrong with a call's audio, as this browser measures it, and a sentence for the user. `loss`: 5 % of what comes, or of what goes by the gateway's
 * reports, over 5 s. `roundTrip`: 400 ms for 3 s. `oneWay`: nothing has come (`in`), or reached the gateway (`out`), for 5 s. `microphoneLow`: nothing above -50 dBFS for 30 s.
 */
export interface Warning { cause: "loss" | "roundTrip" | "oneWay" | "microphoneLow"; direction: "in" | "out" | null; text: string }

/** What a Web Push carries, decrypted (docs/design/devices-and-push.md); `device` where the page is told it. */
export interface Push { call?: string; from?: Handle; /** Which number was called, "for Sales". */ to?: Handle; parameters?: Record<string, string>; wake: string; gw?: string; exp?: number; device?: string; /** The user tapped "answer" on the notification. */ answers?: boolean }

/** What `service-worker.js` puts behind the address of the page that it opens (`#push=…`), or null. */
export function readPush(hash: string): Push | null;

/** The claims of a JWT, unverified. */
export function claims(token: string): Record<string, unknown>;

// — what the browser gives; each is an option, so that the package runs where there is no browser —

/** `now` in milliseconds, which only grows: `performance.timeOrigin + performance.now()`. `Date.now()` jumps when the machine's clock is set. */
export interface Clock { now(): number; setTimeout(f: () => void, ms: number): unknown; clearTimeout(timer: unknown): void }
export interface Storage { getItem(key: string): string | null; setItem(key: string, value: string): void; removeItem(key: string): void }
/** Plays what comes in; one for each call. `play` rejects with `NotAllowedError` where the page may not sound yet. */
export interface Player { play(stream: MediaStream): Promise<void>; stop(): void; setSinkId?(id: string): Promise<void> }

/** `event`: connect, closed, sent, received, unreadable, phone, call, restart, reconnecting, media connected, media failed, warnings, device, ended. `at` by the phone's clock. */
export interface LogLine { at: number; event: string; call?: string; [field: string]: unknown }

export interface PhoneOptions {
  /** A login token of the app's backend. Called at the start, before the old one expires (`auth.refresh`) and after it is refused, at most once in 10 s. It should fetch a new one each time. */
  token?: () => string | Promise<string>;
  /** Of a push that opened this page: rings at once; without `token` the session is for that call only. */
  push?: Push | null;
  /** The id that the gateway knows this installation by; default: the token's `dev`. */
  device?: string;
  /** A further call is busy on this device. Default 2. */
  maximumCalls?: number;
  /** Calls that an earlier load of this page had are taken up again (event `taken`); false: they are ended. Default true. */
  takesUp?: boolean;
  /** Started without being shown (by a push): goes when the call is over. */
  isBackground?: boolean;
  platform?: string;
  /** Is told what happens, for a support case: never a token, an SDP or what a message holds. What it throws is ignored. */
  log?: (line: LogLine) => void;
  /** What `hello` names. Default `["media.active", "quality"]`. */
  capabilities?: string[];

  WebSocket?: new (url: string, protocol: string) => WebSocket;
  RTCPeerConnection?: new (configuration: RTCConfiguration) => RTCPeerConnection;
  MediaStream?: new (tracks: MediaStreamTrack[]) => MediaStream;
  /** Default: `mediaDevices.getUserMedia` with echo cancellation, of the chosen device. */
  microphone?: (deviceId: string | null) => Promise<MediaStream>;
  player?: () => Player;
  fetch?: (url: string, request: RequestInit) => Promise<unknown>;
  clock?: Clock;
  random?: () => number;
  uuid?: () => string;
  /** Where the device choice is kept; null: nowhere. Default `localStorage`. */
  storage?: Storage | null;
  mediaDevices?: MediaDevices | null;
  /** Whose `online`, `offline` and whose `resume`, `visibilitychange` events are heeded, and `connection.change`. */
  window?: EventTarget | null;
  document?: EventTarget | null;
  connection?: EventTarget | null;
  permissions?: Permissions | null;
}

/** `isReady`: gateway and microphone are there, and no test call was bad. A TURN server that fails matters only in networks that drop UDP. */
export interface Preflight {
  isReady: boolean;
  network: { isGood: boolean; roundTripMs: number | null; error: PhoneError | null };
  microphone: { isGood: boolean; label: string; error: PhoneError | null };
  turn: { urls: string | string[]; isGood: boolean; milliseconds: number | null }[];
  /** A call to the gateway itself, of 5 s; null where the gateway has none, is not reached, or another call goes on. */
  call: PreflightCall | null;
}

/** How a test call was. The page sends a tone of its own and plays nothing; for it the browser wants a click before. */
export interface PreflightCall {
  /** Sound passes both ways, and neither direction is poor. Null: it could not be tried, and `error` says why. */
  isGood: boolean | null;
  /** The opinion score (MOS, 1 to 4.5) of the worse direction: below 3.1 it is poor, below 3.6 fair. */
  score: number | null;
  roundTripMs: number | null;
  /** From this page to the gateway, as the gateway measured it; and back, as the browser did. */
  sent: PreflightDirection | null;
  received: PreflightDirection | null;
  error: PhoneError | null;
}

export interface PreflightDirection {
  /** 0 to 1. */
  loss: number | null;
  jitterMs: number | null;
  mos: number | null;
  /** There was sound, not silence alone; null: the browser does not say, or let no tone be made. */
  isHeard: boolean | null;
}

export interface PhoneEvents {
  /** `state`, `error` or `isReachable` has changed. */
  state: Event;
  /** A call was added to `calls`, or has gone from it. */
  calls: Event;
  incoming: Event & { call: Call };
  /** A call that an earlier load of this page had goes on here. */
  taken: Event & { call: Call };
  /** A call that is not in `calls` is over: of an earlier load, or of a push. */
  gone: Event & { id: string; reason: EndReason };
  /** `microphoneFault`, `microphoneFallback`, `loudspeakerFallback` or the list of devices has changed. */
  devices: Event;
  /** The gateway took the push subscription (`error` null), or why not. */
  registered: Event & { error: string | null };
  /** A try to connect has failed: `error.text` says why, as far as is known, and what to do. At most once in 30 s; `phone.error` has it until the next `welcome`. */
  unreachable: Event & { error: PhoneError };
  /** The user's history has one more call, or (`isErased`) none any more. */
  history: Event & { isErased: boolean };
  /** The user's directory is another: names that were asked for may have changed. */
  directory: Event;
  /** The login goes on, but was not renewed: `staleToken`. */
  tokenStale: Event & { error: PhoneError };
}

export class Phone extends EventTarget {
  /** Connects at once. `gateway`: `wss://host/v1/connect`. */
  constructor(gateway: string, options: PhoneOptions);

  readonly state: PhoneState;
  /** Of `failed`; of `idle` and `connecting` what hinders, if anything. */
  readonly error: PhoneError | null;
  /** For the user: "online", or the error's text. */
  readonly text: string;
  /** False from a lost socket, or one that did not open, to the next `welcome`. */
  readonly isReachable: boolean;
  /** Milliseconds that the gateway's clock is ahead of this machine's, which may be years off; 0 before the first `welcome`. */
  readonly skew: number;
  /** The user that the token names (`sub`), and this device's id. */
  readonly user: string | null;
  readonly device: string;
  /** The oldest first; ended ones go after three seconds. */
  readonly calls: readonly Call[];
  /** Calls do not ring here. */
  doNotDisturb: boolean;
  /** The gateway's VAPID key; null: it sends no Web Push. */
  readonly pushKey: string | null;

  /**
   * Calls a number, as the user writes it: the gateway reads it as dialled in the user's country. A call that cannot be made is `ended` and has
   * an `error`. Other calls are held. `from`: which of the user's numbers the callee sees. `location`: where the caller is, a PIDF-LO document
   * (RFC 4119) of at most 8,192 bytes; only an emergency call carries it. `parameters`: texts of the app's own, at most 16 of 1,024 bytes in all; the gateway decides what
   * becomes of them.
   */
  call(number: string | Handle, options?: { from?: string; account?: string; location?: string; parameters?: Record<string, string> }): Call;
  /** Whether the gateway keeps a history, and directories; known with the first `welcome`. */
  readonly keepsHistory: boolean;
  readonly keepsDirectory: boolean;
  /**
   * A page of the user's calls over all devices, those that ended last first: at most 50. `before` is the `next` of the page before; `next` null: it was the last one. This one and
   * the three below reject with a PhoneError: `refused` with what the gateway says (`unsupported`: it keeps none), `unreachable` where no answer came within 15 s or the phone is
   * not online, `refused` with `tooMany` where eight are asked at once.
   */
  history(page?: { before?: number; limit?: number }): Promise<{ calls: HistoryEntry[]; next: number | null }>;
  /** What the user's directory calls these numbers (E.164 with +), of at most 64 those that it knows. */
  names(numbers: string[]): Promise<Handle[]>;
  /** Names of the user's directory for what somebody types: those that have each of the words, or numbers with these digits, at least three. `limit` 1 to 50, default 20. */
  findNames(text: string, options?: { limit?: number }): Promise<Handle[]>;
  /** The user's own numbers: each can be `from` of `call()`, and the first is where none is named. */
  ownNumbers(): Promise<string[]>;
  /** Takes the line again: after `replaced`, a refused login, or `close()`. */
  start(): void;
  /** Ends the calls and the session; the device stays registered for pushes. Nothing is left: no timer, no listener. */
  close(): void;
  /** The device leaves the gateway's list, then this resolves. */
  logOut(): Promise<void>;
  /** A push for this page, by the service worker's message or the page's address. */
  push(push: Push): Call | null;
  /** The page is shown, or not. A page that was frozen is looked after by itself. */
  foreground(isOn: boolean): void;

  /** Asks for the microphone, from a click, and lets it go: null, or what it lacks. */
  askForMicrophone(): Promise<PhoneError | null>;
  /** A stream of the chosen microphone, from a click: to show its level before a call. Whoever opened it stops its tracks. Rejects with a PhoneError. */
  openMicrophone(): Promise<MediaStream>;
  /** What the microphone lacks, as far as is known before a call. */
  readonly microphoneFault: PhoneError | null;
  /** The browser would ask the user: `askForMicrophone()` from a click, before the first call. */
  readonly mayAskForMicrophone: boolean;
  /** Tries what a call needs, from a click: the gateway, the microphone, each TURN server. Never rejects; some seconds, or as long as the browser asks for the microphone (30 s at most). */
  preflight(): Promise<Preflight>;
  /** A request that changes nothing. True: the gateway has answered, and has said before what became of the calls that it knew. */
  echo(): Promise<boolean>;
  microphones(): Promise<MediaDeviceInfo[]>;
  loudspeakers(): Promise<MediaDeviceInfo[]>;
  /** The ids chosen; null: the system's. */
  readonly microphone: string | null;
  readonly loudspeaker: string | null;
  /** Why another one than the chosen is used; null: it is not. The choice stays, and is taken back when the device returns, in calls too. */
  readonly microphoneFallback: PhoneError | null;
  readonly loudspeakerFallback: PhoneError | null;
  /** Also in the calls that are there. Reject with a PhoneError, and all stays as it was. */
  useMicrophone(id: string | null): Promise<void>;
  useLoudspeaker(id: string | null): Promise<void>;

  /** Why calls do not ring here while the page is closed, after `enablePush`; null: they do, or nobody asked. */
  readonly pushFault: PhoneError | null;
  /** Subscribes this device to Web Push (the user is asked: from a click) and registers it at each login. */
  enablePush(registration: ServiceWorkerRegistration, worker?: EventTarget | null): Promise<void>;
  disablePush(): Promise<void>;
  /** A registration of another kind; null: none. */
  register(push: { kind: string; token: string; env?: string; topic?: string; sealKey?: string } | null): void;

  /** Each state from now on, the present one first; a slow reader misses steps, never the last. */
  readonly states: AsyncIterableIterator<PhoneState>;
  /** Each event from now on; of a slow reader the oldest 256 are kept. */
  readonly events: AsyncIterableIterator<Event>;
  addEventListener<K extends keyof PhoneEvents>(type: K, f: (event: PhoneEvents[K]) => void, options?: AddEventListenerOptions | boolean): void;
  addEventListener(type: string, f: EventListenerOrEventListenerObject | null, options?: AddEventListenerOptions | boolean): void;
}

export interface CallEvents {
  /** Anything that is shown of the call has changed, but for statistics. */
  state: Event;
  digit: Event & { digit: string };
  quality: Event;
  /** `warnings` has one more, or one less. */
  warning: Event & { warning: Warning; isOn: boolean };
  statistics: Event;
  transferred: Event & { status: string };
}

/** One call. Nothing on it blocks: a method asks, and the properties follow when it is done. */
export class Call extends EventTarget {
  private constructor();
  readonly id: string;
  readonly direction: "incoming" | "outgoing";
  /** Of a call that goes out: the text that was dialled, and what the gateway has read from it as soon as it says so, before it rings. */
  readonly peer: Handle;
  /** The number that was called: of a call that came in one of the user's, "for Sales"; null before that is known. */
  readonly called: Handle | null;
  /** STIR (RFC 8588): "A" where the carrier vouches for the caller's number, "B", "C"; null: nobody has checked it. Only a verified call should be shown as one. */
  readonly attestation: string | null;
  /** The caller withholds the number. */
  readonly isPrivate: boolean;
  /** Whom the call was for before it was diverted to this user, the latest first. */
  readonly diverted: readonly Handle[];
  /** Texts that came with the call, or that `phone.call()` was given. They are the other side's words: show them as text only. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly account: string | null;
  readonly state: CallState;
  readonly phase: CallPhase;
  /** The gateway's last `call.progress`: trying, ringing, early, queued or divertedPstn. */
  readonly progress: string | null;
  /** The other side's network sends tones or words of its own: no ringback of ours. */
  readonly hasEarlyMedia: boolean;
  /** Whole seconds since the gateway connected it; it stands after the end. */
  readonly seconds: number;
  readonly isMuted: boolean;
  readonly isHeld: boolean;
  readonly isHeldByPeer: boolean;
  /** Connected, and nothing comes from the gateway: `state` is `reconnecting`, also of a held call. Within 3 s where audio came; the `loss` of `statistics` is 1 meanwhile. */
  readonly isReconnecting: boolean;
  readonly capabilities: Capabilities | null;
  /** Calls with the same number hear each other; null: it is in no group. */
  readonly group: number | null;
  /** What it still waits for: the tab was loaded again in this call. */
  readonly isTakenUp: boolean;
  /** The call's audio is heard here. */
  readonly isPlaying: boolean;
  /** The browser refused to sound: `play()` from a click. */
  readonly isAudioBlocked: boolean;
  /** The user is heard there, unless muted. */
  readonly isCapturing: boolean;
  /** The microphone was refused or taken away in the call, which goes on without; `openMicrophone()` tries again. */
  readonly microphoneFault: PhoneError | null;
  /** Milliseconds since 1970: made here; connected, by the gateway's clock; ended. `phone.skew` is what the gateway's clock is ahead of this one. */
  readonly startedAt: number;
  readonly connectedAt: number | null;
  readonly endedAt: number | null;
  readonly endReason: EndReason | null;
  /** The end for the user, "missed"; null before. */
  readonly text: string | null;
  /** Why it could not be made, or taken, where that is known. */
  readonly error: PhoneError | null;
  readonly codec: string | null;
  /** What the gateway measures, of both its legs. */
  readonly quality: Quality | null;
  /** What this browser measures; none of a call on hold, or that reconnects. */
  readonly warnings: readonly Warning[];
  readonly statistics: Statistics | null;
  /** For meters; null before there is one. */
  readonly remoteStream: MediaStream | null;
  readonly localStream: MediaStream | null;
  readonly peerConnection: RTCPeerConnection | null;

  /** Other calls are held. */
  answer(): void;
  /** On all devices of the user. */
  decline(): void;
  end(): void;
  mute(isOn: boolean): void;
  /** `hold(false)` holds the other call: so two calls are swapped. */
  hold(isOn: boolean): void;
  /** 0 to 9, A to D, * and #; others are left out. Resolves when the gateway has queued them. */
  sendDigits(digits: string): Promise<void>;
  /** The other side is sent to this number, and this call ends: blind transfer. */
  transfer(to: string | Handle): Promise<void>;
  /** Both other sides talk with each other, and these calls end: attended transfer. */
  transferWith(other: Call): Promise<void>;
  /** All sides hear each other from now on: those of this call, of `other`, and of all that either is in a group with, up to five. Needs
   * `capabilities.group` of both; who is held is resumed. */
  merge(other: Call): Promise<void>;
  /** Its other side hears this side only again. The latest of the calls that were merged talks on, with those that are still in a group with it;
   * the others are held. */
  leaveGroup(): Promise<void>;
  /** From a click, where the browser did not let the page sound. */
  play(): Promise<void>;
  openMicrophone(): Promise<void>;

  /** Each state from now on, the present one first and the end last. */
  readonly states: AsyncIterableIterator<CallState>;
  readonly events: AsyncIterableIterator<Event>;
  addEventListener<K extends keyof CallEvents>(type: K, f: (event: CallEvents[K]) => void, options?: AddEventListenerOptions | boolean): void;
  addEventListener(type: string, f: EventListenerOrEventListenerObject | null, options?: AddEventListenerOptions | boolean): void;
}
