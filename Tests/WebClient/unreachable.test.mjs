// A gateway that no WebSocket opens to: said after the first try, with what a browser can know of the cause, and tried on.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Phone, PhoneError } from "../../Sources/Client/WebClient/trunkline.js";
import { likelyCause } from "../../Sources/Client/WebClient/browser.js";
import { Clock, Rig, online, settle } from "./phone.mjs";

const says = (body) => async () => ({ json: async () => body });
const refuses = async () => { throw new TypeError("Failed to fetch"); };
/** A server whose answers a page of this origin may not read. */
const opaque = async (url, { mode }) => { if (mode === "cors") throw new TypeError("CORS"); return { type: "opaque" }; };
const page = (more) => Object.assign(new EventTarget(), more);
const GATEWAY = "wss://gateway.example.com/v1/connect";
const NONE = [undefined, null, 7, "ready", [], {}, { ready: "yes" }, { ready: null }];

for (const [name, cause, { fetch = refuses, window = page(), address = GATEWAY }] of [
  ["gateway down, unknown name, or a certificate that is refused", "nothing", {}],
  ["another server, or a path that is none", "notGateway", { fetch: async () => ({ json: async () => { throw new SyntaxError("<html>"); } }) }],
  ["a server whose answer may not be read", "closed", { fetch: opaque }],
  ["nginx without Upgrade headers", "noWebSocket", { fetch: says({ ready: true }) }],
  ["a gateway that starts", "notReady", { fetch: says({ ready: false }) }],
  ["an origin that the gateway refuses, where it says so", "origin", { fetch: says({ ready: true, page: false }) }],
  ["a foreign Host, where the gateway says so", "host", { fetch: says({ ready: true, page: true, host: "127.0.0.1:8080" }) }],
  ["the right Host", "noWebSocket", { fetch: says({ ready: true, page: true, host: "Gateway.example.com" }) }],
  ["no network", "offline", { window: page({ navigator: { onLine: false } }) }],
  ["no network, and a gateway on this machine", "nothing", { window: page({ navigator: { onLine: false } }), address: "ws://127.0.0.1:8080/v1/connect" }],
  ["ws from a page of https", "insecure", { window: page({ location: { protocol: "https:" } }), address: "ws://gateway.example.com/v1/connect" }],
  ["an address that is none", "address", { address: "gateway.example.com" }],
  ["an address of another kind", "address", { address: "https://gateway.example.com/v1/connect" }],
  ["an empty one", "address", { address: "" }],
  ["an answer that is none", "nothing", { fetch: () => undefined }],
  ["a fetch that throws at once", "nothing", { fetch: () => { throw new Error("blocked"); } }],
]) {
  test(`${name}: ${cause}`, async () => {
    const clock = new Clock();
    assert.equal(await likelyCause(address, { window, fetch, clock }).catch(() => "nothing"), cause);
    assert.equal(clock.count, 0, "no timer is left");
    const { text, reason } = new PhoneError("unreachable", cause);
    assert.match(text, /^[A-Z][^]{15,}\.$/);
    assert.equal(reason, cause);
  });
}

test("bodies that are no word of a gateway", async () => {
  for (const body of NONE) assert.equal(await likelyCause(GATEWAY, { fetch: says(body), clock: new Clock() }), "notGateway", JSON.stringify(body));
  assert.equal(await likelyCause(GATEWAY, { fetch: says({ ready: true, page: "no", host: 7 }), clock: new Clock() }), "noWebSocket");
  assert.match(new PhoneError("unreachable", "ofLater").text, /^The gateway cannot be reached/);
});

test("beside the socket's path, also below another one", async () => {
  const asked = [];
  const fetch = async (url) => { asked.push(url); return { json: async () => ({ ready: true }) }; };
  for (const address of [GATEWAY, "ws://g:8080/phone/v1/connect", "wss://g/socket", "WSS://g/v1/connect?x=1"]) await likelyCause(address, { fetch, clock: new Clock() });
  assert.deepEqual(asked, ["https://gateway.example.com/v1/ready", "http://g:8080/phone/v1/ready", "https://g/v1/ready", "https://g/v1/ready"]);
});

