// The web phone: what a person sees. All protocol work is in trunkline.js.
import { Trunkline, claims } from "./trunkline.js";

const $ = (id) => document.getElementById(id);
const REASONS = {
  remoteHangup: "They hung up", callerCancelled: "The caller gave up", answeredElsewhere: "Answered on another device",
  declinedElsewhere: "Declined on another device", busyElsewhere: "Busy on another device", unanswered: "No answer", busy: "Busy",
  declined: "Declined", mediaTimeout: "No audio path in time", mediaFailed: "Audio could not be set up", networkLost: "Network lost",
  trunkLost: "The telephone side went silent", trunkFailed: "The telephone network could not connect the call", notFound: "Number not found", forbidden: "Not allowed", codec: "No common codec",
  overload: "The gateway is busy", server: "The gateway ended the call", localEnd: "You hung up", unknown: "The call is gone",
  emergency: "Emergency numbers cannot be called here", gatewayRestart: "The gateway restarted",
};

let line, call, meters;

function token() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) {
    sessionStorage.setItem("token", found);
    history.replaceState(null, "", location.pathname + location.search); // the link's secret leaves the address bar
  }
  return found ?? sessionStorage.getItem("token");
}

/** `#wake=…&device=…`: this page was opened by a push. */
function woken() {
  const hash = new URLSearchParams(location.hash.slice(1));
  if (!hash.get("wake")) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return { wake: hash.get("wake"), device: hash.get("device") };
}

function logIn(secret) {
  try { claims(secret); } catch { return showLogin("That is not a login token."); }
  connect({ token: secret });
}

function connect(proof) {
  $("login").hidden = true;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  line = new Trunkline({ url: `${scheme}://${location.host}/v1/connect`, ...proof });
  line.addEventListener("state", showLine);
  line.addEventListener("incoming", (event) => incoming(event.call));
  line.addEventListener("gone", (event) => { $("status").textContent = REASONS[event.reason] ?? event.reason; });
  line.addEventListener("error", (event) => { sessionStorage.removeItem("token"); showLogin(event.message); });
  window.trunkline = line; // for the console and for tests
  showLine();
}

function showLogin(text = "") {
  $("status").textContent = text || "not logged in";
  $("login").hidden = false;
  $("dialer").hidden = true;
}

function showLine() {
  $("status").textContent = line.state === "online" ? `${line.token ? claims(line.token).sub : "woken"} · online` : line.state;
  $("dialer").hidden = line.state === "offline" || !!call;
}

function incoming(next) {
  if (call) return next.reject("busy");
  follow(next);
  ring(true);
  if (new URLSearchParams(location.search).has("answer")) next.answer();
}

function follow(next) {
  call = next;
  window.call = next;
  $("digits").textContent = "";
  $("quality").textContent = "";
  next.addEventListener("state", showCall);
  next.addEventListener("digit", (event) => { $("digits").textContent += event.digit; });
  next.addEventListener("quality", showQuality);
  showCall();
}

function phase() {
  if (call.held) return "on hold";
  switch (call.state) {
    case "ringing": return "is calling…";
    case "answering": return "connecting…";
    case "starting": return "setting up audio…";
    case "ready": return "calling…";
    case "progress": return call.progress === "ringing" ? "ringing…" : "calling…";
    case "connected": return `connected · ${duration(performance.now() - call.times.connected)}`;
    default: return REASONS[call.reason] ?? call.reason ?? "ended";
  }
}

