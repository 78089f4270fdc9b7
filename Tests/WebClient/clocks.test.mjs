// A machine whose clock is years off, and one whose clock is set in a call.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { A, Clock, Rig, settle } from "./phone.mjs";

const REAL = 1_790_000_000_000, YEARS = 10 * 365 * 86_400_000;
const source = (name) => readFileSync(new URL(`../../Sources/Client/${name}`, import.meta.url), "utf8");

for (const [name, off] of [["ten years behind", -YEARS], ["ten years ahead", YEARS], ["at 1970", -REAL]]) {
  test(`a clock ${name} breaks no call: it rings, talks, counts its seconds, holds, and ends`, async () => {
    const clock = new Clock(REAL + off);
    const token = `e30.${btoa(JSON.stringify({ sub: "alice", dev: "web", iat: REAL / 1000, exp: REAL / 1000 + 3600 }))}.x`;
    const rig = new Rig({ clock, token: () => token });
    await rig.welcome({ time: REAL, ice: [{ urls: ["turn:t"], username: `${REAL / 1000}:alice`, credential: "c", ttlMs: 1 }] });
    assert.equal(rig.phone.skew, -off);
    const call = await rig.ring();
    call.answer();
    await settle();
    assert.equal(rig.said("call.answer")[0].d.ageMs, 0);
    await rig.ok("call.answer", { won: true });
    await rig.tell("call.connected", A, { at: REAL, codec: "opus" });
    assert.equal(rig.peer.configuration.iceServers.length, 1, "servers are good for as long as the gateway says nothing else");
    await clock.advance(clock.time + 61_000);
    assert.deepEqual([call.seconds, call.state, rig.world.sockets.length, rig.phone.state], [61, "connected", 1, "online"]);
    await rig.tell("call.ended", A, { reason: "remoteHangup" });
    await clock.advance(clock.time + 60_000);
    assert.equal(call.seconds, 61);
    // a late push, by this clock or by any other
    const late = rig.phone.push({ call: "7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a99", wake: "w", gw: "wss://gateway.example.com/v1/connect", exp: REAL / 1000 - 60 });
    assert.equal(late.state, "ringing", "whether it is over says the gateway");
  });
}

test("an app that gives a clock which is set back or forth in a call keeps its session", async () => {
  for (const jump of [-YEARS, YEARS]) {
    const clock = new Clock(REAL), rig = new Rig({ clock });
    await rig.welcome({ time: REAL });
    const call = await rig.talk();
    clock.start += jump;
    await clock.advance(clock.time + 120_000);
    assert.deepEqual([rig.phone.state, rig.world.sockets.length, call.state], ["online", 1, "connected"]);
  }
});

test("no source of the package asks a wall clock, but for the service worker's first guess", () => {
  for (const name of readdirSync(new URL("../../Sources/Client/WebClient", import.meta.url)).filter((one) => one.endsWith(".js"))) {
    const found = source(`WebClient/${name}`).match(/\bDate\b/g)?.length ?? 0;
    assert.equal(found, name === "service-worker.js" ? 1 : 0, name);
  }
  assert.match(source("WebClient/service-worker.js"), /const isLate = push\.exp \* 1000 < Date\.now\(\);/);
});

test("the web phone's history: the last call is first, and there, whatever the clocks said", async () => {
  const kept = new Map();
  globalThis.document = { getElementById: () => ({}) };
  globalThis.localStorage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  try {
    const { History } = await import("../../Sources/Client/WebPhone/history.js");
    const history = new History("alice");
    for (let n = 0; n < 60; n++) history.put({ id: `old${n}`, direction: "incoming", at: REAL + YEARS });
    history.put({ id: "new", direction: "outgoing", at: REAL, connectedMs: null, reason: null });
    assert.deepEqual([history.entries[0].id, history.entries.length, history.find("new").at], ["new", 50, REAL]);
    history.put({ id: "old59", reason: "remoteHangup" });
    history.put({ id: "new", at: REAL + 1, reason: "busy" });
    assert.deepEqual(history.entries.slice(0, 2).map(({ id, reason, at }) => [id, reason, at]), [["new", "busy", REAL + 1], ["old59", "remoteHangup", REAL + YEARS]]);
    for (const text of ["{", "null", "{}", '[null, 1, {"id": 7}]']) { kept.set("trunkline.history.alice", text); assert.deepEqual(history.entries, []); history.put({ id: "x", at: 1 }); assert.equal(history.entries.length, 1); }
  } finally {
    delete globalThis.document;
    delete globalThis.localStorage;
  }
});
