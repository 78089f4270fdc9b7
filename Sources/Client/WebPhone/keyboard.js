// The keyboard is never nowhere: what had it may be hidden, disabled or gone, and a browser then gives it to the body, where a screen reader
// begins anew at the top. Whoever hides something need not think of it: this looks after each change of the page.
import { $ } from "./page.js";
import { focusFirst } from "./ui/focus.js";

/** A touch screen shows its keyboard over whatever field has the focus. */
const isTouched = matchMedia("(pointer: coarse)");

let last = null, wasTyping = false;

const isUsable = (element) => !!element?.isConnected && !element.disabled && element.checkVisibility();
const isField = (element) => !!element?.matches?.("input:not([type=checkbox], [type=range]), textarea");

/** Somebody has the keyboard in a field. */
export const isTyping = () => isField(document.activeElement) && document.activeElement.checkVisibility();

const hasText = (element) => isField(element) && element.value !== "";

/** Or was typing in one that was just covered: the next keys were meant for it. An empty field has the keyboard only because it must be somewhere. */
export const wasInField = () => hasText(document.activeElement) || wasTyping;

/** What takes the place of what had the keyboard: of a call the section itself, on which no key does anything. */
function candidates() {
  const inside = [["settings", "close-settings"], ["dialer", $("dialer").hidden || !isTouched.matches ? "number" : "dialer"], ["login", "token"], ["away", "take-back"], ["away", "away"],
    ["recent", "recent"]];
  const open = inside.find(([part, id]) => isUsable($(part)) && isUsable($(id)));
  return [isUsable($("settings")) ? $("close-settings") : null, $("call"), open && $(open[1])].filter(Boolean);
}

/** Leaves the keyboard where it is if it can stay there. */
export function keepKeyboard() {
  const { activeElement } = document;
  if (activeElement !== document.body && isUsable(activeElement)) return;
  // a click beside everything: what had it is still there
  if (activeElement === document.body && isUsable(last)) return;
  const typing = hasText(last);
  focusFirst(candidates());
  wasTyping = typing;
}

addEventListener("focusin", ({ target }) => {
  last = target;
  wasTyping = false;
});

let isDue = false;
new MutationObserver(() => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    keepKeyboard();
  });
}).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden", "disabled", "open"] });
