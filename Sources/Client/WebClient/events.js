// Events twice: for listeners (EventTarget) and for readers (async iterators). And timers by name.

/** One timer of each name; an app's clock may be any. */
export class Timers {
  #running = new Map();
  constructor(clock) { this.clock = clock; }
  has(name) { return this.#running.has(name); }

  after(name, ms, f) {
    this.stop(name);
    this.#running.set(name, this.clock.setTimeout(() => { this.#running.delete(name); f(); }, ms));
  }

  /** These, or all; true if the last of them ran. */
  stop(...names) {
    let ran = false;
    for (const name of names.length ? names : [...this.#running.keys()]) {
      this.clock.clearTimeout(this.#running.get(name));
      ran = this.#running.delete(name);
    }
    return ran;
  }
}

/** Of a slow reader the oldest `limit` are kept; with a limit of 1 it is the newest. */
function read(readers, limit, queue, isOver = false) {
  let wake = null;
  const take = (value, isLast = false) => {
    if (limit === 1) queue.length = 0;
    if (queue.length < limit) queue.push(value);
    isOver ||= isLast;
    wake?.();
  };
  if (!isOver) readers.add(take);
  return {
    [Symbol.asyncIterator]() { return this; },
    async next() {
      while (!queue.length) {
        if (isOver) return { done: true, value: undefined };
        await new Promise((done) => { wake = done; });
      }
      return { done: false, value: queue.shift() };
    },
    async return() {
      readers.delete(take);
      isOver = true;
      queue.length = 0;
      wake?.();
      return { done: true, value: undefined };
    },
  };
}

/** What Phone and Call have in common: `state`, its steps, and events. */
export class Source extends EventTarget {
  #stateReaders = new Set();
  #eventReaders = new Set();
  #told;

  get states() {
    const { state } = this;
    const reader = read(this.#stateReaders, 1, [state], state === "ended");
    this.#told ??= state;
    return reader;
  }
  get events() { return read(this.#eventReaders, 256, []); }

  emit(type, fields) {
    const event = Object.assign(new Event(type), fields);
    this.dispatchEvent(event);
    for (const take of this.#eventReaders) take(event);
  }

  /** Anything shown has changed. Nothing comes after an end. */
  changed() {
    this.emit("state");
    const { state } = this;
    if (this.#told === state) return;
    this.#told = state;
    for (const take of this.#stateReaders) take(state, state === "ended");
    if (state === "ended") this.#stateReaders.clear();
  }
}
