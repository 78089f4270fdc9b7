// The calls of one user on this device, in localStorage, newest first. A call is noted when it begins, so that a page which is
// closed in it does not forget it.
const LIMIT = 50;

export class History {
  constructor(user) {
    this.key = `trunkline.history.${user}`;
  }

  get entries() {
    try {
      const entries = JSON.parse(localStorage.getItem(this.key));
      return Array.isArray(entries) ? entries.filter((entry) => entry && typeof entry.id === "string").slice(0, LIMIT) : [];
    } catch {
      return [];
    }
  }

  /** Adds or replaces the entry of a call: `{id, direction, name, number, at, connectedMs, reason}`, `reason` null while it goes on. */
  put(entry) {
    const before = this.entries.find((one) => one.id === entry.id);
    const rest = this.entries.filter((one) => one.id !== entry.id);
    this.write([{ ...before, ...entry, at: before?.at ?? entry.at ?? Date.now() }, ...rest].sort((a, b) => b.at - a.at));
  }

  find(id) {
    return this.entries.find((entry) => entry.id === id);
  }

  clear() {
    this.write([]);
  }

  write(entries) {
    try {
      localStorage.setItem(this.key, JSON.stringify(entries.slice(0, LIMIT)));
    } catch {
      // no room, or a browser that stores nothing: the page goes on without
    }
  }
}

/** The time today, else the day and the time. */
export function when(at, now = new Date()) {
  const date = new Date(at);
  const time = { hour: "2-digit", minute: "2-digit" };
  const isToday = date.toDateString() === now.toDateString();
  return new Intl.DateTimeFormat(undefined, isToday ? time : { day: "numeric", month: "short", ...time }).format(date);
}
