// "Clear" of the calls of before, which can be undone until the page is loaded again or the next call is noted.
import { $, app, show } from "./page.js";

let before = null;

export function showClear(hasEntries) {
  if (hasEntries) before = null;
  show("clear", hasEntries);
  show("undo", !!before);
  show("cleared", !!before);
}

export const canUndo = () => before !== null;

export function wireClear() {
  $("clear").onclick = () => {
    const kept = app.history.entries;
    app.history.clear();
    before = kept;
    app.render();
    $("undo").focus();
  };
  $("undo").onclick = () => {
    const kept = before;
    before = null;
    if (kept) app.history.write(kept);
    app.render();
    $("clear").focus();
  };
}
