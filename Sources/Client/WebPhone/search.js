// Names of the directory while somebody types: one question at a time, and only for a text that stands for a moment.
import { formatted } from "./dialling.js";
import { shownName, t } from "./language.js";
import { $, announce, app, show } from "./page.js";
import { fillRows, make, write } from "./ui/elements.js";

const STANDS = 200, SHOWN = 8, LEAST_DIGITS = 3;
let timer = null, isAsking = false, asked = "", text = "", results = [], use = () => {};

/** Worth a question: letters, or digits enough. */
const isSearchable = (typed) => /\p{L}/u.test(typed) || typed.replace(/\D/g, "").length >= LEAST_DIGITS;

/** After each change of what is typed. */
export function search(typed) {
  text = typed.trim();
  clearTimeout(timer);
  if (!app.phone?.keepsDirectory || !isSearchable(text)) {
    asked = "";
    return take([]);
  }
  timer = setTimeout(ask, STANDS);
}

async function ask() {
  const { phone } = app;
  if (isAsking || text === asked || !phone) return;
  isAsking = true;
  const wanted = asked = text;
  const found = await phone.findNames(wanted, { limit: SHOWN }).catch(() => []);
  isAsking = false;
  if (phone !== app.phone) return;
  // what was typed meanwhile is asked for now
  if (wanted !== text) return isSearchable(text) ? ask() : undefined;
  take(found);
}

function take(found) {
  if (found.length === 0 && results.length === 0) return;
  results = found.slice(0, SHOWN);
  fillRows($("found"), results, {
    key: ({ h, n }) => `${h} ${n}`,
    create: () => make("li", {}, make("button", { type: "button", className: "entry" }, make("bdi", { className: "who" }), make("span", { className: "how" }))),
    update: (item, { h, n }) => {
      const [button] = item.children, [who, number] = button.children;
      write(who, shownName(n));
      write(number, formatted(h));
      button.ariaLabel = t("search.call", { name: shownName(n), number: formatted(h) });
      button.onclick = () => use(h);
    },
  });
  show("found", results.length > 0);
  if (results.length) announce(t("search.count", { count: results.length }));
}

/** A number was chosen, or called. */
export function endSearch() {
  clearTimeout(timer);
  text = asked = "";
  take([]);
}

/** True: there is one, and it has the keyboard. */
export function focusResult() {
  const first = $("found").querySelector("button");
  first?.focus();
  return !!first;
}

export function wireSearch(choose) { use = choose; }
