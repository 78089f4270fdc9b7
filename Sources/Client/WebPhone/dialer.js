// The dialler: for a call, for a second one beside it, and for the number that a call is sent to.
import { chosen, place, transferTo, who } from "./calls.js";
import { keypad } from "./cards.js";
import { t } from "./language.js";
import { $, app, label, show } from "./page.js";

/** null: for a call when there is none; "add" or "transfer": over the call `of`. */
let purpose = null, of = null;

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
}

export function openFor(what) {
  [purpose, of] = [what, chosen().front];
  $("number").value = "";
  app.render();
  $("number").focus();
}

export function close() {
  if (!purpose) return;
  const opener = purpose;
  purpose = of = null;
  $("number").value = "";
  app.render();
  $(opener).focus();
}

/** Letters and blanks are left out; what is left must be a number. */
const typed = () => $("number").value.replace(/[^\d+*#]/g, "");

export function fill(number) {
  if ($("dialer").hidden) return;
  $("number").value = number;
  app.render();
  $("number").focus();
}

function call() {
  const number = typed();
  if (!number || app.phone.state !== "online") return;
  // who calls somebody that is busy calls them again
  if (purpose) $("number").value = "";
  purpose = of = null;
  place(number);
}

function transfer() {
  const number = typed(), call = of;
  if (!number || !call) return;
  close();
  transferTo(call, number);
}

export function wireDialer() {
  keypad("dial-pad", (digit) => {
    const field = $("number"), [from, to] = [field.selectionStart ?? field.value.length, field.selectionEnd ?? field.value.length];
    field.setRangeText(digit, from, to, "end");
    app.render();
  });
  const zero = [...$("dial-pad").children].find((key) => key.textContent === "0");
  // as on every telephone: a long press of 0 is a plus
  zero.oncontextmenu = (event) => event.preventDefault();
  let long;
  zero.onpointerdown = () => { long = setTimeout(() => { long = null; $("number").value += "+"; app.render(); }, 600); };
  for (const type of ["pointerup", "pointerleave", "pointercancel"]) zero.addEventListener(type, () => clearTimeout(long));
  zero.addEventListener("click", (event) => { if (long === null) { event.stopImmediatePropagation(); long = undefined; } }, { capture: true });
  $("number").oninput = () => app.render();
  $("erase").onclick = () => {
    $("number").value = $("number").value.slice(0, -1);
    app.render();
    if ($("erase").hidden) $("number").focus();
  };
  $("dial-form").onsubmit = (event) => {
    event.preventDefault();
    if (purpose === "transfer") transfer(); else call();
  };
  $("ask").onclick = () => call();
  $("back").onclick = () => close();
  $("add").onclick = () => openFor("add");
  $("transfer").onclick = () => openFor("transfer");
}
