// The web phone: what a person sees. The protocol is in trunkline.js, what is said in words.js, what sounds in bell.js.
import { Phone, claims } from "./trunkline/trunkline.js";
import { askToNotify, bell, mayAskToNotify, ringback } from "./bell.js";
import { History, when } from "./history.js";
import { startMeters } from "./meters.js";
import { callWords, duration, isMissed, microphoneWords, reasonWords, setupWords } from "./words.js";

const $ = (id) => document.getElementById(id);
let line, call, meters, history, stats = "", clock, goneWords = "";

// — logging in —

function token() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) {
    sessionStorage.setItem("token", found);
    window.history.replaceState(null, "", location.pathname + location.search); // the link's secret leaves the address bar
  }
  return found ?? sessionStorage.getItem("token");
}

/** `#wake=…&device=…`: this page was opened by a push. Kept, so that it may be loaded again while the call lives. */
function woken() {
  const hash = new URLSearchParams(location.hash.slice(1));
  if (hash.get("wake")) {
    sessionStorage.setItem("wake", JSON.stringify({ wake: hash.get("wake"), device: hash.get("device") }));
    window.history.replaceState(null, "", location.pathname + location.search);
  } else if (hash.get("token")) {
    sessionStorage.removeItem("wake");
  }
  return JSON.parse(sessionStorage.getItem("wake"));
}

function logIn(secret) {
  if (!claims(secret).sub) return showLogin("That is not a login token.");
  sessionStorage.setItem("token", secret);
  connect({ token: () => secret });
}

function connect(proof) {
  $("login").hidden = true;
  notice("");
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  line?.close();
  line = new Phone(`${scheme}://${location.host}/v1/connect`, { maximumCalls: 1, ...proof });
  history = new History(proof.token ? claims(proof.token()).sub : proof.push.device);
  line.addEventListener("state", showLine);
  line.addEventListener("incoming", (event) => incoming(event.call));
  line.addEventListener("taken", (event) => takeUp(event.call));
  line.addEventListener("gone", (event) => gone(event));
  line.addEventListener("devices", () => microphone());
  window.trunkline = line; // for the console and for tests
  showHistory();
  showLine();
  microphone();
}

function refused(text) {
  sessionStorage.removeItem("token");
  sessionStorage.removeItem("wake");
  showLogin(text);
}

function showLogin(text = "") {
  notice(text);
  status(text ? "Not connected" : "Not logged in", text ? "bad" : "wait");
  $("login").hidden = false;
  $("dialer").hidden = $("setup").hidden = true;
  $("token").focus();
}

// — the line —

function status(text, level) {
  $("status").textContent = text;
  $("status").dataset.level = level;
}

/** What to do now, in view until it no longer holds. */
function notice(text) {
  if ($("notice").textContent === text) return;
  $("notice").textContent = text;
  $("notice").hidden = !text;
  if (text) announce(text);
}

/** Said once: a screen reader hears words that changed, never the clock. */
function announce(text) {
  if ($("announce").textContent !== text) $("announce").textContent = text;
}

function showLine() {
  if (line.state === "failed") return refused(line.error.text);
  if (line.state === "idle") return;
  const isOnline = line.state === "online";
  if (isOnline) status(line.user ? `${line.user} · online` : "online", "good");
  else status(line.isReachable ? "Connecting…" : "Not connected", line.isReachable ? "wait" : "bad");
  $("dialer").hidden = !!call;
  $("dial").disabled = !isOnline;
  showNotice();
  if (call) showCall(); else showSetup();
}

function showNotice() {
  if (!line.isReachable) {
    return notice(call?.phase === "connected"
      ? "The gateway cannot be reached. Trying again; the call goes on when it is back."
      : "The gateway cannot be reached. Calls are not possible now; trying again.");
  }
  if (call?.isAudioBlocked) return notice("The browser keeps the sound off. Click anywhere on this page to hear the call.");
  notice(microphoneWords((call?.microphoneFault ?? line.microphoneFault)?.code) ?? goneWords);
}