/** Milliseconds as minutes and seconds. */
function duration(elapsed) {
  const seconds = Math.floor(elapsed / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function showCall() {
  if (!call) return;
  if (call.state !== "ringing") ring(false);
  $("dialer").hidden = true;
  $("call").hidden = false;
  $("call").dataset.state = call.state;
  $("peer").textContent = call.peer.n || call.peer.h || "Unknown";
  $("phase").textContent = phase();
  $("answer").hidden = call.state !== "ringing";
  $("mute").hidden = $("keypad").hidden = call.state !== "connected";
  $("mute").setAttribute("aria-pressed", call.muted);
  $("hangup").textContent = call.state === "ringing" ? "Decline" : "Hang up";
  if (call.state === "connected" && !meters) meters = startMeters(call);
  if (call.state === "ended") ended();
}

function ended() {
  meters?.stop();
  meters = null;
  const row = document.createElement("li");
  const [who, how] = [document.createElement("span"), document.createElement("span")];
  who.textContent = `${call.direction === "incoming" ? "↘" : "↗"} ${call.peer.n || call.peer.h || "Unknown"}`;
  how.textContent = phase();
  row.append(who, how);
  $("history").prepend(row);
  while ($("history").children.length > 20) $("history").lastChild.remove();
  call = null;
  $("call").hidden = true;
  showLine();
}

function showQuality() {
  const { level, cause } = call.quality ?? {};
  const text = [call.codec, level && `quality ${level}`, cause].filter(Boolean);
  if (meters?.text) text.push(meters.text);
  $("quality").textContent = text.join(" · ");
}

/** Level meters in dBFS ten times a second, and a line of loss, jitter and round trip once a second. */
function startMeters(of) {
  const context = new AudioContext();
  context.resume();
  const tap = (stream) => {
    const node = context.createAnalyser();
    node.fftSize = 1024;
    if (stream) context.createMediaStreamSource(stream).connect(node);
    return node;
  };
  const nodes = { in: tap(of.remoteStream), out: tap(of.microphone) };
  const samples = new Float32Array(1024);
  const state = { peaks: { in: -90, out: -90 }, text: "" };
  const levels = setInterval(() => {
    for (const [name, node] of Object.entries(nodes)) {
      node.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
      const level = power > 0 ? 10 * Math.log10(power) : -90;
      state.peaks[name] = Math.max(state.peaks[name], level);
      $(`level-${name}`).value = Math.max(-60, level);
    }
  }, 100);
  const numbers = setInterval(async () => {
    if (of.state !== "connected") return;
    $("phase").textContent = phase();
    const stats = [...(await of.pc.getStats()).values()];
    const inbound = stats.find((s) => s.type === "inbound-rtp");
    const pair = stats.find((s) => s.type === "candidate-pair" && s.nominated);
    if (!inbound) return;
    const total = inbound.packetsReceived + inbound.packetsLost;
    const loss = total ? (100 * inbound.packetsLost) / total : 0;
    const delay = inbound.jitterBufferEmittedCount ? (1000 * inbound.jitterBufferDelay) / inbound.jitterBufferEmittedCount : 0;
    state.text = `loss ${loss.toFixed(1)} % · jitter ${(inbound.jitter * 1000).toFixed(0)} ms · buffer ${delay.toFixed(0)} ms`
      + (pair?.currentRoundTripTime !== undefined ? ` · round trip ${(pair.currentRoundTripTime * 1000).toFixed(0)} ms` : "");
    showQuality();
  }, 1000);
  return Object.assign(window.meters = state, { stop() { clearInterval(levels); clearInterval(numbers); context.close(); } });
}

let bell;
function ring(on) {
  if (!on) { bell?.close(); bell = null; return; }
  if (bell) return;
  bell = new AudioContext();
  const gain = bell.createGain();
  gain.gain.value = 0;
  gain.connect(bell.destination);
  for (const frequency of [440, 480]) {
    const tone = bell.createOscillator();
    tone.frequency.value = frequency;
    tone.connect(gain);
    tone.start();
  }
  for (let second = 0; second < 45; second += 3) {
    gain.gain.setValueAtTime(0.05, bell.currentTime + second);
    gain.gain.setValueAtTime(0, bell.currentTime + second + 1);
  }
}

for (const digit of "123456789*0#") {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = digit;
  button.onclick = () => call?.dtmf(digit).then(() => { $("digits").textContent += digit; }, () => {});
  $("keypad").append(button);
}
$("login-form").onsubmit = (event) => { event.preventDefault(); sessionStorage.setItem("token", $("token").value.trim()); logIn($("token").value.trim()); };
$("dial-form").onsubmit = (event) => {
  event.preventDefault();
  const number = $("number").value.replace(/[^\d+*#]/g, "");
  if (number && line.state === "online") follow(line.call(number));
};
$("answer").onclick = () => call?.answer();
$("mute").onclick = () => call?.mute(!call.muted);
$("hangup").onclick = () => (call?.state === "ringing" ? call.reject() : call?.hangUp());

const push = woken();
const secret = push ? null : token();
if (push) connect(push); else if (secret) logIn(secret); else showLogin();
