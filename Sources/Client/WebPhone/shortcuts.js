// Keys for what must be quick in a call. Off in fields, with a modifier, and for who has switched them off (WCAG 2.2 §2.1.4).
import { $, app, device, show } from "./page.js";
import { isTyping } from "./keyboard.js";
import { t } from "./language.js";

const SWITCH = "trunkline.shortcuts";
/** Key → the buttons that it presses: the first that is there. */
const BUTTONS = { a: ["hold-accept", "end-accept", "answer"], x: ["hangup"], m: ["mute"], h: ["hold"] };

export const areOn = () => device.get(SWITCH) !== "off";
export function switchShortcuts(isOn) {
  if (isOn) device.remove(SWITCH); else device.set(SWITCH, "off");
  app.render();
}

const isThere = (id) => $(id).checkVisibility() && !$(id).disabled;
const pressed = (key) => BUTTONS[key]?.find(isThere);

/** What each key does now, beneath the call; each button says its own. */
export function showShortcuts(isInCall) {
  const isOn = areOn() && isInCall;
  for (const [key, ids] of Object.entries(BUTTONS)) {
    for (const id of ids) if (areOn()) $(id).setAttribute("aria-keyshortcuts", key); else $(id).removeAttribute("aria-keyshortcuts");
  }
  const keys = isOn ? Object.keys(BUTTONS).filter(pressed) : [];
  show("keys", keys.length > 0);
  const rows = keys.map((key) => [key, pressed(key) === "hold-accept" ? t("call.answer") : $(pressed(key)).textContent.trim()]);
  const text = JSON.stringify(rows);
  if ($("keys").dataset.shown === text) return;
  $("keys").dataset.shown = text;
  $("keys").replaceChildren(...rows.flatMap(([key, words]) => {
    const item = document.createElement("span");
    item.append(Object.assign(document.createElement("kbd"), { textContent: key.toUpperCase() }), ` ${words}`);
    return [item];
  }));
}

/** True: the key was one. */
export function useShortcut(event) {
  if (!areOn() || event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing || isTyping()) return false;
  if (document.activeElement?.matches("select, [contenteditable]")) return false;
  const id = event.key.length === 1 ? pressed(event.key.toLowerCase()) : null;
  if (!id || !app.phone) return false;
  event.preventDefault();
  $(id).click();
  return true;
}
