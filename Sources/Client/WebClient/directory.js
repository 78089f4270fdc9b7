// What the gateway keeps of a user beside calls: the history, names, the user's own numbers (docs/reference/protocol.md, Directory and history). Questions that
// change nothing: they are asked once, and given up after a time.
import { PhoneError, party } from "./texts.js";

/** Questions at once, and how long one waits for its answer: a session that comes back asks again by itself. */
const AT_ONCE = 8, PATIENCE = 15_000;
const PAGE = 50, HANDLES = 64, TEXT = 32;

const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const time = (value) => (isCount(value) ? value : null);
const OUTCOMES = new Set(["answered", "answeredElsewhere", "missed", "cancelled", "declined", "busy", "diverted", "blocked", "filtered", "failed"]);

/** A row of `hist.list`; null: it cannot be shown. */
function entry(row) {
  if (typeof row !== "object" || row === null || !isCount(row.id) || typeof row.call !== "string" || typeof row.peer?.h !== "string") return null;
  const connectedAt = time(row.connect), endedAt = time(row.end) ?? 0;
  return {
    id: row.id, call: row.call.toLowerCase(), direction: row.dir === "out" ? "outgoing" : "incoming", peer: party(row.peer), startedAt: time(row.start) ?? endedAt,
    connectedAt, endedAt, outcome: OUTCOMES.has(row.outcome) ? row.outcome : "failed", reason: typeof row.reason === "string" ? row.reason : "unknown",
    device: typeof row.device === "string" ? row.device : null, account: typeof row.acct === "string" ? row.acct : null,
  };
}

const named = (list) => (Array.isArray(list) ? list : []).filter((one) => typeof one?.h === "string" && typeof one.n === "string").map(party);

export class Directory {
  #phone;
  #open = new Set();
  constructor(phone) { this.#phone = phone; }

  #ask(t, d) {
    return new Promise((resolve, reject) => {
      const question = {};
      const settle = (f, value) => {
        if (!this.#open.delete(question)) return;
        this.#phone.timers.stop(question);
        f(value);
      };
      if (this.#open.size >= AT_ONCE) return reject(new PhoneError("refused", "tooMany"));
      this.#open.add(question);
      question.cancel = () => settle(reject, new PhoneError("unreachable"));
      if (!this.#phone.isOnline) return question.cancel();
      this.#phone.timers.after(question, PATIENCE, question.cancel);
      this.#phone.ask(t, null, d, (ok, failure) => (ok ? settle(resolve, ok) : settle(reject, new PhoneError("refused", failure.code))));
    });
  }

  async history({ before, limit } = {}) {
    const most = Math.min(PAGE, Math.max(1, Math.trunc(limit ?? PAGE) || PAGE));
    const { hist } = await this.#ask("hist.list", { ...(isCount(before) && before > 0 && { before }), limit: most });
    const rows = Array.isArray(hist?.calls) ? hist.calls.slice(0, PAGE) : [];
    return { calls: rows.map(entry).filter(Boolean), next: isCount(hist?.next) ? hist.next : null };
  }

  async names(numbers) {
    const handles = [...new Set(numbers)].filter((one) => typeof one === "string" && one).slice(0, HANDLES);
    return handles.length ? named((await this.#ask("hist.resolve", { handles })).names) : [];
  }

  async find(text, { limit } = {}) {
    const words = [...String(text).trim()].slice(0, TEXT).join("");
    const most = Math.min(PAGE, Math.max(1, Math.trunc(limit ?? 20) || 20));
    return words ? named((await this.#ask("dir.find", { text: words, limit: most })).names).slice(0, PAGE) : [];
  }

  async ownNumbers() {
    const { user } = await this.#ask("user.get");
    return (Array.isArray(user?.numbers) ? user.numbers : []).filter((one) => typeof one === "string" && one).slice(0, 100);
  }

  /** The session is over: no answer comes. */
  cancel() { for (const question of [...this.#open]) question.cancel(); }
}
