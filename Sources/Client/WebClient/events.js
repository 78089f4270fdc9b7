// Events twice: for listeners (EventTarget) and for readers (async iterators).

/** Of a slow reader the oldest `limit` are kept; with a limit of 1 it is the newest. */
function read(readers, limit, first) {
  const queue = first;
  let isOver = false, wake = null;
  const take = (value, isLast = false) => {
    if (limit === 1) queue.length = 0;
    if (queue.length < limit) queue.push(value);
    isOver ||= isLast;
    wake?.();
  };
  readers.add(take);
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

  get states() { return read(this.#stateReaders, 1, [this.#told = this.state]); }
  get events() { return read(this.#eventReaders, 256, []); }

  emit(type, fields) {
    const event = Object.assign(new Event(type), fields);
    this.dispatchEvent(event);
    for (const take of this.#eventReaders) take(event);
  }

  /** Anything shown has changed; `isLast`: nothing comes after it. */
  changed(isLast = false) {
    this.emit("state");
    if (this.#told !== this.state) {
      this.#told = this.state;
      for (const take of this.#stateReaders) take(this.#told, isLast);
    }
    if (isLast) this.#stateReaders.clear();
  }
}
