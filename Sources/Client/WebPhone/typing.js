// Digits belong to the dialler wherever the keyboard is, and so does what is pasted: but never those that are typed into another field.
import { readNumber } from "./dialling.js";
import { $, app } from "./page.js";

const isField = (element) => !!element?.closest?.("input:not([type=checkbox], [type=range]), textarea, select, [contenteditable], dialog[open]");
const canType = () => !!app.phone && !$("dialer").hidden && !document.querySelector("dialog[open]") && !isField(document.activeElement);

/** True: the key goes on into the field of the number, which has the keyboard now. */
export function typeAnywhere(event) {
  if (!/^[\d+*#]$/.test(event.key) || event.ctrlKey || event.altKey || event.metaKey || event.isComposing || !canType()) return false;
  const field = $("number");
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  return true;
}

/** `put(text)`: in place of what is chosen in the field. Lines stay apart: two numbers must not become one. */
export function wirePaste(put) {
  addEventListener("paste", (event) => {
    const isHere = event.target === $("number");
    if (!isHere && !canType()) return;
    const text = event.clipboardData?.getData("text") ?? "";
    if (!text.trim() || (isHere && !/[\r\n]/.test(text) && text.length <= 250)) return;
    // a text beside the field that is no number is for nobody
    if (!isHere && readNumber(text).refusal === "empty") return;
    event.preventDefault();
    put(text.trim().slice(0, 300).replace(/\s*[\r\n]+\s*/g, " | "));
  });
}
