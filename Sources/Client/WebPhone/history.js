// The calls of one user on this device, in localStorage, newest first. A call is noted when it begins, so that a page which is
// closed in it does not forget it. Their order is that in which they began: times are shown, and decide nothing, for a clock may be years off.
import { shownName, t, when } from "./language.js";
import { device, read } from "./ui/storage.js";
import { duration, isMissed, reasonWords } from "./words.js";

const LIMIT = 50;

export class History {
  constructor(user) {
    this.key = `trunkline.history.${user}`;
  }

  get entries() {
    const entries = read(device, this.key);
    return Array.isArray(entries) ? entries.filter((entry) => entry && typeof entry.id === "string").slice(0, LIMIT) : [];
  }

  /** Adds or replaces the entry of a call: `{id, direction, name, number, at, connectedMs, reason}`, `reason` null while it goes on. */
  put(entry) {
    const { entries } = this, index = entries.findIndex((one) => one.id === entry.id);
    if (index < 0) entries.unshift({ ...entry, at: entry.at ?? Date.now() }); else entries[index] = { ...entries[index], ...entry };
    this.write(entries);
  }

  find(id) {
    return this.entries.find((entry) => entry.id === id);
  }

  clear() {
    this.write([]);
  }

  write(entries) {
    device.set(this.key, JSON.stringify(entries.slice(0, LIMIT)));
  }
}

/** One call of before; a click on it is `use`. */
export function row(entry, use) {
  const isIncoming = entry.direction === "incoming";
  const words = entry.reason ? reasonWords(entry.reason) : t("recent.goesOn");
  const parts = {
    arrow: isIncoming ? "↙" : "↗",
    who: shownName(entry.name || entry.number || "") || t("unknown"),
    when: when(entry.at),
    how: [isMissed(entry) && t("recent.isMissed"), entry.connectedMs !== null && duration(entry.connectedMs), words].filter(Boolean).join(" · "),
  };
  const button = document.createElement("button");
  for (const [name, text] of Object.entries(parts)) {
    const part = Object.assign(document.createElement("span"), { className: name, textContent: text });
    if (name === "arrow") part.ariaHidden = "true";
    button.append(part);
  }
  button.classList.toggle("missed", isMissed(entry));
  button.ariaLabel = `${t(isIncoming ? "recent.from" : "recent.to", { name: parts.who, when: parts.when, how: parts.how })} ${t("recent.copies")}`;
  button.onclick = use;
  const item = document.createElement("li");
  item.append(button);
  return item;
}
