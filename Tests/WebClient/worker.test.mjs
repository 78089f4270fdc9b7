// The service worker where there are many nodes (docs/reference/protocol.md, Many nodes), on the fakes; Tests/Interop has it in Chromium.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";
import { Clock, settle, webSockets } from "./fakes.mjs";
import { A } from "./phone.mjs";
import { LANGUAGES } from "../../Sources/Client/WebPhone/language.js";

const SOURCE = readFileSync(new URL("../../Sources/Client/WebClient/service-worker.js", import.meta.url), "utf8");

/** A worker without a page, whose one notification is `shown`. */
class Worker {
  constructor(languages) {
    this.sent = [];
    this.clock = new Clock();
    this.world = { sent: (socket, text) => this.sent.push(JSON.parse(text)) };
    this.handlers = {};
    this.shown = 0;
    this.titles = [];
    this.shows = [];
    this.posts = [];
    const registration = {
      scope: "/", showNotification: async (title, options) => { this.shown = 1; this.titles.push(title); this.shows.push({ title, ...options }); }, getNotifications: async () => (this.shown ? [{ close: () => { this.shown = 0; } }] : []),
    };
    this.clients = { matchAll: async () => [], openWindow: async () => {} };
    const self = { addEventListener: (type, f) => { this.handlers[type] = f; }, registration, clients: this.clients, ...(languages && { navigator: { languages } }) };
    const fetch = async (url, request) => { this.posts.push({ url: String(url), ...request }); return { ok: false }; };
    let ids = 0;
    vm.runInNewContext(SOURCE, {
      self, fetch, URL, URLSearchParams, Date: { now: () => this.clock.now() }, WebSocket: webSockets(this.world), crypto: { randomUUID: () => `id${++ids}` },
      setTimeout: (f, ms) => this.clock.setTimeout(f, ms), clearTimeout: (timer) => this.clock.clearTimeout(timer), setInterval: () => 0, clearInterval: () => {},
      Math, Number,
    });
    this.payload = { v: 1, t: "call", call: A, exp: this.clock.now() / 1000 + 45, acct: "a", from: { k: "phone", h: "+1" }, video: false, gw: "wss://n1/v1/connect", wake: "w1" };
  }
  fire(type, fields) { this.handlers[type]({ waitUntil: () => {}, ...fields }); return settle(); }
  push() { return this.fire("push", { data: { json: () => this.payload } }); }
  get socket() { return this.world.sockets.at(-1); }
  async say(frame) { this.socket.say(frame); await settle(); }
  async close(code) { this.socket.end(code); await settle(); }
  get urls() { return this.world.sockets.map(({ url }) => url); }
}

test("a node that has the call no more sends the worker on, and it rings there", async () => {
  const worker = new Worker();
  await worker.push();
  worker.socket.open();
  assert.deepEqual(worker.sent.at(-1).d.wake, "w1");
  await worker.say({ t: "bye", d: { code: 1012, url: "wss://n2/v1/connect", afterMs: 500 } });
  await worker.close(1012);
  await worker.clock.advance(499);
  assert.deepEqual(worker.urls, ["wss://n1/v1/connect"]);
  await worker.clock.advance(500);
  assert.deepEqual(worker.urls, ["wss://n1/v1/connect", "wss://n2/v1/connect"]);
  worker.socket.open();
  await worker.say({ t: "welcome", d: { calls: [{ call: A, state: "ringing" }] } });
  assert.deepEqual([worker.sent.filter(({ t }) => t === "call.ringing").length, worker.shown], [1, 1]);
  await worker.say({ t: "call.cancel", call: A, seq: 1, d: { reason: "callerCancelled" } });
  assert.deepEqual([worker.shown, worker.clock.count], [0, 0]);
});

test("an overloaded node does not end the call on the screen; four words are followed", async () => {
  const worker = new Worker();
  await worker.push();
  for (let turn = 0; turn < 5; turn++) {
    worker.socket.open();
    await worker.say({ t: "err", re: worker.sent.filter(({ t }) => t === "hello").at(-1).id, d: { code: "overload", retryMs: 10, url: turn % 2 ? 7 : "https://n2" } });
    await worker.close(1013);
    await worker.clock.advance(worker.clock.time + 10);
  }
  assert.deepEqual([worker.urls.length, worker.shown, worker.clock.count], [5, 1, 0]);
});

test("decline beside the socket's path; refused there, by the socket at the node that has the call", async () => {
  const worker = new Worker();
  worker.payload.gw = "wss://g/n/n1/v1/connect";
  await worker.fire("notificationclick", { action: "decline", notification: { data: { push: worker.payload }, close() {} } });
  assert.deepEqual([worker.posts[0].url, worker.posts[0].headers.authorization], [`https://g/n/n1/v1/calls/${A}/reject`, "Bearer w1"]);
  worker.socket.open();
  await worker.say({ t: "bye", d: { code: 1012, url: "wss://n2" } });
  await worker.close(1012);
  await worker.clock.advance(0);
  worker.socket.open();
  await worker.say({ t: "welcome", d: { calls: [] } });
  assert.deepEqual(worker.sent.filter(({ t }) => t === "call.reject").map(({ d }) => d), [{ reason: "declined", scope: "all" }]);
  await worker.say({ t: "ok", re: "x" });
  assert.equal(worker.clock.count, 0);
});