function gone({ id, reason }) {
  if (history.find(id)) history.put({ id, reason });
  showHistory();
  goneWords = reasonWords(reason);
  showNotice();
}

// — the microphone, before it is needed —

function microphone() {
  showNotice();
  showSetup();
}

function showSetup() {
  const words = setupWords({ microphone: line?.mayAskForMicrophone && !line.microphoneFault, notifications: mayAskToNotify() });
  $("setup").hidden = !!call || line?.state !== "online" || !words;
  $("setup-words").textContent = words;
}

/** From a click: browsers ask a person only then. */
async function allow() {
  const notifications = askToNotify();
  await line.askForMicrophone();
  await notifications;
  microphone();
}

// — the call —

function incoming(next) {
  follow(next);
  bell.start(who(next));
  $("answer").focus();
  if (new URLSearchParams(location.search).has("answer")) next.answer();
}

/** This page was loaded again in a call. */
function takeUp(next) {
  const before = JSON.parse(sessionStorage.getItem("call"));
  if (before?.id === next.id) next.mute(before.muted);
  follow(next);
}

const who = ({ peer }) => peer.n || peer.h || "Unknown";

function follow(next) {
  call = next;
  window.call = next;
  stats = goneWords = "";
  $("digits").textContent = "";
  $("quality").textContent = "";
  $("call").dataset.state = "";
  history.put({
    id: call.id, direction: call.direction, name: call.peer.n ?? null, number: call.peer.h ?? null, at: Date.now(), connectedMs: null, reason: null });
  next.addEventListener("state", showCall);
  next.addEventListener("digit", (event) => { $("digits").textContent += event.digit; });
  next.addEventListener("quality", showQuality);
  showCall();
  showHistory();
}

function showCall() {
  if (!call) return;
  if (call.phase === "ended") return ended();
  const state = call.phase;
  const [isRinging, isConnected, isReachable] = [state === "ringing", state === "connected", line.isReachable];
  if (!isRinging) bell.stop();
  const rings = state === "progress" && call.progress === "ringing" && !call.hasEarlyMedia && isReachable;
  if (rings) ringback.start(); else ringback.stop();
  sessionStorage.setItem("call", JSON.stringify({ id: call.id, muted: call.isMuted }));
  const isNew = $("call").dataset.state !== state;
  $("call").dataset.state = state;
  $("dialer").hidden = $("setup").hidden = true;
  $("call").hidden = false;
  $("peer").textContent = who(call);
  $("words").textContent = callWords(call, isReachable);
  $("answer").hidden = !isRinging;
  $("mute").hidden = $("hold").hidden = !isConnected;
  $("keypad").hidden = !isConnected && !call.hasEarlyMedia;
  $("answer").disabled = $("hold").disabled = !isReachable;
  for (const key of $("keypad").children) key.disabled = !isReachable;
  toggle($("mute"), call.isMuted, "Unmute", "Mute");
  toggle($("hold"), call.isHeld, "Resume", "Hold");
  $("hangup").textContent = isRinging ? "Decline" : "Hang up";
  showClock(isConnected && isReachable);
  showMeters(isConnected && !call.isHeld && !call.isHeldByPeer && isReachable);
  showNotice();
  announce(`${who(call)}: ${callWords(call, isReachable)}`);
  if (isNew && isConnected) $("mute").focus();
}

/** The label says what a click does next. */
function toggle(button, isOn, on, off) {
  button.textContent = isOn ? on : off;
  button.classList.toggle("on", isOn);
}

/** Runs while call and gateway are there; else it stands. */
function showClock(runs) {
  const tick = () => {
    const elapsed = call.seconds * 1000;
    $("clock").textContent = duration(elapsed);
    history.put({ id: call.id, connectedMs: elapsed });
  };
  if (call.connectedAt === null) $("clock").textContent = "";
  if (!runs) { clearInterval(clock); clock = null; return; }
  if (clock) return;
  tick();
  clock = setInterval(tick, 1000);
}

function showMeters(runs) {
  $("meters").hidden = !runs;
  if (call.phase !== "connected" || meters) return;
  meters = startMeters(call, (levels) => {
    for (const [name, level] of Object.entries(levels)) $(`level-${name}`).value = Math.max(-60, level);
  }, (text) => { stats = text; showQuality(); });
  window.meters = meters; // for the console and for tests
}

