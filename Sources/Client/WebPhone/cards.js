// The calls on the screen: the one in front, the one on hold, the one that waits.
import { chosen, dialled, merge, mergeable, nameIn, note, noteTime, party, spoken, transferBoth, transferable, who } from "./calls.js";
import { formatted } from "./dialling.js";
import { isTyping, wasInField } from "./keyboard.js";
import { $, announce, announceOver, app, icon, interrupt, label, show } from "./page.js";
import { closeSettings } from "./settings.js";
import { fillRows, make, write } from "./ui/elements.js";
import { startMeters } from "./meters.js";
import { shownName, t } from "./language.js";
import { callWords, duration, qualityWords, statisticsWords } from "./words.js";

let front = null, shownPhase = null, isPadOpen = false, meters = null, clock = null;
const DIGITS = "123456789*0#";
const LETTERS = { 2: "ABC", 3: "DEF", 4: "GHI", 5: "JKL", 6: "MNO", 7: "PQRS", 8: "TUV", 9: "WXYZ", 0: "+" };


/** Twelve keys; `press(digit)`. */
export function keypad(id, press) {
  for (const digit of DIGITS) {
    const key = Object.assign(document.createElement("button"), { type: "button", id: `${id}-${digit}`, textContent: digit });
    key.dataset.letters = LETTERS[digit] ?? "";
    key.onclick = () => press(digit);
    $(id).append(key);
  }
}

/** `isCovered`: the dialler is in its place. */
export function showCalls(calls, isCovered) {
  const isReachable = app.phone?.isReachable ?? false;
  if (calls.front !== front) change(calls.front);
  show("call", !!front && !isCovered);
  show("ends", !!front);
  // what is set beside a call needs its room
  $("call").classList.toggle("short", $("settings").open);
  showOther(calls, isReachable);
  showWaiting(calls);
  if (!front) return;
  const { phase } = front;
  const isRinging = phase === "ringing", isUp = phase === "connected";
  $("call").dataset.state = front.isReconnecting ? "reconnecting" : phase;
  showPerson();
  $("words").textContent = note(front).transfer ?? callWords(front, isReachable);
  showControls(calls, isUp, isReachable);
  // an Answer that must fail would cost the caller this device: the notice says what to do first
  const mayAnswer = !app.phone.microphoneFault;
  show("answer", isRinging && mayAnswer);
  $("answer").disabled = !isReachable;
  label("hangup", t(isRinging ? "call.decline" : party(front).length > 1 ? "call.hangUpAll" : "call.hangUp"));
  const isHeard = isUp && isReachable && !front.isReconnecting;
  showClock(isHeard);
  showMeters(isUp && isReachable && !front.isHeld && !front.isHeldByPeer && !isPadOpen);
  announce(spoken(front, isReachable));
  if (phase !== shownPhase) moveFocus(phase);
  shownPhase = phase;
}

function change(next) {
  front = next;
  globalThis.call = next; // for the console and for tests
  shownPhase = null;
  isPadOpen = false;
  meters?.stop();
  meters = null;
  clearInterval(clock);
  clock = null;
  $("clock").textContent = "";
  if (!next) $("call").dataset.state = "ended";
  // a call that begins: what was said of the one before has been read, and may come again
  else if (next.phase !== "connected") announceOver("");
  if (next?.phase === "ringing") closeSettings();
}

/** To what the next tap is likely to be. Keys that were meant for a field answer nothing: then the call has the keyboard, and no button of it. */
function moveFocus(phase) {
  if ($("settings").open || $("call").hidden || (phase === "connected" && isTyping())) return;
  if (phase === "ringing") (wasInField() || $("answer").hidden ? $("call") : $("answer")).focus();
  else if (phase === "connected") $("mute").focus();
}

function showPerson() {
  const people = party(front);
  // no number is broken at the end of a line where others stand before it
  write($("peer"), people.map((one) => (people.length > 1 && !nameIn(one) ? who(one).replaceAll(" ", "\u00A0") : who(one))).join(", "));
  showPeople(people.length > 1 ? people : []);
  const number = people.length === 1 && nameIn(front) ? shownName(formatted(front.peer?.h ?? "")) : "";
  $("peer-number").textContent = number;
  show("peer-number", !!number);
  const initials = nameIn(front).split(/\s+/).map((word) => [...word][0] ?? "").filter((letter) => /\p{L}/u.test(letter)).slice(0, 2).join("");
  if ($("avatar").dataset.of === initials && $("avatar").hasChildNodes()) return;
  $("avatar").dataset.of = initials;
  $("avatar").replaceChildren(initials ? initials.toUpperCase() : icon("person"));
}

