// The bell: sound, title, vibration, and a notification, so that it shows also in a tab that may not play sound yet (no click).
import { t } from "./language.js";
import { worker } from "./push.js";
import { busy, chime, congestion, knock, ringback, sample } from "./tones.js";

let title = t("appTitle");
/** How many calls were missed. */
export function setTitleCount(count) {
  const next = count ? t("recent.title.missed", { count, title: t("appTitle") }) : t("appTitle");
  if (document.title === title) document.title = next;
  title = next;
}
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
      document.title = document.title === title ? `☎ ${t("call.callingTitle", { name: who })}` : title;
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
    document.title = title;
  },
};

/** By the service worker, whose notifications have buttons; without one, a plain one. Its tag is the call's, as that of a push is: one call shows once. */
async function notify(id, who) {
  if (globalThis.Notification?.permission !== "granted") return null;
  const title = t("call.callingTitle", { name: who }), options = { body: t("call.notification"), tag: id, requireInteraction: true };
  try {
    const registration = await worker();
    const actions = ["answer", "decline"].map((action) => ({ action, title: t(`call.${action}`) }));
    await registration.showNotification(title, { ...options, actions, data: { call: id } });
    return (await registration.getNotifications({ tag: id }))[0] ?? null;
  } catch {
    return plain(title, options);
  }
}

function plain(title, options) {
  try {
    const shown = new Notification(title, options);
    shown.onclick = () => { focus(); shown.close(); };
    return shown;
  } catch {
    return null;
  }
}

/** Must be called from a click. */
export async function askToNotify() {
  if (globalThis.Notification?.permission === "default") await Notification.requestPermission().catch(() => {});
}

export const mayAskToNotify = () => globalThis.Notification?.permission === "default";

/** As it rings, once. */
export const ringOnce = () => chime.startFor(1.5);

export function stopSounds() {
  bell.stop();
  for (const tone of [busy, congestion, sample]) tone.stop();
  ringback.stop();
}
