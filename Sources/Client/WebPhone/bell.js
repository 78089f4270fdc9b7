// Sounds: the bell, which also shows in a tab that may not play sound yet (no click), and the ringback tone of an outgoing call.
import { t } from "./language.js";

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
/** Call waiting: beside a voice, so short and soft. */
const knock = new Tone([440], { on: 0.3, off: 3.7, volume: 0.03 });
export const ringback = new Tone([440, 480], { on: 2, off: 4, volume: 0.03 });

const TITLE = t("appTitle");
let flash, notification, rung = null;

export const bell = {
  /** Sound, title, vibration, and a notification where this page is not in front. `isWaiting`: beside another call. */
  start(id, who, isWaiting) {
    const key = `${id} ${isWaiting}`;
    if (rung === key) return;
    bell.stop();
    rung = key;
    (isWaiting ? knock : chime).start();
    const ring = () => {
      document.title = document.title === TITLE ? `☎ ${t("call.callingTitle", { name: who })}` : TITLE;
      if (!isWaiting) navigator.vibrate?.([400, 200, 400]);
    };
    ring();
    flash = setInterval(ring, 1500);
    if (!document.hasFocus() || document.hidden) notification = notify(id, who);
  },

  stop() {
    if (!rung) return;
    rung = null;
    clearInterval(flash);
    chime.stop();
    knock.stop();
    navigator.vibrate?.(0);
    notification?.then((shown) => shown?.close());
    notification = null;
    document.title = TITLE;
  },
};

/** Its tag is the call's, as the service worker's is: one call shows once. */
async function notify(id, who) {
  if (globalThis.Notification?.permission !== "granted") return null;
  const [title, options] = [t("call.callingTitle", { name: who }), { body: t("call.notification"), tag: id, requireInteraction: true }];
  try {
    const shown = new Notification(title, options);
    shown.onclick = () => { focus(); shown.close(); };
    return shown;
  } catch {
    return notifyByWorker(title, options); // Android has them by service workers only
  }
}

async function notifyByWorker(title, options) {
  try {
    const registration = await navigator.serviceWorker.getRegistration();
    await registration.showNotification(title, options);
    return (await registration.getNotifications({ tag: options.tag }))[0];
  } catch {
    return null;
  }
}

/** Must be called from a click. */
export async function askToNotify() {
  if (globalThis.Notification?.permission === "default") await Notification.requestPermission().catch(() => {});
}

export const mayAskToNotify = () => globalThis.Notification?.permission === "default";

export function stopSounds() {
  bell.stop();
  ringback.stop();
}