/** A row for each of whom hear each other. */
function showPeople(people) {
  show("people", people.length > 0);
  fillRows($("people"), people, { key: ({ id }) => id, create: () => row(1), update: (element, call) => {
    const [end] = draw(element, call, callWords(call, app.phone.isReachable), [[t("call.hangUp"), t("call.hangUpName", { name: who(call) })]]);
    end.onclick = () => call.end();
  } });
}

/** A person in a list: a name, words, and so many buttons. */
function row(buttons) {
  const made = Array.from({ length: buttons }, () => make("button", { type: "button" }));
  return make("li", { className: "person" }, make("p", {}, make("strong", { dir: "auto" }), make("span")), ...made);
}

/** `labels`: what each button shows, and its name. Returns the buttons. */
function draw(element, call, words, labels) {
  const [name, line] = element.querySelectorAll("strong, span"), buttons = [...element.querySelectorAll("button")];
  write(name, who(call));
  write(line, words);
  buttons.forEach((button, i) => {
    write(button, labels[i][0]);
    button.ariaLabel = labels[i][1];
  });
  return buttons;
}

function showControls({ other }, isUp, isReachable) {
  const can = (name) => front.capabilities?.[name] !== false;
  const hasPad = (isUp || front.hasEarlyMedia) && can("dtmf");
  isPadOpen &&= hasPad;
  const transfers = isUp && !other && front.capabilities?.transfer === true;
  const joint = transferable({ front, other });
  const merges = isUp && (mergeable({ front, other }) || (!!front.group && !other));
  show("controls", front.phase !== "ringing");
  // the keys need the room of what is not pressed while somebody dials through a menu
  const second = { hold: isUp && can("hold"), add: isUp && !other, transfer: transfers, merge: merges, join: !!joint };
  for (const [id, isShown] of Object.entries(second)) show(id, isShown && !isPadOpen);
  show("mute", isUp);
  show("pad", hasPad);
  for (const id of ["hold", "add", "transfer", "merge", "join", "pad"]) $(id).disabled = !isReachable || (id !== "hold" && id !== "pad" && !!note(front).transfer);
  label("mute", t(front.isMuted ? "call.unmute" : "call.mute"), front.isMuted ? "muted" : "mic", front.isMuted);
  label("hold", t(front.isHeld ? "call.resume" : "call.hold"), front.isHeld ? "resume" : "hold", front.isHeld);
  label("merge", t(other ? "call.merge" : "call.separate"), "merge", false);
  label("pad", t("call.keypad"), "pad", isPadOpen);
  $("pad").ariaExpanded = String(isPadOpen);
  show("keypad", isPadOpen);
  for (const key of $("keypad").children) key.disabled = !isReachable;
  $("digits").textContent = note(front).digits ?? "";
}

/** Runs while call and gateway are there; else it stands. */
function showClock(runs) {
  if (!runs) { clearInterval(clock); clock = null; return; }
  if (clock) return;
  const of = front;
  const tick = () => {
    $("clock").textContent = duration(1000 * of.seconds);
    noteTime(of);
  };
  tick();
  clock = setInterval(tick, 1000);
}

function showMeters(runs) {
  show("meters", runs);
  // what the gateway measured last is not how it is now
  const quality = front.isReconnecting ? { level: "poor" } : front.quality;
  if (front.phase !== "connected") return;
  meters ??= startMeters(front, (levels) => {
    for (const [name, level] of Object.entries(levels)) $(`level-${name}`).value = Math.max(-60, level);
  });
  globalThis.meters = meters;
  const numbers = front.statistics ? statisticsWords(front.statistics) : "";
  $("quality").textContent = [front.codec, quality && qualityWords(quality), numbers].filter(Boolean).join(" · ");
  // what is codec and jitter is for who asks; that it is not good is for everybody
  const isPoor = !!quality && quality.level !== "good";
  $("quality-summary").textContent = isPoor ? qualityWords(quality) : t("quality.details");
}

