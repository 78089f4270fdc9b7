// The service worker of trunkline.js: a Web Push of the gateway rings as a notification with answer and decline, while no page is open.
//
// A page registers it (`navigator.serviceWorker.register("/service-worker.js")`) and hands it to `phone.enablePush(registration)`. A page that
// lives is told of the push and rings itself. Where none does, this worker rings at the gateway by the push's own token, so that the caller
// hears that it rings and the notification goes when the call is over. Decline is one HTTP request; answer opens the page on `#push=…`.

const VERSION = 1;
/** A page that lives answers at once; one that is frozen does not. */
const PAGE_TIME = 700;
/** The gateway's ring window, and what a browser lets a push's worker live. */
const RING_TIME = 60_000;
/** A push that is over by this machine's clock, which may be wrong: the gateway has so long to say that its call lives. */
const ASK_TIME = 5_000;
const HEARTBEAT = 10_000;
/** Words of nodes that point elsewhere, for one call. */
const POINTERS = 4;

/** What notifications say, in the first of the browser's languages that is here. A worker loads no modules in each browser, so that the texts of a page are out of its reach. */
const TEXTS = {
  en: {
    calling: "{name} is calling", for: "for {name}", answer: "Answer", decline: "Decline", missed: "Missed call", unknown: "Unknown caller", call: "Call",
    open: "Open the phone to see who is calling.",
  },
  de: {
    calling: "{name} ruft an", for: "für {name}", answer: "Annehmen", decline: "Ablehnen", missed: "Verpasster Anruf", unknown: "Unbekannter Anrufer", call: "Anruf",
    open: "Öffnen Sie das Telefon, um zu sehen, wer anruft.",
  },
  fr: {
    calling: "{name} appelle", for: "pour {name}", answer: "Répondre", decline: "Refuser", missed: "Appel manqué", unknown: "Appelant inconnu", call: "Appel",
    open: "Ouvrez le téléphone pour voir qui appelle.",
  },
  es: {
    calling: "Llama {name}", for: "para {name}", answer: "Contestar", decline: "Rechazar", missed: "Llamada perdida", unknown: "Número desconocido", call: "Llamada",
    open: "Abre el teléfono para ver quién llama.",
  },
};
function language() {
  const own = (self.navigator?.languages ?? []).map((tag) => String(tag).toLowerCase().split("-")[0]);
  return own.find((one) => Object.hasOwn(TEXTS, one)) ?? "en";
}
const t = (key, name) => TEXTS[language()][key].replace("{name}", () => name);
/** A name from outside: on one line, not endless, and without marks that turn the text around it. */
const plain = (text) => [...String(text).replace(/[\p{Cc}\u200E\u200F\u2028-\u202E\u2066-\u2069]+/gu, " ").trim()].slice(0, 120).join("");

/** Calls that ring here: id → { done, reject }. */
const ringing = new Map();

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(pushed(event.data)));
self.addEventListener("notificationclick", (event) => event.waitUntil(clicked(event)));
self.addEventListener("notificationclose", (event) => {
  // swept away: this browser is silent, other devices ring on
  const { push } = event.notification.data ?? {};
  if (push) ringing.get(push.call)?.done();
});
self.addEventListener("message", (event) => {
  const { data, ports } = event;
  if (data?.trunkline === "version") ports[0]?.postMessage({ version: VERSION });
});

/** The push's payload (docs/design/devices-and-push.md); null if it is none of ours or none that is understood. */
function read(data) {
  try {
    const push = data.json();
    return push?.t === "call" && push.v === 1 && [push.call, push.wake, push.gw].every((text) => typeof text === "string") ? push : null;
  } catch { return null; }
}

async function pushed(data) {
  const push = data && read(data);
  // a browser wants each push shown; a later version's is a call of somebody unknown
  if (!push) return show(t("call"), { body: t("open"), tag: "unknown" });
  const isLate = push.exp * 1000 < Date.now();
  if (!isLate) await ring(push);
  if (await told(push)) return;
  await wait(push, undefined, isLate);
}

const caller = ({ from }) => plain(from?.n || from?.h || "") || t("unknown");
const show = (title, options) => self.registration.showNotification(title, { lang: language(), dir: "auto", ...options });

function ring(push) {
  return show(t("calling", caller(push)), {
    body: [push.from?.n && push.from.h, push.to?.n && t("for", plain(push.to.n))].filter(Boolean).join(" "), tag: push.call, renotify: true, requireInteraction: true, vibrate: [400, 200, 400, 200, 400],
    data: { push }, actions: ["answer", "decline"].map((action) => ({ action, title: t(action) })),
  });
}

async function close(call) {
  for (const notification of await self.registration.getNotifications({ tag: call })) notification.close();
}

// — the page —

const windows = () => self.clients.matchAll({ type: "window", includeUncontrolled: true });

/** True: a page lives and has the call. */
async function told(push) {
  const pages = await windows();
  if (!pages.length) return false;
  return new Promise((done) => {
    const timer = setTimeout(() => done(false), PAGE_TIME);
    for (const page of pages) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { clearTimeout(timer); done(true); };
      page.postMessage({ trunkline: "push", push }, [port2]);
    }
  });
}

