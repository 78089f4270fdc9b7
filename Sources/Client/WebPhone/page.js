// What all parts of the phone share. What the status page has too is in ui/.
import { $ } from "./ui/elements.js";
import { noticeIn } from "./ui/notice.js";
export { $, icon, label, show } from "./ui/elements.js";
export { announce, announceOver, interrupt } from "./ui/live.js";
export { device, read, tab } from "./ui/storage.js";

/** The telephone, and its calls of before; both null until somebody has logged in. `render` is phone.js's, which is loaded last. */
export const app = { phone: null, history: null, render() {} };

export function status(text, level) {
  $("status").textContent = text;
  $("status").dataset.level = level;
}

/** What to do now, in view until it no longer holds; `act` is `{label, run}`, for what a click mends. */
export const notice = noticeIn($("notice"));
