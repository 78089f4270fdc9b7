// trunkline.js: a telephone in the browser, on a gateway that speaks `trunkline.v1`. README.md shows a call, trunkline.d.ts has the types.
import { claims } from "./base64.js";
import { likelyCause, seamsOf } from "./browser.js";
import { Call, given } from "./call.js";
import { Devices } from "./devices.js";
import { Directory } from "./directory.js";
import { Source, Timers } from "./events.js";
import { Session, isAddress } from "./session.js";
import { PhoneError, endReason, microphoneError, party, reasonText } from "./texts.js";

export { Call, PhoneError, claims, reasonText };

/** No word of the gateway on a push by then, or after its tap: the call ends (docs/reference/protocol.md, Parking and push). */
const WATCHDOG = 15_000, WATCHDOG_TAPPED = 20_000;
/** A connected call without a session and without media; sessions at further nodes, and how long one without a call says its last words. */
const STRAY = 30_000, RINGS_ALONE = 60_000, FURTHER = 8, FAREWELL = 15_000;
const ENDED_SHOWN = 3_000, REMEMBERED = 32, TOKEN_LONGEST = 300_000;
/** The token function is asked once in so long, whoever wants a token; and again after so long, then after twice that, where it gave none that helps. */
const TOKEN_FLOOR = 10_000;
// A backend that keeps each token until it ends gives the next one at that moment, which must be met within the gateway's leeway of 30 s: the wait does
// not grow beyond STALE_RETRY from the announcement to the end of the leeway, 90 s.
const STALE_RETRY = 20_000, STALE_TRIES = 9;
const ASK_WHY = 30_000;
const REFUSALS = { 4001: "loginRefused", 4003: "revoked", 4009: "replaced" };
const TEXTS = { idle: "offline", connecting: "connecting", online: "online", loggedOut: "logged out" };

/** `#push=…` of service-worker.js, or `#wake=…&device=…`; null: the page was opened otherwise. */
export function readPush(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const wake = fields.get("wake");
  if (wake) return { wake, call: claims(wake).call, device: fields.get("device") ?? undefined };
  try {
    const push = JSON.parse(fields.get("push"));
    return typeof push?.wake === "string" ? push : null;
  } catch { return null; }
}

export class Phone extends Source {
  #machine = "idle";
  #error = null;
  #session = null;
  #token = null;
  #isTokenAsked = false;
  #isTokenWanted = false;
  #tokenAttempts = 0;
  /** The last token ended no later than the one before it. */
  #isTokenStale = false;
  #turn = {};
  /** The push whose session this is. */
  #wake = null;
  /** Sessions at further nodes, each for the calls of its node (docs/reference/protocol.md, Many nodes). A call's `session` is null where it is the phone's own. */
  #further = new Set();
  #onlineAt = null;
  /** Live calls and the latest ended ones, which a late push must find. */
  #known = new Map();
  /** Calls of an earlier load of this page, which a push's session may not touch. */
  #orphans = new Map();
  #listening = [];
  #groups = 0;
  #isForeground;
  #push = null;
  #preferences = null;
  #isPushDropped = false;
  #registering = false;
  #isRegistrationOld = false;
  #logOuts = null;
  #isLoggingOut = false;
  /** The page was left, and its sessions ended with that. */
  #isLeft = false;
  /** Of the gateway's clock. */
  skew = 0;
  #stops = [];
  #rung = -Infinity;
  #askedWhy = -Infinity;