async function clicked({ action, notification }) {
  const { push, call } = notification.data ?? {};
  notification.close();
  if (call) return rungByPage(call, action);
  if (action === "decline" && push) return decline(push);
  const asked = push && { ...push, answers: action === "answer" };
  const [page] = await windows();
  if (page) {
    await page.focus().catch(() => {});
    if (asked) page.postMessage({ trunkline: "push", push: asked });
    // a page without the package's phone, or none at all, is opened on the call
    if (!asked || await told(asked)) return;
  }
  ringing.get(push?.call)?.done();
  const hash = asked ? "#" + new URLSearchParams({ push: JSON.stringify(asked) }) : "";
  await self.clients.openWindow(self.registration.scope + hash);
}

/** A page has shown it, for a call that rings there: it knows what to do. */
async function rungByPage(call, action) {
  const pages = await windows();
  for (const page of pages) page.postMessage({ trunkline: "notification", call, action });
  if (action !== "decline") await pages[0]?.focus().catch(() => {});
}

/**
 * By HTTP; where another origin's gateway does not let that through, by the socket. Whichever comes first counts, and both succeed. A 307 to
 * another node (docs/reference/protocol.md, Many nodes) is followed by the browser; where it leaves the token out, the socket is next.
 */
async function decline(push) {
  const d = { reason: "declined", scope: "all" };
  for (const page of await windows()) page.postMessage({ trunkline: "push", push: { ...push, declines: true } });
  // beside the socket's path: the node may be behind a longer one
  const url = new URL(/\/v1\/connect$/.test(push.gw) ? `calls/${push.call}/reject` : `/v1/calls/${push.call}/reject`, push.gw.replace(/^ws/, "http"));
  const headers = { authorization: `Bearer ${push.wake}`, "content-type": "application/json" };
  const isDone = await fetch(url, { method: "POST", headers, body: JSON.stringify(d), keepalive: true }).then((answer) => answer.ok, () => false);
  if (isDone) ringing.get(push.call)?.done(); else await wait(push, d);
}

// — the gateway, while no page is open —

/**
 * Rings there, and closes the notification when the call is over, answered elsewhere, or a page has taken the line; or rejects. `asks`:
 * nothing is shown before the gateway's snapshot has the call, and without it that it was missed.
 */
function wait(push, rejection, asks = false) {
  const known = ringing.get(push.call);
  if (known) return rejection && known.reject(rejection);
  return new Promise((resolve) => {
    let isShown = !asks;
    let socket, seen = 0, sent = 0, heartbeat, hello, next = null, pointers = 0;
    const write = (message) => { if (socket.readyState === 1) socket.send(JSON.stringify(message)); };
    const tell = (t, more) => write({ t, call: push.call, seq: ++sent, ...more });
    const reject = (d) => tell("call.reject", { id: crypto.randomUUID(), d });
    const done = (isOver = false) => {
      if (!ringing.delete(push.call)) return;
      clearInterval(heartbeat);
      clearTimeout(timer);
      clearTimeout(next?.timer);
      socket.onclose = socket.onmessage = null;
      socket.close(1000);
      if (!isShown) resolve(show(t("missed"), { body: caller(push), tag: push.call })); else resolve(isOver ? close(push.call) : undefined);
    };
    let timer = setTimeout(() => done(true), asks ? ASK_TIME : RING_TIME);
    const lives = () => {
      if (!isShown) {
        isShown = true;
        clearTimeout(timer);
        timer = setTimeout(() => done(true), RING_TIME);
        ring(push);
      }
      tell("call.ringing");
    };
    ringing.set(push.call, { done, reject });
    const connect = (url) => {
      try { socket = new WebSocket(url, "trunkline.v1"); } catch { return done(); }
      socket.onopen = opened;
      // 4009: a page of this device is online and rings; else the notification stays: a tap on it still reaches the gateway
      socket.onclose = () => {
        clearInterval(heartbeat);
        if (!next || pointers++ >= POINTERS) return done();
        const { url: there, ms } = next;
        next = { timer: setTimeout(() => { next = null; connect(there); }, ms) };
      };
      socket.onmessage = heard;
    };
    const opened = () => {
      const device = { id: "", platform: "web", model: "service worker", os: "", sdk: "trunkline.js/2" };
      write({ t: "hello", id: hello = crypto.randomUUID(), d: { wake: push.wake, device, caps: ["nodes"], state: "bg" } });
      heartbeat = setInterval(() => write({ t: "ping" }), HEARTBEAT);
    };
    /** Another node has it, or this one has no time: docs/reference/protocol.md, Many nodes. */
    const point = (url, ms) => { next = { url: /^wss?:\/\/[^/]/.test(url) ? url : push.gw, ms: Math.min(RING_TIME, Math.max(0, Number(ms) || 0)) }; };
    const heard = ({ data }) => {
      let frame;
      try { frame = JSON.parse(data); } catch { return done(); }
      if (frame.t === "bye") return frame.d?.code === 1012 ? point(frame.d.url, frame.d.afterMs) : undefined;
      if (frame.t === "err" && frame.re === hello && frame.d?.code === "overload") return point(frame.d.url, frame.d.retryMs);
      if (frame.seq > seen) write({ t: "ack", ack: seen = frame.seq });
      if (frame.t === "welcome") {
        if (rejection) reject(rejection);
        else if (frame.d?.calls?.some((row) => row.call === push.call && row.state === "ringing")) lives();
        write({ t: "ping" });
      }
      // a call that is neither in the snapshot nor named before the pong is over (docs/reference/protocol.md, Calls); so is one that was rejected
      if (frame.t === "err" || frame.t === "ok" || (frame.t === "pong" && !sent)) return done(true);
      if (frame.call === push.call && /^call\.(cancel|ended|gone)$/.test(frame.t)) done(true);
    };
    connect(push.gw);
  });
}
