// A storage that may be denied or full.

/** `localStorage` or `sessionStorage`; in a browser that stores nothing it lasts as long as the page. */
class Kept {
  #kind;
  #memory = new Map();
  constructor(kind) { this.#kind = kind; }
  get(name) { try { return this.#memory.get(name) ?? globalThis[this.#kind].getItem(name); } catch { return null; } }
  set(name, text) {
    try {
      globalThis[this.#kind].setItem(name, text);
      this.#memory.delete(name);
    } catch { this.#memory.set(name, text); }
  }
  remove(name) {
    this.#memory.delete(name);
    try { globalThis[this.#kind].removeItem(name); } catch {}
  }
}
export const tab = new Kept("sessionStorage");
export const device = new Kept("localStorage");

/** JSON of one of them; what is none counts as nothing. */
export function read(kept, name) {
  try { return JSON.parse(kept.get(name)); } catch { return null; }
}
