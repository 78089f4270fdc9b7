// Links that dial: #call=+49… of this page's address. They fill the dialler and ask for a click; no address calls anybody by itself.
import { app } from "./page.js";

const LONGEST = 250;
let waiting = null;

/** The number behind #call=, which is taken out of the address; null: there is none. */
function linked() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("call")) return null;
  // a plus of a number that nobody has encoded
  const text = decodeURIComponent(/(?:^#|&)call=([^&]*)/.exec(location.hash)?.[1].replace(/%(?![\da-f]{2})/gi, "%25") ?? "");
  const rest = location.hash.slice(1).split("&").filter((part) => !part.startsWith("call=")).join("&");
  history.replaceState(null, "", location.pathname + location.search + (rest && `#${rest}`));
  return text.slice(0, LONGEST);
}

function read() {
  try { waiting = linked() ?? waiting; } catch { /* an address that cannot be decoded names no number */ }
}

/** What a link wants to be called, once: `take` is told when the dialler can show it. */
export function takeLinked(canShow) {
  if (waiting === null || !canShow) return null;
  const text = waiting;
  waiting = null;
  return text;
}

read();
addEventListener("hashchange", () => {
  read();
  app.render?.();
});
