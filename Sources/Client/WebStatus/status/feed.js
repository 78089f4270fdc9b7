// Asks the gateway how it is: one request at a time, as seldom as the gateway is slow, and none for the rows while the page is not seen. It draws
// nothing; who draws listens to `change` and reads the fields.

/** How often a page that is seen asks; the longest it waits after failures, or for a gateway that is slow; how long it waits for an answer. */
export const INTERVAL = 5_000, LONGEST = 60_000, PATIENCE = 10_000;
/** A page that is not seen asks for readiness alone, so that its title and icon are true. */
const HIDDEN = 60_000;
/** An answer of another process is looked at again so soon, and so often, before it is believed. */
const SOON = 1_000, TRIES = 6;
/** A process that has not answered for so many answers is forgotten. */
const FORGOTTEN = 12;

/**
 * | field | |
 * |---|---|
 * | `status` | the last answer of `/v1/status`; null before the first |
 * | `at` | when it came, by `now` |
 * | `fault` | null, or why there is no newer one: `{kind, text, since}`; `kind` is `login`, `forbidden`, `busy` or `silent` |
 * | `ready` | `{ready, reasons}`, of a hidden page too |
 * | `others` | names of other nodes that answer at the same address |
 * | `isUpgraded` | the gateway has another version than when this page was loaded |
 */
export class Feed extends EventTarget {
  status = null;
  at = 0;
  fault = null;
  ready = null;
  token = null;
  find = "";
  isUpgraded = false;
  /** Milliseconds until the next request. */
  wait = INTERVAL;
  #fetch; #now; #timers; #timer = null; #asking = null; #failures = 0; #isHidden = false; #isStopped = false;
  #version = null; #shown = null; #foreign = 0; #seen = new Map(); #answers = 0;

  constructor({ fetch = globalThis.fetch.bind(globalThis), now = () => performance.now(), timers = globalThis } = {}) {
    super();
    [this.#fetch, this.#now, this.#timers] = [fetch, now, timers];
  }

  get others() {
    const others = [...this.#seen].filter(([instance, { at }]) => instance !== this.#shown && this.#answers - at < FORGOTTEN);
    return others.map(([, { node }]) => node);
  }

  /** Milliseconds since the last answer. */
  get age() { return this.#now() - this.at; }

  /** Asks now, whatever was planned. */
  ask() {
    this.#asking?.abort();
    this.#timers.clearTimeout(this.#timer);
    return this.#run();
  }

  /** Asks the next time; who has a token that was refused does not. */
  #plan(wait) {
    this.wait = wait;
    this.#timers.clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = this.#timers.setTimeout(() => this.#run(), wait);
  }

  set isHidden(isHidden) {
    if (isHidden === this.#isHidden) return;
    this.#isHidden = isHidden;
    if (!isHidden) return void this.ask();
    this.#asking?.abort();
    this.#plan(HIDDEN);
  }

  async #run() {
    const asking = this.#asking = new AbortController(), began = this.#now(), isHidden = this.#isHidden;
    const timer = this.#timers.setTimeout(() => asking.abort("late"), PATIENCE);
    const outcome = await this.#answer(asking.signal, isHidden);
    this.#timers.clearTimeout(timer);
    if (this.#asking !== asking) return; // another request was begun meanwhile
    this.#asking = null;
    const took = this.#now() - began;
    const before = this.fault;
    this.fault = outcome.fault ? { ...outcome.fault, since: before?.since ?? this.#now() } : null;
    this.#isStopped = ["login", "forbidden"].includes(this.fault?.kind);
    this.#failures = this.fault ? this.#failures + 1 : 0;
    const isForeign = outcome.status ? !this.#take(outcome.status) : false;
    if (outcome.ready && !isForeign) this.ready = outcome.ready;
    const slow = Math.max(INTERVAL * 2 ** Math.min(10, Math.max(0, this.#failures - 1)), 10 * took);
    this.#plan(isHidden ? HIDDEN : isForeign && this.#foreign < TRIES ? SOON : Math.min(LONGEST, slow));
    this.dispatchEvent(new Event("change"));
  }

  /** `{status}`, `{ready}` or `{fault}`. */
  async #answer(signal, isHidden) {
    const query = this.find && !isHidden ? `?find=${encodeURIComponent(this.find)}` : "";
    try {
      const answer = await this.#fetch(isHidden ? "readyz" : `v1/status${query}`, {
        signal, cache: "no-store", headers: this.token ? { Authorization: `Bearer ${this.token}` } : {},
      });
      if (answer.status === 401) return { fault: { kind: "login", text: "" } };
      const body = await answer.json();
      const isProblem = (answer.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
      if (answer.status === 403) return { fault: { kind: "forbidden", text: String(body.detail ?? "") } };
      if (isProblem) return { fault: { kind: "busy", text: String(body.detail ?? answer.status) } };
      const ready = { ready: body.ready === true, reasons: (body.components ?? []).filter((one) => !one.ready) };
      if (isHidden) return { ready };
      if (!answer.ok || !body.calls || !body.trunks) return { fault: { kind: "silent", text: "The server that answers is not this gateway." } };
      return { ready, status: body };
    } catch {
      return { fault: { kind: "silent", text: signal.reason === "late" ? `No answer within ${PATIENCE / 1000} s.` : "" } };
    }
  }

  /** False: it is of another process than the rows, which may go on. */
  #take(status) {
    const { instance, node, version } = status;
    this.#answers += 1;
    const isKnown = this.#seen.has(instance);
    this.#seen.set(instance, { node, at: this.#answers });
    for (const [one, { at }] of this.#seen) if (this.#answers - at >= FORGOTTEN) this.#seen.delete(one);
    if (this.#shown && instance !== this.#shown) {
      this.#foreign += 1;
      // a new process of the same node was restarted; what answered before and answers again stands beside it
      const isRestart = !isKnown && node === this.status.node;
      if (!isRestart && this.#foreign < TRIES) return false;
      this.#seen.delete(this.#shown);
    }
    this.#shown = instance;
    this.#foreign = 0;
    this.#version ??= version;
    this.isUpgraded = version !== this.#version;
    this.status = status;
    this.at = this.#now();
    return true;
  }
}
