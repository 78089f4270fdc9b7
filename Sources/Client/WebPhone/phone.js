// The web phone: what a person sees. The protocol is the package's (trunkline/trunkline.js); this file has the login, the line and what is asked
// before a call; calls are in calls.js and cards.js, the dialler in dialer.js, words in words.js.
import { Phone, claims, readPush } from "./trunkline/trunkline.js";
import { askToNotify, mayAskToNotify, stopSounds } from "./bell.js";
import { followNumbers } from "./account.js";
import { chosen, followAll, gone, missBefore, noteLine, openHistory, place, refusalWords, sound, takeUp } from "./calls.js";
import { closePad, press, showCalls, takesDigits, wireCalls } from "./cards.js";
import { canUndo, showClear, wireClear } from "./clear.js";
import { close as closeDialer, isOpenOverCall, showDialer, wireDialer } from "./dialer.js";
import { dismissLast, dropCards, showEnded, wireEnded } from "./ended.js";
import { keepKeyboard } from "./keyboard.js";
import { shownName, t } from "./language.js";
import { $, app, device, notice, read, show, status, tab } from "./page.js";
import { canPush, enablePush, followNotifications, resumePush, worker } from "./push.js";
import { followHistory, showRecent, wireRecent } from "./recent.js";
import { closeSettings, resumeDoNotDisturb, showSettings, wireSettings } from "./settings.js";
import { showShortcuts, useShortcut } from "./shortcuts.js";
import { typeAnywhere } from "./typing.js";
import { askVersion, isOutdated } from "./version.js";
import { awayWords, errorWords, reasonWords, setupWords, warningWords } from "./words.js";

const TOKEN = "trunkline.token";
/** One that talks, and all that one person can be called by at once: each is shown, and nobody hears a busy tone for it. */
const LINES = 16;
/** Why somebody has to log in again; and whether this login has looked after its push subscription. */
let loginWords = "", resumed = false, wasOnline = false;
/** What a push's session has had without a login; null for who has logged in. */
let ofPush = null;

// — logging in —

const withoutHash = () => window.history.replaceState(null, "", location.pathname + location.search); // secrets leave the address bar
const isStaying = () => device.get(TOKEN) !== null;
const storedToken = () => tab.get(TOKEN) ?? device.get(TOKEN);

function keepToken(token, stays) {
  tab.set(TOKEN, token);
  if (stays) device.set(TOKEN, token);
}

function stay(isOn) {
  if (isOn && storedToken()) device.set(TOKEN, storedToken()); else device.remove(TOKEN);
}

function forget() {
  for (const name of [TOKEN, "push", "muted"]) tab.remove(name);
  device.remove(TOKEN);
}

const isToken = (token) => typeof claims(token).sub === "string";

/** A login link, a page that a push opened, or one that was loaded again. */
function begin() {
  const linked = new URLSearchParams(location.hash.slice(1)).get("token");
  const push = readPush(location.hash);
  if (linked || push || window.history.state) withoutHash();
  if (linked) {
    tab.remove("push");
    if (!isToken(linked)) return showLogin(t("login.notToken"));
    keepToken(linked, isStaying());
  }
  // without call and tap: a page that is loaded again neither rings nor answers before the gateway has said how the call stands
  if (push) tab.set("push", JSON.stringify({ wake: push.wake, gw: push.gw, device: push.device }));
  const token = storedToken(), pushed = push ?? read(tab, "push");
  if (!token && !pushed) return showLogin();
  connect(token, pushed);
}

