// "Clear" of the calls of before, which can be undone until the page is loaded again or the next call is noted.
import { $, app, show } from "./page.js";

/** Brings back what was there. */
let bringBack = null;

export function showClear(hasEntries) {
  if (hasEntries) bringBack = null;
  show("clear", hasEntries);
  show("undo", !!bringBack);
  show("cleared", !!bringBack);
}

export const canUndo = () => bringBack !== null;

export function wireClear() {
  $("clear").onclick = () => {
    bringBack = app.history.clear();
    app.render();
    $("undo").focus();
  };
  $("undo").onclick = () => {
    bringBack?.();
    bringBack = null;
    app.render();
    $("clear").focus();
  };
}
