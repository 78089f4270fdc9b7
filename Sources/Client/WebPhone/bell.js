// Sounds: the bell, which also shows in a tab that may not play sound yet (no click), and the ringback tone of an outgoing call.

/** Two tones with a cadence in seconds; heard once the browser lets this page sound. */
class Tone {
  constructor(frequencies, { on, off, volume }) {
    Object.assign(this, { frequencies, on, off, volume });
  }

  start() {
    if (this.context) return;
    this.context = new AudioContext();
    const gain = this.context.createGain();
    gain.gain.value = 0;
    gain.connect(this.context.destination);
    for (const frequency of this.frequencies) {
      const oscillator = this.context.createOscillator();
      oscillator.frequency.value = frequency;
      oscillator.connect(gain);
      oscillator.start();
    }
    for (let at = 0; at < 120; at += this.on + this.off) {
      gain.gain.setTargetAtTime(this.volume, at, 0.01);
      gain.gain.setTargetAtTime(0, at + this.on, 0.01);
    }
    // A page that was not clicked may not sound yet: the first touch lets it.
    this.wake = () => this.context?.resume();
    for (const type of ["pointerdown", "keydown"]) addEventListener(type, this.wake);
  }

  stop() {
    for (const type of ["pointerdown", "keydown"]) removeEventListener(type, this.wake);
    this.context?.close();
    this.context = null;
  }
}

const chime = new Tone([587, 740], { on: 1, off: 2, volume: 0.06 });
export const ringback = new Tone([440, 480], { on: 2, off: 4, volume: 0.03 });

const TITLE = document.title;
let flash, notification;

export const bell = {
  /** Sound, title, vibration, and a notification where this page is not in front. */
  start(who) {
    if (flash) return;
    chime.start();
    const ring = () => {
      document.title = document.title === TITLE ? `☎ ${who} is calling` : TITLE;
      navigator.vibrate?.([400, 200, 400]);
    };
    ring();
    flash = setInterval(ring, 1500);
    if (!document.hasFocus() || document.hidden) notification = notify(who);
  },

  stop() {
    if (!flash) return;
    clearInterval(flash);
    flash = null;
    chime.stop();
    navigator.vibrate?.(0);
    notification?.close();
    notification = null;
    document.title = TITLE;
  },
};

function notify(who) {
  if (globalThis.Notification?.permission !== "granted") return null;
  try {
    const shown = new Notification(`${who} is calling`, { body: "Click to answer in the Trunkline phone", tag: "call", requireInteraction: true });
    shown.onclick = () => { focus(); shown.close(); };
    return shown;
  } catch {
    return null; // Android has them by service workers only
  }
}

/** Must be called from a click. */
export async function askToNotify() {
  if (globalThis.Notification?.permission === "default") await Notification.requestPermission().catch(() => {});
}

export const mayAskToNotify = () => globalThis.Notification?.permission === "default";