function connect(token, push = null) {
  loginWords = "";
  resumed = false;
  ofPush = token ? null : { session: false, call: false };
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const phone = app.phone = new Phone(`${scheme}://${location.host}/v1/connect`, {
    maximumCalls: LINES, ...(token && { token: () => token }), ...(push && { push, device: push.device ?? claims(token ?? "").dev }),
  });
  globalThis.trunkline = phone; // for the console and for tests
  openHistory(token ? claims(token).sub : phone.device);
  followHistory(phone);
  followNumbers(phone);
  const on = (type, f) => phone.addEventListener(type, (event) => { if (phone === app.phone) f(event); });
  on("state", () => lineChanged());
  on("calls", () => {
    followAll();
    if (ofPush) lineChanged();
  });
  on("incoming", ({ call }) => { if (new URLSearchParams(location.search).has("answer")) call.answer(); });
  on("taken", ({ call }) => takeUp(call));
  on("gone", ({ id, reason }) => {
    gone(id, reason);
    if (ofPush && chosen().live.length === 0) leave(reasonWords(reason));
  });
  on("devices", () => { render(); showSettings(); });
  on("registered", () => showSettings());
  resumeDoNotDisturb();
  followAll();
  lineChanged();
}

function lineChanged() {
  const { state, error } = app.phone;
  if (state === "online" && !wasOnline) askVersion();
  if (state === "online" && !wasOnline) missBefore();
  wasOnline = state === "online";
  noteLine();
  if (state === "online" && !resumed) {
    resumed = true;
    resumePush();
  }
  // the page has this one token: who is refused needs another
  const isOut = state === "loggedOut" || (state === "failed" && ["loginRefused", "revoked"].includes(error.code));
  if (isOut) return leave(errorWords(error));
  if (ofPush && isPushOver()) return leave("");
  render();
}

/** A push logs nobody in: once its call is over, and the gateway has heard so, the page is a login again. */
function isPushOver() {
  const { state, error, isOnline, calls } = app.phone;
  // a phone that was just made has not begun with its push
  ofPush.session ||= state !== "idle";
  ofPush.call ||= calls.length > 0;
  if (calls.length) return false;
  return isOnline ? ofPush.call : ofPush.session && state === "idle" && !error;
}

/** After the event that told it: the phone would ask for the token once more. */
function leave(text) {
  const { phone } = app;
  app.phone = globalThis.trunkline = null;
  queueMicrotask(() => phone.close());
  forget();
  stopSounds();
  dropCards();
  closeSettings();
  showLogin(text);
}

function showLogin(text = "") {
  loginWords = text;
  render();
  $("stay").checked = matchMedia("(display-mode: standalone)").matches;
  $("token").value = "";
  $("token").focus();
}

async function logIn() {
  const token = $("token").value.trim();
  if (!isToken(token)) return showLogin(t("login.notToken"));
  keepToken(token, $("stay").checked);
  connect(token);
  await allow();
}

// — what is shown —

function render() {
  const { phone } = app;
  const calls = chosen();
  showLine();
  show("login", !phone);
  showAway();
  showSetup(calls);
  showDialer(calls);
  showCalls(calls, isOpenOverCall());
  showEnded();
  show("open-settings", !!phone);
  showNotice(calls);
  const hasRecent = showRecent(calls);
  showClear(hasRecent);
  show("recent", hasRecent || (!!phone && canUndo()));
  showShortcuts(!!calls.front && !isOpenOverCall());
  keepKeyboard();
  if (phone) sound(calls);
}
app.render = render;

function showLine() {
  const { phone } = app;
  if (!phone) return status(t(loginWords ? "line.notConnected" : "line.notLoggedIn"), loginWords ? "bad" : "wait");
  if (phone.state === "online") {
    const line = phone.user ? t("line.onlineAs", { user: shownName(phone.user) }) : t("line.online");
    return status(phone.doNotDisturb ? t("line.quiet", { line }) : line, phone.doNotDisturb ? "wait" : "good");
  }
  if (phone.state === "failed") return status(t(phone.error.code === "replaced" ? "line.elsewhere" : "line.notConnected"), "bad");
  status(t(phone.isReachable ? "line.connecting" : "line.notConnected"), phone.isReachable ? "wait" : "bad");
}

/** Another tab or browser has the line, or this browser cannot call at all. */
function showAway() {
  const error = app.phone?.state === "failed" ? app.phone.error : null;
  const [title, act] = awayWords(error?.code) ?? [];
  const isNew = !!title && $("away").hidden;
  show("away", !!title);
  if (!title) return;
  $("away-title").textContent = title;
  $("away-words").textContent = errorWords(error);
  show("take-back", !!act);
  if (act) $("take-back").textContent = act;
  if (isNew && act) $("take-back").focus();
}

