// The dialler: for a call, for a second one beside it, and for the number that a call is sent to.
import { showNumbers, wireNumbers } from "./account.js";
import { chosen, place, transferTo, who } from "./calls.js";
import { keypad } from "./cards.js";
import { readNumber } from "./dialling.js";
import { t } from "./language.js";
import { takeLinked } from "./links.js";
import { $, announce, app, label, show } from "./page.js";
import { endSearch, focusResult, search, wireSearch } from "./search.js";
import { wirePaste } from "./typing.js";

/** null: for a call when there is none; "add" or "transfer": over the call `of`. */
let purpose = null, of = null;
/** Why the text was refused when somebody wanted to call it; goes with the next change of it. */
let refusal = null;
let isLinked = false;

export const isOpenOverCall = () => purpose !== null;

export function showDialer({ front, other }) {
  // what it was opened for may be over, or a second call have come
  if (purpose && (front !== of || other || front.phase !== "connected")) close();
  const isFree = !front;
  show("dialer", app.phone !== null && (isFree || purpose !== null) && app.phone.state !== "failed" && !$("settings").open);
  const isTransfer = purpose === "transfer";
  $("dial-title").textContent = isTransfer ? t("dial.transferTitle", { name: who(of) }) : t(purpose ? "dial.addTitle" : "dial.title");
  show("back", purpose !== null);
  show("ask", isTransfer);
  show("dial-hint", purpose !== null);
  $("dial-hint").textContent = isTransfer
    ? t("dial.transferHint") : purpose ? t("dial.addHint", { name: who(of) }) : "";
  label("dial", t(isTransfer ? "dial.transferDo" : "dial.do"), isTransfer ? "transfer" : "phone");
  $("dial").disabled = $("ask").disabled = app.phone?.state !== "online";
  show("erase", $("number").value !== "");
  showNumbers();
  showReading();
  const linked = takeLinked(!$("dialer").hidden && !purpose);
  if (linked !== null) link(linked);
}

/** What of the text will be dialled, where that is not what stands there. */
function showReading() {
  const text = $("number").value, found = text.trim() ? readNumber(text) : null;
  const isOther = !!found && !found.refusal && (found.then !== "" || found.shown !== text.trim());
  const said = isOther ? t(found.then ? "dial.willCallThen" : "dial.willCall", { number: found.shown, digits: found.then.replace(/[,;]/g, "") }) : "";
  $("dial-reading").textContent = said || (isLinked ? t("dial.linked") : "");
  $("dial-refusal").textContent = refusal ? refusalText(refusal) : "";
  $("number").ariaInvalid = refusal ? "true" : null;
}

const refusalText = ({ refusal: key, character = "" }) => t(`dial.refusal.${key}`, { character });

/** Said, and the keyboard stays in the field; a name goes on to the first that was found. */
function refuse(found) {
  if (found.refusal === "text" && focusResult()) return;
  refusal = found;
  app.render();
  announce(refusalText(found));
  $("number").focus();
}

/** Of a link: filled, and called by a click only. */
function link(text) {
  write(text);
  isLinked = true;
  const found = readNumber(text);
  if (found.refusal) refuse(found);
  app.render();
  $("dial").focus();
  announce(t("dial.linked"));
}

/** A new text in the field. */
function write(text) {
  $("number").value = text;
  changed();
}
function changed() {
  refusal = null;
  isLinked = false;
  // the list would move the keys under who taps them
  if (document.activeElement === $("number")) search($("number").value); else endSearch();
  app.render();
}

export function openFor(what) {
  [purpose, of] = [what, chosen().front];
  write("");
  $("number").focus();
}

export function close() {
  if (!purpose) return;
  const opener = purpose;
  purpose = of = null;
  write("");
  $(opener).focus();
}

export function fill(number) {
  if ($("dialer").hidden) return;
  write(number);
  endSearch();
  $("number").focus();
}

function call() {
  const found = readNumber($("number").value);
  if (app.phone.state !== "online") return;
  if (found.refusal) return refuse(found);
  // who calls somebody that is busy calls them again
  if (purpose) $("number").value = "";
  purpose = of = refusal = null;
  isLinked = false;
  endSearch();
  place(found.number, found.then);
}

function transfer() {
  const found = readNumber($("number").value), call = of;
  if (found.refusal) return refuse(found);
  if (found.then) return refuse({ refusal: "transfer" });
  if (!call) return;
  close();
  transferTo(call, found.number);
}

export function wireDialer() {
  keypad("dial-pad", (digit) => {
    const field = $("number"), [from, to] = [field.selectionStart ?? field.value.length, field.selectionEnd ?? field.value.length];
    field.setRangeText(digit, from, to, "end");
    changed();
  });
  const zero = [...$("dial-pad").children].find((key) => key.textContent === "0");
  // as on every telephone: a long press of 0 is a plus
  zero.oncontextmenu = (event) => event.preventDefault();
  let long;
  zero.onpointerdown = () => { long = setTimeout(() => { long = null; write(`${$("number").value}+`); }, 600); };
  for (const type of ["pointerup", "pointerleave", "pointercancel"]) zero.addEventListener(type, () => clearTimeout(long));
  zero.addEventListener("click", (event) => { if (long === null) { event.stopImmediatePropagation(); long = undefined; } }, { capture: true });
  $("number").oninput = () => changed();
  $("erase").onclick = () => {
    write([...$("number").value].slice(0, -1).join(""));
    if ($("erase").hidden) $("number").focus();
  };
  $("dial-form").onsubmit = (event) => {
    event.preventDefault();
    if (purpose === "transfer") transfer(); else call();
  };
  wireNumbers();
  wireSearch(fill);
  wirePaste((text) => {
    const field = $("number");
    field.focus();
    field.setRangeText(text, field.selectionStart ?? 0, field.selectionEnd ?? field.value.length, "end");
    changed();
  });
  $("ask").onclick = () => call();
  $("back").onclick = () => close();
  $("add").onclick = () => openFor("add");
  $("transfer").onclick = () => openFor("transfer");
}
