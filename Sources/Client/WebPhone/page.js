// What all parts of the page share: elements, words for screen readers, and a storage that may be denied.
export const $ = (id) => document.getElementById(id);

/** The telephone, and its calls of before; both null until somebody has logged in. */
export const app = { phone: null, history: null };

/** The label says what a click does next. */
export function label(id, text, icon, isOn = false) {
  const button = $(id);
  if (button.querySelector("span").textContent !== text) button.querySelector("span").textContent = text;
  if (icon) button.querySelector("use").setAttribute("href", `#i-${icon}`);
  button.classList.toggle("on", isOn);
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

export const show = (id, isShown) => { $(id).hidden = !isShown; };

export function status(text, level) {
  $("status").textContent = text;
  $("status").dataset.level = level;
}

/** Said once: a screen reader hears words that changed, never the clock. */
export function announce(text) {
  if ($("announce").textContent !== text) $("announce").textContent = text;
}

let noticeAct = null;
/** What to do now, in view until it no longer holds; `act` is `{label, run}`, for what a click mends. */
export function notice(text, act = null) {
  noticeAct = act?.run ?? null;
  show("notice-act", !!act);
  if (act) $("notice-act").textContent = act.label;
  const before = $("notice-words").textContent;
  if (before === text) return;
  $("notice-words").textContent = text;
  show("notice", !!text);
  // what no longer holds is not left for who reads the page aloud
  if (text || $("announce").textContent === before) announce(text);
}
$("notice-act").onclick = () => noticeAct?.();

/** `localStorage` or `sessionStorage`; in a browser that stores nothing it lasts as long as the page. */
class Kept {
  #kind;
  #memory = new Map();
  constructor(kind) { this.#kind = kind; }
  get(name) { try { return globalThis[this.#kind].getItem(name); } catch { return this.#memory.get(name) ?? null; } }
  set(name, text) { try { globalThis[this.#kind].setItem(name, text); } catch { this.#memory.set(name, text); } }
  remove(name) { try { globalThis[this.#kind].removeItem(name); } catch { this.#memory.delete(name); } }
}
export const tab = new Kept("sessionStorage");
export const device = new Kept("localStorage");

/** JSON of one of them; what is none counts as nothing. */
export function read(kept, name) {
  try { return JSON.parse(kept.get(name)); } catch { return null; }
}