const mayAskForMicrophone = () => app.phone.mayAskForMicrophone && !app.phone.microphoneFault;

function showSetup({ front }) {
  const words = app.phone ? setupWords({ microphone: mayAskForMicrophone(), notifications: mayAskToNotify(), push: canPush() }) : "";
  show("setup", !!app.phone && !front && app.phone.state === "online" && !!words);
  $("setup-words").textContent = words;
}

function showNotice({ front }) {
  const { phone } = app;
  if (!phone) return notice(loginWords);
  if (phone.state === "failed") return notice("");
  if (!phone.isReachable) {
    const why = phone.error?.code === "unreachable" ? errorWords(phone.error) : t("line.unreachable");
    return notice(t(front?.phase === "connected" ? "line.callGoesOn" : "line.noCalls", { why }));
  }
  if (front?.isAudioBlocked) {
    return notice(t("call.soundOff"), { label: t("call.soundOn"), run: () => front.play() });
  }
  if (front?.microphoneFault) return notice(errorWords(front.microphoneFault), { label: t("tryAgain"), run: () => front.openMicrophone().catch(() => {}) });
  if (front?.isReconnecting) return notice(t("call.noAudio"));
  const fault = phone.microphoneFault ?? (front ? phone.microphoneFallback ?? phone.loudspeakerFallback : null);
  if (fault?.code === "microphoneBusy" && !front) return notice(errorWords(fault), { label: t("tryAgain"), run: () => phone.askForMicrophone() });
  if (fault && fault === phone.microphoneFault && chosen().live.some((call) => call.state === "ringing")) {
    const act = fault.code === "microphoneInsecure" ? null : { label: t("tryAgain"), run: () => phone.askForMicrophone() };
    return notice(t("call.cannotAnswer", { why: errorWords(fault) }), act);
  }
  const [warning] = front?.warnings ?? [];
  if (!fault && !front && isOutdated()) return notice(t("page.isNew"), { label: t("page.load"), run: () => location.reload() });
  notice(fault ? errorWords(fault) : refusalWords() || (warning ? warningWords(warning) : ""));
}

// — hands —

/** From a click: browsers ask a person only then. */
async function allow() {
  const asked = askToNotify();
  if (navigator.mediaDevices && (mayAskForMicrophone() || !app.phone.microphoneFault)) await app.phone.askForMicrophone();
  await asked;
  if (app.phone && canPush() && globalThis.Notification?.permission === "granted") await enablePush();
  render();
}

wireCalls();
wireDialer();
wireRecent();
wireSettings({ logOut: () => app.phone?.logOut(), stay, isStaying });
$("login-form").onsubmit = (event) => {
  event.preventDefault();
  logIn();
};
$("allow").onclick = () => allow();
$("take-back").onclick = () => app.phone?.start();
// what was wrong with the token before is not wrong with this one
$("token").oninput = () => {
  if (!loginWords) return;
  loginWords = "";
  render();
};
wireClear();
wireEnded(place);
const play = () => { const { front } = chosen(); if (front?.isAudioBlocked) front.play(); };
addEventListener("pointerdown", play);
addEventListener("keydown", (event) => {
  play();
  if (event.key === "Escape" && !event.isComposing && !event.defaultPrevented) return leaveOpen();
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (useShortcut(event)) return;
  if (/^[0-9*#]$/.test(event.key) && takesDigits()) press(event.key); else typeAnywhere(event);
});
/** Escape: one after the other, the last opened first. It ends no call. */
const leaveOpen = () => closeSettings() || (isOpenOverCall() && (closeDialer(), true)) || closePad() || dismissLast();
addEventListener("beforeunload", (event) => { if (chosen().live.some((call) => call.state !== "ringing")) event.preventDefault(); });

followNotifications();
worker();
begin();
