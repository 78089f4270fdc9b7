// The calls of one user, newest first: those that the gateway keeps, the same on all devices, and in localStorage those that this device has noted. A
// call is noted when it begins, so that a page which is closed in it does not forget it. Local entries stand in the order in which they began: times
// are shown, and decide nothing between them, for a clock may be years off.
import { device, read } from "./ui/storage.js";
import { isMissed } from "./words.js";

const LIMIT = 50;
/** Rows of the gateway that a page holds: more are asked for with the pages before. */
export const MOST = 2_000;

/** A row of the gateway as the page shows it. */
const shown = (row) => ({
  id: row.call, row: row.id, direction: row.direction, name: row.peer.n || null, number: row.peer.h === "unknown" ? null : row.peer.h, kind: row.peer.k, at: row.startedAt,
  connectedMs: row.connectedAt === null ? null : Math.max(0, row.endedAt - row.connectedAt), outcome: row.outcome, reason: row.reason,
});

export class History {
  #rows = new Map();
  #version = 0;
  /** `next` of the oldest page that is here; null: there is none before it. */
  next = null;
  /** Whether the gateway has said what it keeps. */
  isKnown = false;

  constructor(user) {
    this.key = `trunkline.history.${user}`;
    this.seenKey = `trunkline.seen.${user}`;
    this.clearedKey = `trunkline.cleared.${user}`;
  }

  /** Another text: `entries` may be others. */
  get stamp() { return `${this.#version} ${device.get(this.clearedKey)} ${device.get(this.seenKey)} ${device.get(this.key)}`; }

  /** What this device has noted. */
  get local() {
    const entries = read(device, this.key);
    return Array.isArray(entries) ? entries.filter((entry) => entry && typeof entry.id === "string").slice(0, LIMIT) : [];
  }

  /** No call twice: what the gateway has, with what only this device knows of it, and what only this device has. */
  get entries() {
    const noted = new Map(this.local.map((entry) => [entry.id, entry])), cleared = this.#mark(this.clearedKey);
    const rows = [...this.#rows.values()].sort((one, other) => other.row - one.row).filter(({ row }) => row > cleared.id);
    const both = rows.map((row) => {
      const own = noted.get(row.id);
      // "transferred", or a microphone that was denied: the device knows better than the gateway
      return own ? { ...row, name: row.name ?? own.name, reason: own.reason ?? row.reason, isNoted: !!own.reason } : row;
    });
    const known = new Set(this.#rows.keys()), oldest = rows.at(-1);
    // what is older than the pages that are here comes with them
    const alone = [...noted.values()].filter(({ id, at }) => !known.has(id) && !(this.next !== null && oldest && at < oldest.at));
    const merged = [];
    for (const row of both) {
      while (alone.length && alone[0].at >= row.at) merged.push(alone.shift());
      merged.push(row);
    }
    return [...merged, ...alone];
  }

  /** Adds or replaces the entry of a call: `{id, direction, name, number, at, connectedMs, reason}`, `reason` null while it goes on. */
  put(entry) {
    const entries = this.local, index = entries.findIndex((one) => one.id === entry.id);
    if (index < 0) entries.unshift({ ...entry, at: entry.at ?? Date.now() }); else entries[index] = { ...entries[index], ...entry };
    this.write(entries);
  }

  find(id) { return this.local.find((entry) => entry.id === id) ?? this.#rows.get(id); }

  write(entries) { device.set(this.key, JSON.stringify(entries.slice(0, LIMIT))); }

  /** A page of the gateway: the newest, or the one before what is here. */
  take({ calls, next }, isNewest) {
    const rows = calls.map(shown), oldest = rows.at(-1)?.row ?? 0;
    const newest = Math.max(0, ...[...this.#rows.values()].map(({ row }) => row));
    // more came than a page holds: what is between would be missing
    if (isNewest && next !== null && oldest > newest) this.#rows.clear();
    if (!isNewest || this.#rows.size === 0) this.next = this.#rows.size + rows.length >= MOST ? null : next;
    for (const row of rows) this.#rows.set(row.id, row);
    this.isKnown = true;
    this.#version++;
    if (device.get(this.seenKey) === null) this.see();
  }

  /** The gateway keeps nothing any more. */
  erase() {
    this.#rows.clear();
    this.next = null;
    this.write([]);
    this.#version++;
  }

  /** From this device's view; returns how it is undone. */
  clear() {
    const [cleared, noted] = [device.get(this.clearedKey), this.local];
    device.set(this.clearedKey, JSON.stringify(this.#newest));
    this.write([]);
    return () => {
      if (cleared === null) device.remove(this.clearedKey); else device.set(this.clearedKey, cleared);
      this.write(noted);
    };
  }

  // — missed calls —

  #mark(key) {
    const { id = 0, at = 0 } = read(device, key) ?? {};
    return { id: Number.isSafeInteger(id) ? id : 0, at: Number.isFinite(at) ? at : 0 };
  }
  get #newest() {
    return { id: Math.max(this.#mark(this.seenKey).id, ...[...this.#rows.values()].map(({ row }) => row)), at: Math.max(0, ...this.local.map(({ at }) => Number(at) || 0)) };
  }

  /** Missed calls that the user has not seen on this device. A device that asks for the first time has seen what was before. */
  get unseen() {
    const { id, at } = this.#mark(this.seenKey);
    return this.entries.filter((entry) => isMissed(entry) && (entry.row === undefined ? entry.at > at : entry.row > id));
  }

  see() { device.set(this.seenKey, JSON.stringify(this.#newest)); }
}