function showOther({ other, others, front: now }, isReachable) {
  show("other", !!other);
  show("held", others.length > 1);
  fillRows($("held"), others.slice(1), { key: ({ id }) => id, create: () => row(2), update: (element, call) => {
    const name = { name: who(call) };
    const [swap, end] = draw(element, call, callWords(call, isReachable), [[t("call.swap"), t("call.swapName", name)], [t("call.hangUp"), t("call.hangUpName", name)]]);
    swap.disabled = !isReachable || now.phase !== "connected";
    swap.onclick = () => call.hold(false);
    end.onclick = () => call.end();
  } });
  if (!other) return;
  $("other-who").textContent = who(other);
  $("other-words").textContent = note(other).transfer ?? callWords(other, isReachable);
  $("swap").disabled = !isReachable || now.phase !== "connected" || !!note(other).transfer;
}

/** Who dials, or whom the other side holds up, cannot be held: then the call in front ends, or the new one waits. */
function showWaiting({ waiting, queue, front: now }) {
  if (waiting && $("waiting").hidden) closeSettings();
  show("waiting", !!waiting);
  // a region of its own: what is said of the call in front does not overwrite it
  interrupt(!waiting ? "" : queue.length > 1 ? t("call.callingTooMany", { name: who(queue.at(-1)), count: queue.length }) : t("call.callingToo", { name: who(waiting) }));
  showQueue(queue.slice(1));
  if (!waiting) return;
  write($("waiting-who"), who(waiting));
  write($("waiting-words"), nameIn(waiting) && waiting.peer.h ? t("call.numberIsCalling", { number: shownName(formatted(waiting.peer.h)) }) : t("call.isCalling"));
  const isRinging = now.state === "ringing";
  const mayAnswer = !app.phone.microphoneFault;
  show("hold-accept", mayAnswer && (isRinging || now.phase === "connected"));
  $("hold-accept").textContent = t(isRinging ? "call.answer" : "call.holdAccept");
  show("end-accept", mayAnswer && !isRinging);
  for (const id of ["hold-accept", "end-accept"]) $(id).disabled = !app.phone.isReachable;
}

/** Who waits beside the first. */
function showQueue(queue) {
  show("queue", queue.length > 0);
  fillRows($("queue"), queue, { key: ({ id }) => id, create: () => row(2), update: (element, call) => {
    const name = { name: who(call) };
    const [answer, decline] = draw(element, call, nameIn(call) ? shownName(formatted(call.peer?.h ?? "")) : "",
      [[t("call.answer"), t("call.answerName", name)], [t("call.decline"), t("call.declineName", name)]]);
    answer.hidden = !!app.phone.microphoneFault;
    answer.disabled = !app.phone.isReachable;
    answer.onclick = () => call.answer();
    decline.onclick = () => call.decline();
  } });
}

/** True if it was open. */
export function closePad() {
  if (!isPadOpen) return false;
  isPadOpen = false;
  app.render();
  $("pad").focus();
  return true;
}

// — hands —

export function press(digit) {
  const call = front;
  call?.sendDigits(digit).then(() => dialled(call, digit), () => {});
}

/** A key of the keyboard belongs to the call, unless somebody types elsewhere. */
export const takesDigits = () => !!front && !$("call").hidden && (front.phase === "connected" || front.hasEarlyMedia) && app.phone.isReachable
  && !document.activeElement?.matches("input, select") && !$("settings").open;

async function join() {
  const { front: now, other } = chosen();
  const from = transferable({ front: now, other });
  if (!from) return;
  await transferBoth(from, from === now ? other : now);
}

export function wireCalls() {
  keypad("keypad", press);
  $("answer").onclick = () => front?.answer();
  $("hangup").onclick = () => (front?.state === "ringing" ? front.decline() : front && party(front).forEach((call) => call.end()));
  $("mute").onclick = () => front?.mute(!front.isMuted);
  $("hold").onclick = () => front?.hold(!front.isHeld);
  $("pad").onclick = () => { isPadOpen = !isPadOpen; app.render(); };
  $("join").onclick = () => join();
  $("merge").onclick = () => merge(chosen());
  $("swap").onclick = () => chosen().other?.hold(false);
  $("other-end").onclick = () => chosen().other?.end();
  $("hold-accept").onclick = () => chosen().waiting?.answer();
  $("end-accept").onclick = () => {
    const { front: now, waiting } = chosen();
    now?.end();
    waiting?.answer();
  };
  $("waiting-decline").onclick = () => chosen().waiting?.decline();
}