  constructor(gateway, options = {}) {
    super();
    Object.assign(this, { gateway, options, device: options.device ?? options.push?.device ?? "", user: null, calls: [], isReachable: true, pushKey: null, keepsHistory: false, keepsDirectory: false });
    this.#isForeground = !options.isBackground;
    const seams = this.seams = seamsOf(options), make = seams.player;
    this.timers = new Timers(seams.clock);
    seams.iceServers = () => this.#ice;
    seams.player = () => {
      const made = make();
      const { loudspeaker } = this.devices;
      if (loudspeaker) made.setSinkId?.(loudspeaker)?.catch(() => this.devices.check());
      return made;
    };
    seams.microphone = () => this.devices.open();
    this.start();
    // who has made it hears of the call
    const turn = this.#turn;
    if (options.push) queueMicrotask(() => { if (turn === this.#turn) this.push(options.push); });
  }
  #ice = [];
  #pusher = null;
  #directory = new Directory(this);

  // — what is shown —

  get state() {
    if (this.#machine === "refused" || (this.#machine === "idle" && this.#error)) return "failed";
    return this.#machine;
  }
  get error() { return this.#error; }
  get text() { return this.#error?.text ?? TEXTS[this.state]; }
  get isOnline() { return this.#session?.isOnline === true; }
  get microphone() { return this.devices.chosen.microphone; }
  get loudspeaker() { return this.devices.chosen.loudspeaker; }
  get microphoneFault() { return this.devices.fault; }
  get microphoneFallback() { return this.devices.fallback.microphone; }
  get loudspeakerFallback() { return this.devices.fallback.loudspeaker; }
  get mayAskForMicrophone() { return this.devices.mayAsk; }
  get pushFault() { return this.#pusher?.fault ?? null; }
  get doNotDisturb() { return this.#preferences?.dnd === true; }
  set doNotDisturb(isOn) {
    this.#preferences = { dnd: isOn };
    this.#register();
  }

  #move(machine, error = null) {
    if (this.#machine === machine && this.#error === error) return;
    this.#machine = machine;
    this.#error = error;
    this.seams.log("phone", { state: this.state, ...(error && { error: error.message }) });
    this.changed();
  }

  #fail(code, detail) { this.#move("idle", new PhoneError(code, detail)); }

  // — what the browser tells —

  #listenToBrowser() {
    const { window, document, connection } = this.seams;
    const on = (target, type, f) => { if (target?.addEventListener) this.#stops.push(this.seams.listen(target, type, f)); };
    on(window, "online", () => this.#pathChanged());
    on(window, "offline", () => { for (const call of this.#live()) call.wentOffline(); });
    // most of its changes are only other estimates of the same path
    let type = connection?.type;
    on(connection, "change", () => {
      if (connection.type === type) return;
      type = connection.type;
      this.#pathChanged();
    });
    // a tab that was frozen, or comes out of the back-forward cache: its timers stood still
    const thawed = () => { if (document?.visibilityState !== "hidden") for (const one of this.#sessions) one.wake(); };
    on(document, "resume", thawed);
    on(document, "visibilitychange", () => { this.#takeBack(); thawed(); });
    on(window, "pageshow", () => { this.#returned(); thawed(); });
    on(window, "pagehide", () => this.#left());
  }

  /**
   * The page is left. A browser that keeps it for "Back" keeps its socket open too, and answers WebSocket's pings on it: the gateway would let calls ring where no page
   * runs. So the sessions end here. Of a call that is more than ringing the session stays for the page that is loaded in this one's place.
   */
  #left() {
    if (this.#isLoggingOut || this.#live().some((call) => call.isOutgoing || call.phase !== "ringing")) return;
    if (!this.#sessions.length) return;
    this.#finishAll();
    this.#isLeft = true;
    this.#move("idle");
  }

  #returned() {
    if (this.#isLeft) this.#connect();
    this.#isLeft = false;
  }

  #pathChanged() {
    if (this.#isTokenDue) this.#askForToken();
    if (!this.#session) return;
    this.#session.renew();
    for (const one of this.#further) one.renew();
    for (const call of this.#live()) call.pathChanged();
  }

  foreground(isOn) {
    if (isOn === this.#isForeground) return;
    this.#isForeground = isOn;
    if (isOn) this.#askAgainForToken();
    if (!this.#session) return isOn ? this.#connect() : undefined;
    if (isOn) this.#session.hurry();
    this.ask("device.state", null, { state: isOn ? "fg" : "bg" });
  }

  /** Without a call a session in the background goes once the gateway has all that was said: pushes come at once instead. */
  #leaveInBackground() {
    if (this.#isForeground || this.#isLoggingOut || this.#live().length || !this.#session?.isQuiet) return;
    this.#finishSession();
    this.#move("idle");
  }

  // — the login —

  start() {
    if (this.#machine === "loggedOut") return;
    if (!this.devices || this.devices.isClosed) {
      this.devices = new Devices(this, this.seams, this.options.microphone);
      this.#listenToBrowser();
    }
    if (!this.seams.WebSocket || !this.seams.RTCPeerConnection) return this.#fail("unsupported");
    if (this.state === "failed") this.#move("idle");
    if (this.#token) this.#connect();
    this.#askAgainForToken();
  }

  async #askForToken() {
    this.timers.stop("token");
    if (this.#isTokenAsked || this.#machine === "loggedOut" || !this.options.token) return;
    if (this.timers.has("tokenFloor")) { this.#isTokenWanted = true; return; }
    this.timers.after("tokenFloor", TOKEN_FLOOR, () => { if (this.#isTokenWanted) this.#askForToken(); });
    this.#isTokenAsked = true;
    this.#isTokenWanted = false;
    const turn = this.#turn;
    try {
      const token = await this.options.token();
      if (typeof token !== "string" || !token) throw new Error("no token");
      if (turn === this.#turn) this.#takeToken(token);
    } catch (error) {
      if (turn === this.#turn) this.#tokenFailed(error);
    }
  }

  /** There was a failure, and nothing but time has passed since. */
  get #isTokenDue() { return this.#isTokenWanted || this.timers.has("token"); }

  /** Something has changed: what gave no token before may give one now. */
  #askAgainForToken() { if (!this.#token || this.#isTokenDue) this.#askForToken(); }

  #tokenFailed(error, isStale = false) {
    this.#isTokenAsked = false;
    let wait = Math.min(TOKEN_FLOOR * 2 ** Math.min(this.#tokenAttempts++, 5), TOKEN_LONGEST);
    if (isStale && this.#tokenAttempts <= STALE_TRIES) wait = Math.min(wait, STALE_RETRY);
    this.timers.after("token", wait, () => this.#askForToken());
    if (!error) return;
    const cause = new PhoneError("noToken", String(error?.message ?? error));
    if (this.#machine === "idle") this.#move("idle", cause);
    // that the endpoint fails is no refusal of a login
    if (this.#machine === "refused" && this.#error.code === "loginRefused") this.#move("refused", cause);
  }

  /** A token that ends no later than the one in use: the gateway would announce its end again, and the app be asked again. */
  #isStale(token) {
    if (!this.#session || !this.#token) return false;
    const [last, next] = [claims(this.#token).exp, claims(token).exp];
    return token === this.#token || (Number.isFinite(last) && Number.isFinite(next) && next <= last);
  }

  #tellStale() { this.emit("tokenStale", { error: new PhoneError("staleToken") }); }

  #takeToken(token) {
    this.#isTokenAsked = false;
    this.timers.stop("token");
    this.#isTokenStale = this.#isStale(token);
    if (this.#isTokenStale) {
      this.#tokenFailed(null, true);
      return this.#tellStale();
    }
    const former = { token: this.#token, wake: this.#wake };
    this.#token = token;
    const { sub, dev } = claims(token);
    this.user = sub ?? this.user;
    this.device = this.options.device ?? dev ?? this.device;
    if (this.#session) {
      // a session of a push becomes a whole one; one that expires goes on
      this.#wake = null;
      this.#session.isWake = false;
      this.ask("auth.refresh", null, { auth: token }, (d, failure) => this.#refreshed(token, former, d, failure));
      this.#register();
      for (const row of this.#orphans.values()) this.#takeUp(row);
      this.#orphans.clear();
    } else {
      this.#connect();
    }
    this.#dialWaiting();
  }

  /** The gateway has accepted a token, or refused it: then it helps no more than none, and the one before it stays in use. */
  #refreshed(token, former, d, failure) {
    if (!failure) {
      this.#tokenAttempts = 0;
      return this.#takeServers(d?.ice);
    }
    if (token !== this.#token || !this.#session) return;
    this.#token = former.token;
    this.#wake = former.wake;
    this.#session.isWake = !!former.wake;
    // a gateway without time, or without the keys to check it: the token is not what is wrong, and goes again before the one in use ends
    if (["overload", "tooMany", "server"].includes(failure.code)) return this.#tokenFailed(null, true);
    this.#isTokenStale = true;
    this.#tokenFailed();
    this.#tellStale();
  }

  /** Opens a session if there is a reason for one: a login while the page is in front, or a call. */
  #connect(push = null) {
    if (this.#session || !this.seams.RTCPeerConnection) return;
    if (!push && !(this.#token && (this.#isForeground || this.#isLoggingOut || this.#live().length))) return;
    this.#wake = this.#token ? null : push;
    const session = this.#session = this.#make(this.#wake?.gw ?? this.gateway, () => this.#wake, {
      online: (...all) => this.#welcomed(...all),
      offline: () => { this.isReachable = false; this.#move("connecting"); this.#ringsAlone(null); },
      failed: (url) => this.#unreachable(url),
      refused: (code) => this.#refused(code),
      message: (...all) => this.#heard(null, ...all),
      settled: () => { this.#leaveInBackground(); this.#closeFurther(); },
    });
    session.isWake = !!this.#wake;
    this.#move("connecting");
    session.connect();
    this.#dialWaiting();
  }

  get #caps() { return this.options.capabilities ?? ["media.active", "quality", "nodes"]; }

  #make(url, wake, on, isFurther = false) {
    const nav = globalThis.navigator, { platform = "web" } = this.options;
    return new Session({
      url, seams: this.seams, on, hasCall: () => this.#live().length > 0, isTalking: () => this.#live().some((call) => call.phase === "connected"),
      hello: () => ({
        proof: wake() ? { wake: wake().wake } : { auth: this.#token },
        device: { id: this.device, platform, model: nav?.platform || "browser", os: (nav?.userAgent ?? "").slice(0, 80), sdk: "trunkline.js/2" },
        caps: this.#caps, state: this.#isForeground ? "fg" : "bg",
        // the device stays where its own session is
        ...(isFurther && !wake() && { further: true }),
      }),
    });
  }

  // — further nodes —

  /** The phone's own session is at another node than this push's call. False while that is not known. */
  #isOfOtherNode({ gw }) {
    const here = this.#session?.home ?? this.#wake?.gw;
    return this.#caps.includes("nodes") && isAddress(gw) && !!here && here !== gw;
  }

  #sessionAt({ gw }) { return [...this.#further].find((one) => one.url === gw || one.home === gw); }

  #hasRoom(push) {
    const there = this.#sessionAt(push);
    return there ? !!(this.#token || !there.wake || there.wake.call === push.call) : this.#further.size < FURTHER;
  }

  /** A push through an open socket: nobody is told before its node says that it rings. */
  #woken(push) {
    if (push.v !== 1 || !this.#caps.includes("nodes") || !isAddress(push.gw) || this.#isLoggingOut) return;
    const known = this.#known.get(push.call);
    if (known ? known.isOver || !known.hasNoSession : [...this.#further].some(({ wake }) => wake?.call === push.call)) return;
    if (known || (this.#lines < (this.options.maximumCalls ?? 2) && this.#hasRoom(push))) return this.#openFurther(push, known);
    this.#rejectID(push.call, { scope: "device", reason: "busy" }, push);
  }

  /** One session a node: a second one of this device would replace the first. A session of a push becomes a whole one by the login. */
  #openFurther(push, call) {
    let one = this.#sessionAt(push);
    if (one) {
      if (call) call.session = one;
      if (this.#token && one.wake && one.wake.call !== push.call) {
        one.wake = null;
        one.isWake = false;
        one.request("auth.refresh", null, { auth: this.#token, further: true }, (d) => this.#takeServers(d?.ice));
      }
      return call && this.#probe(call);
    }
    if (this.#further.size >= FURTHER) return;
    one = this.#make(push.gw, () => one.wake, {
      online: (d, snapshot) => {
        one.onlineAt = this.seams.clock.now();
        this.#ringsOn(one);
        if (snapshot) this.#takeSnapshot(snapshot, one);
        for (const each of this.#live()) if (this.hears(each)) each.restartIfBroken();
      },
      offline: () => this.#ringsAlone(one),
      refused: (code) => {
        const its = this.#live().filter((each) => each.session === one);
        this.#further.delete(one);
        // replaced: this device's newer session there says what is with its calls
        for (const each of its) if (code === 4009) this.#loseSession(each); else each.finish("auth");
      },
      message: (...all) => this.#heard(one, ...all),
      settled: () => { this.#leaveInBackground(); this.#closeFurther(); },
    }, true);
    Object.assign(one, { wake: push, isWake: true });
    this.#further.add(one);
    if (call) call.session = one;
    one.connect();
  }

  /** Without a call, once the gateway has all that was said. */
  #closeFurther() {
    for (const one of this.#further) {
      if (this.#live().some((call) => call.session === one)) this.timers.stop(one);
      else if (one.isQuiet) this.#drop(one);
      else if (!this.timers.has(one)) this.timers.after(one, FAREWELL, () => this.#drop(one));
    }
  }
  #drop(one) {
    this.timers.stop(one);
    one.finish();
    this.#further.delete(one);
  }

  /** No session is at its node: that node's wake, another one's `call.gone` or its media say what is with it. */
  #loseSession(call) {
    if (call.hasNoSession) return;
    Object.assign(call, { hasNoSession: true, session: null });
    if (call.phase !== "connected") this.#watch(call, WATCHDOG); else if (call.restartsOnline) this.watchCallWithoutSession(call);
  }
  /** It rings while its session is broken: that the caller has given up would not be heard. */
  #ringsAlone(one) {
    for (const call of this.#live()) {
      if (call.isOutgoing || call.phase !== "ringing" || (call.session ?? null) !== one || this.timers.has(call)) continue;
      call.ringsAlone = true;
      this.#watch(call, RINGS_ALONE);
    }
  }
  /** It gives its line to a call whose gateway is reached: the same caller, as a rule, by way of another node. */
  #makeRoom() {
    if (this.#lines < (this.options.maximumCalls ?? 2)) return;
    const call = this.#live().find((one) => !one.isOutgoing && one.phase === "ringing" && (one.hasNoSession || one.ringsAlone));
    if (!call) return;
    call.isGivenUp = true;
    call.finish("unknown");
  }
  #ringsOn(one) {
    for (const call of this.#live()) {
      if (!call.ringsAlone || (call.session ?? null) !== one) continue;
      call.ringsAlone = false;
      this.timers.stop(call);
    }
  }
  watchCallWithoutSession(call) { this.timers.after(call, STRAY, () => call.finish("networkLost")); }

  #belongs(call, one) {
    if (call.hasNoSession) this.timers.stop(call);
    Object.assign(call, { session: one, node: (one ?? this.#session)?.node ?? null, hasNoSession: false, ringsAlone: false, isMissing: false });
  }

  get #sessions() { return [this.#session, ...this.#further].filter(Boolean); }

  // — whether the gateway still answers a call —

  #onlineSessionOf(call) {
    const session = call.hasNoSession ? null : call.session ?? this.#session;
    return session?.isOnline ? session : null;
  }
  /** A try has failed: said at once, and why as soon as that is known. Nobody is asked why more than once in 30 s. */
  async #unreachable(url) {
    if (this.isReachable) {
      this.isReachable = false;
      this.changed();
    }
    const now = this.seams.clock.now(), session = this.#session;
    if (now - this.#askedWhy < ASK_WHY) return;
    this.#askedWhy = now;
    const cause = await likelyCause(url, this.seams).catch(() => "nothing");
    if (session !== this.#session || this.#machine !== "connecting" || this.isReachable) return;
    const error = new PhoneError("unreachable", cause);
    this.#move("connecting", error);
    this.emit("unreachable", { error });
  }

  /** Its node has a session. */
  hears(call) { return this.#onlineSessionOf(call) !== null; }
  lastFrameAt(call) { return this.#onlineSessionOf(call)?.lastFrameAt ?? 0; }
  isUnanswered(call) { return this.#onlineSessionOf(call)?.isUnanswered === true; }
  pingGateway(call) { this.#onlineSessionOf(call)?.ask(); }
  openSecond(call) { this.#onlineSessionOf(call)?.openSecond(); }

  #finishSession() {
    this.#directory.cancel();
    this.#session?.finish();
    this.#session = this.#wake = null;
    this.#registering = false;
  }
  #finishAll() {
    for (const one of this.#further) this.#drop(one);
    this.#finishSession();
  }

  #welcomed(d, snapshot) {
    if (Number.isFinite(d.time)) this.skew = d.time - this.seams.clock.now();
    this.#takeServers(d.ice ?? []);
    this.pushKey = d.push?.webpush ?? null;
    const caps = Array.isArray(d.caps) ? d.caps : [];
    [this.keepsHistory, this.keepsDirectory] = [caps.includes("hist"), caps.includes("dir")];
    this.gatewayCaps = caps;
    this.#onlineAt = this.seams.clock.now();
    if (!this.#wake) this.#tokenAttempts = 0;
    this.isReachable = true;
    this.#askedWhy = -Infinity;
    this.#move("online");
    this.#ringsOn(null);
    if (snapshot) {
      this.#takeSnapshot(snapshot, null);
      // pushes that wait for another node's call go there, now that this session's is known
      for (const call of this.#live()) {
        if (call.isOffered || call.session || !call.pushed || !this.#isOfOtherNode(call.pushed)) continue;
        call.isMissing = false;
        this.#openFurther(call.pushed, call);
      }
    }
    for (const call of this.#live()) if (this.hears(call)) call.restartIfBroken();
    if (this.#isLoggingOut) this.#sendLogOut(); else if (snapshot) this.#register();
    this.#pusher?.subscribe().catch((error) => this.#pusher.tell(error));
  }

  /** TURN servers for calls and paths to come; what is no list changes nothing. */
  #takeServers(list) {
    if (!Array.isArray(list)) return;
    this.#ice = list.map(({ urls, username, credential }) => ({ urls, username, credential }));
  }

  #refused(code) {
    const wasWake = this.#wake !== null;
    this.#directory.cancel();
    this.#session = this.#wake = null;
    this.#registering = false;
    // what another node has goes on there, unless the device itself is turned away
    for (const call of this.#live()) if (!call.session || code === 4003) call.finish("auth");
    this.#closeFurther();
    if (this.#isLoggingOut) return this.#loggedOut();
    // a push's session ends with its call; who has logged in goes on
    if (wasWake && code === 4001) {
      this.#move("idle");
      return this.#connect();
    }
    this.isReachable = true;
    this.#move("refused", new PhoneError(code === 4001 && this.#isTokenStale ? "staleToken" : REFUSALS[code]));
    if (code === 4009) this.#takeBack();
    if (code !== 4001) return;
    this.#token = null;
    if (this.#isTokenStale) this.#tellStale();
    // the first time at once: the token may simply be old
    if (++this.#tokenAttempts === 1) this.#askForToken(); else { this.#tokenAttempts--; this.#tokenFailed(); }
  }

  /** The page's own service worker rang while this tab was frozen: it goes on here. */
  #takeBack() {
    if (this.#error?.code !== "replaced" || this.seams.document?.visibilityState === "hidden") return;
    if (this.seams.clock.now() - this.#rung >= 60_000) return;
    // once for a push: two pages that are seen would take it from each other for a minute
    this.#rung = -Infinity;
    this.start();
  }

  // — calls —

  #live() { return [...this.#known.values()].filter((call) => !call.isOver); }

  #add(call) {
    if (this.#known.size >= REMEMBERED) {
      const old = [...this.#known.values()].find((one) => one.isOver);
      if (old) this.#known.delete(old.id);
    }
    this.#known.set(call.id, call);
    this.calls = [...this.calls, call];
    this.emit("calls");
    return call;
  }

  call(number, { from, account, location, parameters } = {}) {
    const peer = typeof number === "string" ? { k: "phone", h: number } : { ...number };
    peer.h = peer.h.replace(/\s/g, "").slice(0, 256);
    const call = this.#add(new Call(this, this.seams.uuid(), "outgoing", peer, { from: from && { k: "phone", h: from }, account, location, parameters: given(parameters) ?? {} }));
    const refuse = (code, reason) => {
      call.error = typeof code === "string" ? new PhoneError(code) : code;
      call.finish(reason);
      return call;
    };
    if (!peer.h) return refuse("emptyNumber", "notFound");
    if (!given(parameters)) return refuse("badParameters", "unknown");
    if (this.#machine === "loggedOut" || this.#isLoggingOut) return refuse("loggedOut", "auth");
    if (this.state === "failed" && !["noToken", "staleToken"].includes(this.#error.code)) return refuse(this.#error, "auth");
    if (this.#lines > (this.options.maximumCalls ?? 2)) return refuse("tooManyCalls", "busy");
    this.holdOthers(call);
    this.#watch(call, WATCHDOG);
    this.#askAgainForToken();
    this.#connect();
    this.#dialWaiting();
    return call;
  }

  /** A call waits for the login: a push's session may not dial. */
  #dialWaiting() {
    if (!this.#session || this.#wake) return;
    for (const call of this.#live()) call.dial();
  }

  /** One call talks at a time. */
  holdOthers(than) {
    const members = this.groupOf(than);
    for (const call of this.#live()) if (!members.includes(call) && call.phase === "connected") call.hold(true);
  }

  // — groups: calls that hear each other count as one —

  /** All of the call's group, itself included. */
  groupOf(call) { return call.group === null ? [call] : this.#live().filter((one) => one.group === call.group); }

  get #lines() { return new Set(this.#live().map((call) => call.group ?? call)).size; }

  #join(call, other) {
    const members = new Set([...this.groupOf(call), ...this.groupOf(other)]);
    const number = ++this.#groups;
    for (const member of members) member.group = number;
    return members;
  }

  /** The gateway has joined them: who is held talks along. */
  merged(call, other) {
    if (call.isOver || other.isOver) return;
    for (const member of this.#join(call, other)) {
      member.hold(false);
      member.changed();
    }
    this.listen();
  }

  /** One alone is no group. */
  parted(call) {
    if (call.group === null) return;
    const others = this.groupOf(call).filter((one) => one !== call);
    const changed = others.length === 1 ? [call, others[0]] : [call];
    for (const one of changed) one.group = null;
    this.listen();
    for (const one of changed) if (!one.isOver) one.changed();
  }

  /** After a parting: one call talks at a time, or one group. */
  holdUnheard() { if (this.#listening.length) this.holdOthers(this.#listening[0]); }

  /** A snapshot's word on them. */
  #takeGroups(rows) {
    const known = rows.map((row) => [row, this.#known.get(row.call)]).filter(([, call]) => call && !call.isOver);
    for (const [, call] of known) call.group = null;
    for (const [row, call] of known) {
      for (const id of Array.isArray(row.group) ? row.group : []) {
        const other = this.#known.get(id);
        if (other && !other.isOver) this.#join(call, other);
      }
    }
    this.listen();
  }

  /** Microphone and loudspeaker belong to the call that is neither held nor only ringing, and to its group; the latest, were there two. */
  listen() {
    const heard = this.#live().filter((call) => call.isHeard);
    const next = heard.sort((a, b) => (b.connectedAt ?? Infinity) - (a.connectedAt ?? Infinity))[0] ?? null;
    const all = next ? this.groupOf(next).filter((call) => call.isHeard) : [];
    const last = this.#listening;
    this.#listening = all;
    for (const call of last) if (!all.includes(call)) call.listenTo(false);
    for (const call of all) call.listenTo(true);
  }

  /** A call is the name of its watchdog, and of its time in the list after its end. */
  #watch(call, ms) {
    this.timers.after(call, ms, () => {
      call.isGivenUp = !call.isOutgoing;
      if (this.#error?.code === "unreachable") call.error ??= this.#error;
      call.finish("unknown");
    });
  }

  tapped(call) {
    this.#pusher?.close(call.id);
    if (this.timers.stop(call)) this.#watch(call, WATCHDOG_TAPPED);
  }
  answeredStart(call) {
    call.node = this.#session?.node ?? null;
    if (!call.isOver) this.timers.stop(call);
  }

  ended(call) {
    this.parted(call);
    this.listen();
    this.#pusher?.close(call.id);
    this.timers.after(call, ENDED_SHOWN, () => {
      this.calls = this.calls.filter((one) => one !== call);
      this.emit("calls");
    });
  }

  // — a call comes —

  push(push) {
    const { call: id, wake } = push;
    if (typeof wake !== "string") return null;
    this.#rung = this.seams.clock.now();
    if (this.#machine === "loggedOut" || this.#isLoggingOut) return null;
    // opened by a token without the call: the snapshot has it
    if (!id) return this.#connect(push) ?? null;
    const known = this.#known.get(id);
    if (known) {
      if (known.hasNoSession && !known.isOver && isAddress(push.gw)) this.#openFurther(push, known);
      if (push.answers) known.answer();
      return known;
    }
    this.#session?.hurry();
    this.#makeRoom();
    const isOfOtherNode = this.#isOfOtherNode(push);
    const isBusy = this.#lines >= (this.options.maximumCalls ?? 2);
    // the session of a push whose call is over may wait for a gateway that nobody reaches
    if (this.#wake && this.#wake.call !== id && !this.isOnline && !this.#live().some((call) => call.id === this.#wake.call)) this.#finishSession();
    if (isBusy || (isOfOtherNode ? !this.#hasRoom(push) : this.#wake && this.#wake.call !== id)) {
      this.#rejectID(id, { scope: "device", reason: "busy" }, push);
      return null;
    }
    const call = this.#add(new Call(this, id, "incoming", party(push.from)));
    call.pushed = push;
    call.pushedAt = this.seams.clock.now();
    call.describe(push);
    this.#watch(call, WATCHDOG);
    this.emit("incoming", { call });
    if (isOfOtherNode) this.#openFurther(push, call); else if (this.#session) this.#probe(call); else this.#connect(push);
    if (push.answers) call.answer();
    return call;
  }

  /** The session that there is says nothing of a call that was over before; of a live one it does so before it answers a request. */
  #probe(call) {
    (call.session ?? this.#session).request("device.state", null, { state: this.#isForeground ? "fg" : "bg" }, () => {
      // a node that does not have it says nothing of it: its own is still to be reached
      if (call.isOver || call.isOffered || (!call.session && this.#isOfOtherNode(call.pushed))) return;
      this.ask("call.reject", call.id, { scope: "device", reason: "mediaFailed" }, (d, failure) => {
        if (!call.isOffered) call.finish(endReason(failure?.reason));
      });
    });
  }

  /** `one` is a further session; null: the phone's own. */
  #takeSnapshot(rows, one) {
    const wake = one ? one.wake : this.#wake, { node } = one ?? this.#session;
    for (const row of rows) {
      if (wake) wake.call ??= row.call;
      const known = this.#known.get(row.call);
      if (known && !known.isOver) this.#belongs(known, one);
      if ((!known || (!known.isOffered && !known.isOutgoing)) && (row.state !== "ringing" || row.dir === "out")) {
        if (!wake || wake.call === row.call) this.#takeUp(row, one); else if (!one) this.#orphans.set(row.call, row);
      } else if (row.dir === "in" && row.state === "ringing" && typeof row.sdp === "string") {
        this.#offered(row.call, row, one);
      } else {
        known?.heardMuted(row.muted, one ?? this.#session);
      }
    }
    this.#takeGroups(rows);
    const named = new Set(rows.map((row) => row.call));
    for (const call of this.#live()) {
      if (call.session !== one || named.has(call.id) || (call.isOutgoing && call.phase === "starting")) continue;
      // a node speaks for its own calls only
      if (call.node && node && call.node !== node) this.#loseSession(call); else call.isMissing = true;
    }
  }

  /** A call that this page never had: it was loaded again, or killed. */
  #takeUp(row, one = null) {
    if (this.options.takesUp === false) {
      (one ?? this.#session)?.request("call.end", row.call, { reason: "appRestart" });
      return this.#known.get(row.call)?.finish("appRestart");
    }
    const isIncoming = row.dir === "in", known = this.#known.get(row.call);
    const call = known ?? new Call(this, row.call, isIncoming ? "incoming" : "outgoing", party(isIncoming ? row.from : row.to), { account: row.acct });
    this.timers.stop(call);
    call.isOffered = true;
    this.#belongs(call, one);
    call.capabilities = row.caps ?? null;
    call.describe(row);
    // who hears of it finds it as it stands: a call that was answered does not ring
    call.takeUp(row, () => {
      if (!known) this.#add(call);
      this.emit("taken", { call });
    });
  }

  #offered(id, d, one) {
    let call = this.#known.get(id);
    if (call) this.#belongs(call, one);
    if (call?.isOver) {
      // given up here, but alive: this device is out, others ring on
      if (call.isGivenUp) this.#rejectID(id, { scope: "device", reason: "mediaFailed" });
      call.isGivenUp = false;
      return;
    }
    const isNew = !call;
    if (isNew) this.#makeRoom();
    if (isNew && this.#lines >= (this.options.maximumCalls ?? 2)) return (one ?? this.#session).request("call.reject", id, { scope: "device", reason: "busy" });
    call ??= new Call(this, id, "incoming", party(d.from));
    this.#belongs(call, one);
    Object.assign(call, { peer: party(d.from), account: d.acct ?? null, capabilities: d.caps ?? null, isOffered: true });
    call.describe(d);
    this.timers.stop(call);
    if (isNew) this.emit("incoming", { call: this.#add(call) });
    if (call.isOver) return;
    call.offered(d.sdp, d.gen, call.pushed ? { openMs: Math.max(0, Math.round((one?.onlineAt ?? this.#onlineAt) - call.pushedAt)) } : undefined);
    call.changed();
  }

  #heard(one, type, id, d) {
    if (type === "pong") return this.#endMissing(one);
    if (type === "auth.expiring") return one ? undefined : this.#askForToken();
    if (!one && type === "hist.changed") return this.emit("history", { isErased: d.id === 0 });
    if (!one && type === "dir.changed") return this.emit("directory");
    if (typeof id !== "string") return;
    if (type === "call.wake") return this.#woken({ ...d, call: id });
    if (type === "call.offer") return this.#offered(id, d, one);
    const call = this.#known.get(id);
    if (this.#tests.has(id)) this.#tests.get(id)(type, d); else if (call) call.receive(type, d); else if (type === "call.gone") this.emit("gone", { id, reason: endReason(d.reason) });
  }

  /** What the snapshot lacked and no `call.gone` named until the session's first `pong`. */
  #endMissing(one) { for (const call of this.#live()) if (call.isMissing && call.session === one) call.finish("unknown"); }

  reject(call, d) { this.#rejectID(call.id, d, call.pushed); }

  /** By the socket, and beside it by HTTP where the socket is not there yet: whichever comes first counts. */
  #rejectID(id, d, push) {
    const { session = null } = this.#known.get(id) ?? {}, isOfOtherNode = !session && push && this.#isOfOtherNode(push);
    const wake = session ? session.wake : this.#wake, isOurs = !wake || wake.call === id;
    if (push && (!(session ?? this.#session)?.isOnline || isOfOtherNode || !isOurs)) {
      const gw = push.gw ?? this.gateway;
      // beside the socket's path: a node may be behind a longer one
      const url = new URL(/\/v1\/connect$/.test(gw) ? `calls/${id}/reject` : `/v1/calls/${id}/reject`, gw.replace(/^ws/, "http"));
      const headers = { authorization: `Bearer ${push.wake}`, "content-type": "application/json" };
      Promise.resolve(this.seams.fetch(url.href, { method: "POST", headers, body: JSON.stringify(d), keepalive: true })).catch(() => {});
    }
    if (!isOfOtherNode && isOurs) this.ask("call.reject", id, d);
  }

  // — what calls say —

  /** False: there is no session. `done(d, failure)`. */
  ask(t, call, d, done = () => {}) {
    const session = this.#sessionOf(call);
    if (!session) return false;
    if (!session.request(t, call, d, done)) done(null, { code: "tooMany" });
    return true;
  }

  tell(t, call, d) { this.#sessionOf(call)?.notify(t, call, d); }

  /** Of a call over the session of its node. */
  #sessionOf(call) {
    const one = this.#known.get(call)?.session;
    return this.#further.has(one) ? one : this.#session;
  }

  // — devices, pushes —

  askForMicrophone() { return this.devices.ask(); }
  /** A stream of the chosen microphone, for who asks to see its level before a call. */
  async openMicrophone() {
    try { return await this.devices.open(); } catch (error) {
      const fault = microphoneError(error);
      this.devices.failed(fault);
      throw fault;
    }
  }
  microphones() { return this.devices.list("audioinput"); }
  loudspeakers() { return this.devices.list("audiooutput"); }
  useMicrophone(id) { return this.devices.useMicrophone(id); }
  useLoudspeaker(id) { return this.devices.useLoudspeaker(id); }

  /** Only who wants pushes loads what they need. */
  async enablePush(registration, worker = globalThis.navigator?.serviceWorker) {
    const { Pusher } = await import("./push.js");
    this.#pusher ??= new Pusher(this, this.seams);
    return this.#pusher.enable(registration, worker);
  }
  async disablePush() { return this.#pusher?.disable(); }

  register(push) {
    this.#isPushDropped = !push && (this.#push !== null || this.#isPushDropped);
    this.#push = push;
    this.#register();
  }

  /** At every login and new registration: the gateway may have forgotten. One at a time. */
  #register() {
    if (!this.isOnline || this.#wake || !this.#token || this.#isLoggingOut) return;
    if (this.#registering) { this.#isRegistrationOld = true; return; }
    this.#isRegistrationOld = false;
    if (this.#isPushDropped) {
      this.#isPushDropped = false;
      this.ask("device.del", null);
    }
    if (!this.#push && !this.#preferences) return;
    this.#registering = true;
    this.ask("device.put", null, { ...(this.#push && { push: this.#push }), ...(this.#preferences && { prefs: this.#preferences }) }, (d, failure) => {
      this.#registering = false;
      this.emit("registered", { error: failure?.code ?? null });
      if (this.#isRegistrationOld) this.#register();
    });
  }

  /** Only who asks loads what it needs. One at a time. */
  async preflight() {
    const { preflight } = await import("./preflight.js");
    return this.#preflight ??= preflight(this).finally(() => { this.#preflight = null; });
  }
  #preflight = null;
  /** What the gateway says of these test calls, which are no calls of anybody's. */
  #tests = new Map();
  watchTest(id, hear) { if (hear) this.#tests.set(id, hear); else this.#tests.delete(id); }
  gatewayCaps = [];

  /** A request that changes nothing; true: the gateway has answered. */
  echo() { return new Promise((done) => { if (!this.ask("device.state", null, { state: this.#isForeground ? "fg" : "bg" }, () => done(true))) done(false); }); }

  // — what the gateway keeps of the user —

  history(page) { return this.#directory.history(page); }
  names(numbers) { return this.#directory.names(numbers); }
  findNames(text, options) { return this.#directory.find(text, options); }
  ownNumbers() { return this.#directory.ownNumbers(); }

  // — the end —

  logOut() {
    if (this.#machine === "loggedOut") return Promise.resolve();
    this.#logOuts ??= new Promise((done) => { this.#loggedOutNow = done; });
    const promise = this.#logOuts;
    if (this.#isLoggingOut) return promise;
    for (const call of this.#live()) call.end();
    this.#isLoggingOut = true;
    if (!this.#token) this.#loggedOut(); else if (this.#session) this.#sendLogOut(); else this.#connect();
    return promise;
  }
  #loggedOutNow = () => {};

  #sendLogOut() { if (this.isOnline && !this.#wake) this.ask("device.del", null, null, () => this.#loggedOut()); }

  #loggedOut() {
    this.#isLoggingOut = false;
    this.#token = this.#push = this.#preferences = null;
    for (const call of this.#live()) call.finish("localEnd");
    this.#letGo();
    this.#move("loggedOut");
    this.#loggedOutNow();
  }

  #letGo() {
    this.#turn = {};
    this.#isTokenAsked = this.#isTokenWanted = false;
    this.timers.stop("token", "tokenFloor");
    this.#finishAll();
  }

  close() {
    for (const call of this.#live()) call.end();
    this.#letGo();
    this.timers.stop();
    this.calls = [];
    for (const stop of this.#stops.splice(0)) stop();
    this.devices.close();
    this.#pusher?.close();
    this.#move("idle");
  }
}
