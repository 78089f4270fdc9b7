// The service worker, and calls that ring while this page is closed. Nothing is asked of the user but from a click.
import { app } from "./page.js";

let registering = null;

/** At the root, so that the page is in its scope. Null: this browser has none, or the page is not secure. */
export const worker = () => registering ??= (navigator.serviceWorker?.register("service-worker.js") ?? Promise.resolve(null)).catch(() => null);

/** What was clicked on a notification of a call that rings in this page: `{call, action}`, `action` empty where it was the notification itself. */
export function followNotifications() {
  navigator.serviceWorker?.addEventListener("message", ({ data }) => {
    if (data?.trunkline !== "notification") return;
    const call = app.phone?.calls.find(({ id, state }) => id === data.call && state === "ringing");
    // without a microphone the page says what to do first
    if (data.action === "decline") call?.decline(); else if (data.action === "answer" && !app.phone.microphoneFault) call?.answer();
  });
}

/** Whether this gateway and this browser can do it. */
export const canPush = () => !!app.phone?.pushKey && "serviceWorker" in navigator && "PushManager" in globalThis;

/** Who has it once keeps it: a subscription that is there is registered at each login. */
export async function resumePush() {
  const registration = await worker();
  if (!canPush() || globalThis.Notification?.permission !== "granted") return false;
  if (!(await registration?.pushManager?.getSubscription().catch(() => null))) return false;
  return enablePush();
}

/** From a click. False, and `phone.pushFault` says why, if it cannot be. */
export async function enablePush() {
  const registration = await worker();
  if (!registration) return false;
  return app.phone.enablePush(registration).then(() => true, () => false);
}

export const isPushOn = async () => !!(await (await worker())?.pushManager?.getSubscription().catch(() => null));

// — installing —

let prompt = null;
addEventListener("beforeinstallprompt", (event) => {
  event.preventDefault(); // it is offered in the settings, not over a call
  prompt = event;
  app.render();
});
addEventListener("appinstalled", () => { prompt = null; app.render(); });

export const canInstall = () => prompt !== null;
export async function install() {
  const asked = prompt;
  prompt = null;
  await asked?.prompt();
  app.render();
}