test("said after the first failed try; tried on; gone with the welcome", async () => {
  const told = [], rig = new Rig({ fetch: says({ ready: true }) });
  rig.phone.addEventListener("unreachable", ({ error }) => told.push(error.reason));
  await settle();
  assert.deepEqual([rig.phone.isReachable, rig.phone.error], [true, null]);
  rig.socket.end();
  assert.equal(rig.phone.isReachable, false, "at once");
  await settle();
  assert.deepEqual([told, rig.phone.state, rig.phone.error.code, rig.phone.error.reason], [["noWebSocket"], "connecting", "unreachable", "noWebSocket"]);
  assert.equal(rig.phone.text, rig.phone.error.text);
  for (let turn = 0; turn < 5; turn++) {
    const { length } = rig.world.sockets;
    await rig.clock.advance(rig.clock.time + 6_500);
    assert.equal(rig.world.sockets.length, length + 1, "tried on");
    rig.socket.end();
  }
  await settle();
  assert.equal(told.length, 2, "once in 30 s");
  await rig.clock.advance(rig.clock.time + 6_500);
  await rig.welcome();
  assert.deepEqual([rig.phone.state, rig.phone.isReachable, rig.phone.error, rig.phone.text], ["online", true, null, "online"]);
  // the next outage is one of its own
  rig.socket.end();
  assert.equal(rig.phone.error, null, "no try has failed yet");
  await rig.clock.advance(rig.clock.time + 6_500);
  rig.socket.end();
  await settle();
  assert.equal(told.length, 3);
});

test("a server that never answers: nothing, and no timer is left; an answer behind the welcome is not said", async () => {
  const rig = new Rig({ fetch: () => new Promise(() => {}) });
  await settle();
  rig.socket.end();
  await rig.clock.advance(rig.clock.time + 11_000);
  assert.equal(rig.phone.error.reason, "nothing");
  rig.phone.close();
  assert.equal(rig.left().timers, 0);
  let answer;
  const late = new Rig({ fetch: () => new Promise((done) => { answer = done; }) }), told = [];
  late.phone.addEventListener("unreachable", () => told.push(1));
  await settle();
  late.socket.end();
  await late.clock.advance(late.clock.time + 300);
  await late.welcome();
  answer({ json: async () => ({ ready: true }) });
  await settle();
  assert.deepEqual([told, late.phone.state, late.phone.error], [[], "online", null]);
});

test("a call that waits for a gateway which is not reached says why it could not be made", async () => {
  const rig = new Rig({ fetch: refuses });
  await settle();
  rig.socket.end();
  const call = rig.phone.call("+15559990001");
  await rig.clock.advance(rig.clock.time + 15_000);
  assert.deepEqual([call.state, call.error.code, call.error.reason], ["ended", "unreachable", "nothing"]);
});

test("a refusal by the gateway is no unreachable one, nor is a session that breaks and is back", async () => {
  const told = [], refused = new Rig();
  refused.phone.addEventListener("unreachable", () => told.push("refused"));
  await settle();
  refused.socket.open();
  refused.socket.end(4003);
  const back = await online();
  back.phone.addEventListener("unreachable", () => told.push("back"));
  back.socket.end();
  await back.clock.advance(back.clock.time + 300);
  await back.welcome({ resumed: true, replayFrom: 1 });
  await settle();
  assert.deepEqual([told, refused.phone.error.code], [[], "revoked"]);
});

test("an address that is none is said, and nothing throws", async () => {
  class Picky { constructor() { throw new DOMException("not a URL", "SyntaxError"); } }
  const phone = new Phone("phone.example.com", { ...new Rig().options, WebSocket: Picky });
  await settle();
  assert.deepEqual([phone.state, phone.error.reason], ["connecting", "address"]);
  phone.close();
});

test("trunkline.js can be imported from another origin: every module of it is named beside the one that imports it", () => {
  const folder = new URL("../../Sources/Client/WebClient/", import.meta.url), files = readdirSync(folder).filter((name) => name.endsWith(".js"));
  let count = 0;
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), "utf8");
    for (const [, from] of text.matchAll(/(?:^import [^"\n]*|\bimport\()"([^"]+)"/gm)) {
      count++;
      assert.ok(from.startsWith("./") && files.includes(from.slice(2)), `${name}: ${from}`);
    }
    assert.ok(!/\bdocument\.currentScript\b|\blocation\.origin\b/.test(text), name);
  }
  assert.ok(count >= 15, `${count}`);
});