test("where this machine's clock is years ahead the gateway says whether the call lives, and it rings", async () => {
  const worker = new Worker();
  worker.payload.exp = worker.clock.now() / 1000 - 3e8;
  await worker.push();
  worker.socket.open();
  assert.deepEqual([worker.titles, worker.sent.at(-1).d.wake], [[], "w1"]);
  await worker.say({ t: "welcome", d: { calls: [{ call: A, state: "ringing" }] } });
  assert.deepEqual(worker.titles, ["+1 is calling"]);
  await worker.clock.advance(10_000);
  await worker.say({ t: "call.cancel", call: A, seq: 1, d: { reason: "callerCancelled" } });
  assert.deepEqual([worker.shown, worker.clock.count], [0, 0]);
});

test("a push whose call is over, or whose gateway is silent, was missed", async () => {
  for (const end of [
    (worker) => worker.say({ t: "err", re: "id1", d: { code: "auth", fatal: true } }), (worker) => worker.close(1006),
    (worker) => worker.clock.advance(5_000),
    async (worker) => { await worker.say({ t: "welcome", d: { calls: [] } }); await worker.say({ t: "pong" }); },
  ]) {
    const worker = new Worker();
    worker.payload.exp = worker.clock.now() / 1000 - 1;
    await worker.push();
    worker.socket.open();
    await end(worker);
    assert.deepEqual([worker.titles, worker.shown, worker.clock.count], [["Missed call"], 1, 0]);
  }
});

test("a notification of a page: its buttons are the page's to do, and it is in front but for a decline", async () => {
  const worker = new Worker(), posts = [];
  let focused = 0;
  worker.clients.matchAll = async () => [{ postMessage: (message) => posts.push(message), focus: async () => { focused++; } }];
  for (const action of ["answer", "decline", ""]) {
    await worker.fire("notificationclick", { action, notification: { data: { call: A }, close: () => {} } });
  }
  assert.deepEqual(JSON.parse(JSON.stringify(posts)), ["answer", "decline", ""].map((action) => ({ trunkline: "notification", call: A, action })));
  assert.deepEqual([focused, worker.posts], [2, []]);
});

// — what notifications say —

const TEXTS = JSON.parse(vm.runInNewContext(`${SOURCE.match(/const TEXTS = \{[^]*?\n\};/)[0]} JSON.stringify(TEXTS)`));

test("notifications are in the browser's language: a call, one that was missed, one of a later version", async () => {
  const said = async (languages, act) => {
    const worker = new Worker(languages);
    Object.assign(worker.payload, { from: { k: "phone", h: "+1", n: "Ada" }, to: { k: "phone", h: "+2", n: "Sales" } });
    await act(worker);
    const { title, body, lang, actions } = worker.shows.at(-1);
    return [title, body, lang, ...(actions ?? []).map((one) => one.title)];
  };
  const rings = (worker) => worker.push(), later = (worker) => worker.fire("push", { data: { json: () => ({ t: "call", v: 2 }) } });
  const missed = async (worker) => {
    worker.payload.exp = 0;
    await worker.push();
    worker.socket.open();
    await worker.say({ t: "welcome", d: { calls: [] } });
    await worker.say({ t: "pong" });
  };
  assert.deepEqual(await said(["en-GB"], rings), ["Ada is calling", "+1 for Sales", "en", "Answer", "Decline"]);
  assert.deepEqual(await said(["nl", "de-AT"], rings), ["Ada ruft an", "+1 für Sales", "de", "Annehmen", "Ablehnen"]);
  assert.deepEqual(await said(["fr"], rings), ["Ada appelle", "+1 pour Sales", "fr", "Répondre", "Refuser"]);
  assert.deepEqual(await said(["es-MX"], rings), ["Llama Ada", "+1 para Sales", "es", "Contestar", "Rechazar"]);
  assert.deepEqual(await said(["de"], missed), ["Verpasster Anruf", "Ada", "de"]);
  assert.deepEqual(await said(["fr"], later), ["Appel", "Ouvrez le téléphone pour voir qui appelle.", "fr"]);
  for (const odd of [undefined, [], ["ja"], ["constructor"], [null, 5]]) assert.equal((await said(odd, rings))[0], "Ada is calling");
});

test("the worker's texts are the page's: the same languages, every text in each, and one word for one thing", async () => {
  assert.deepEqual(Object.keys(TEXTS).sort(), [...LANGUAGES].sort());
  for (const language of LANGUAGES) {
    const page = (await import(new URL(`../../Sources/Client/WebPhone/texts-${language}.js`, import.meta.url))).default, own = TEXTS[language];
    assert.deepEqual([own.calling, own.answer, own.decline], [page["call.callingTitle"], page["call.answer"], page["call.decline"]], language);
    assert.equal(own.missed.toLowerCase(), page["recent.missedCount"].one.replace("{count} ", "").toLowerCase(), language);
    assert.deepEqual(Object.keys(own), Object.keys(TEXTS.en), language);
    for (const key of Object.keys(own)) {
      assert.equal(own[key].includes("{name}"), TEXTS.en[key].includes("{name}"), `${language}: ${key}`);
      if (language !== "en") assert.notEqual(own[key], TEXTS.en[key], `${language}: ${key}`);
    }
  }
});

test("a name of a notification keeps to itself: marks that turn the text, lines, no end, what a replacement would read", async () => {
  for (const [name, shown] of [["a\u202Egpj.exe\u2066", "a gpj.exe is calling"], ["Ann\n<b>x</b>", "Ann <b>x</b> is calling"], ["x".repeat(500), `${"x".repeat(120)} is calling`],
    ["$& $1", "$& $1 is calling"], ["\u202E", "Unknown caller is calling"]]) {
    const worker = new Worker();
    worker.payload.from = { k: "phone", h: "+1", n: name };
    await worker.push();
    assert.equal(worker.titles.at(-1), shown);
  }
});