function showQuality() {
  const { level, cause } = call?.quality ?? {};
  $("quality").textContent = [call?.codec, level && `quality ${level}`, cause, stats].filter(Boolean).join(" · ");
}

function ended() {
  const over = call;
  showClock(false);
  bell.stop();
  ringback.stop();
  meters?.stop();
  call = meters = null;
  for (const key of ["call", "wake"]) sessionStorage.removeItem(key);
  const connectedMs = over.connectedAt === null ? null : over.seconds * 1000;
  const reason = over.error?.code.startsWith("microphone") ? over.error.code : over.endReason;
  history.put({ id: over.id, direction: over.direction, name: over.peer.n ?? null, number: over.peer.h ?? null, connectedMs, reason });
  const hadFocus = $("call").contains(document.activeElement);
  $("call").hidden = true;
  $("call").dataset.state = "ended";
  showLine();
  showHistory();
  if (hadFocus && matchMedia("(pointer: fine)").matches) $("number").focus();
  announce(`${who(over)}: ${microphoneWords(reason) ?? reasonWords(reason)}`);
}

// — what was —

function showHistory() {
  const entries = history.entries.filter((entry) => entry.id !== call?.id);
  $("recent").hidden = entries.length === 0;
  $("history").replaceChildren(...entries.map(row));
}

function row(entry) {
  const isIncoming = entry.direction === "incoming";
  const words = entry.reason ? reasonWords(entry.reason) : "Ended while this page was closed";
  const parts = {
    arrow: isIncoming ? "↙" : "↗",
    who: entry.name || entry.number || "Unknown",
    when: when(entry.at),
    how: [isMissed(entry) && "Missed", entry.connectedMs !== null && duration(entry.connectedMs), words].filter(Boolean).join(" · "),
  };
  const button = document.createElement("button");
  for (const [name, text] of Object.entries(parts)) {
    const part = Object.assign(document.createElement("span"), { className: name, textContent: text });
    if (name === "arrow") part.ariaHidden = "true";
    button.append(part);
  }
  button.classList.toggle("missed", isMissed(entry));
  button.ariaLabel = `${isIncoming ? "From" : "To"} ${parts.who}, ${parts.when}, ${parts.how}. Copies the number to the dialler.`;
  button.onclick = () => { if (!call) { $("number").value = entry.number ?? ""; $("number").focus(); } };
  const item = document.createElement("li");
  item.append(button);
  return item;
}

// — hands —

function press(digit) {
  call?.sendDigits(digit).then(() => { $("digits").textContent += digit; }, () => {});
}

for (const digit of "123456789*0#") {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: digit });
  button.onclick = () => press(digit);
  $("keypad").append(button);
}
$("login-form").onsubmit = (event) => {
  event.preventDefault();
  logIn($("token").value.trim());
  if (line) allow();
};
$("dial-form").onsubmit = (event) => {
  event.preventDefault();
  const number = $("number").value.replace(/[^\d+*#]/g, "");
  if (number && line.state === "online") follow(line.call(number));
};
$("allow").onclick = () => allow();
$("clear").onclick = () => { history.clear(); showHistory(); };
$("answer").onclick = () => call?.answer();
$("mute").onclick = () => call?.mute(!call.isMuted);
$("hold").onclick = () => call?.hold(!call.isHeld);
$("hangup").onclick = () => call?.end();
addEventListener("pointerdown", () => { if (call?.isAudioBlocked) call.play(); });
addEventListener("keydown", (event) => {
  if (call?.isAudioBlocked) call.play();
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || $("keypad").hidden || $("call").hidden) return;
  if (/^[0-9*#]$/.test(event.key) && line.isReachable) press(event.key);
});
addEventListener("beforeunload", (event) => { if (call && call.phase !== "ringing") event.preventDefault(); });

const push = woken();
const secret = push ? null : token();
if (push) connect({ push }); else if (secret) logIn(secret); else showLogin();
