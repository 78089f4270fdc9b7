// What the gateway keeps of a user, asked by trunkline.js.
import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "./fakes.mjs";
import { A, Rig } from "./phone.mjs";

const caps = ["hist", "dir"];
const row = (more) => ({ id: 7, call: A.toUpperCase(), dir: "in", peer: { k: "phone", h: "+15550001", n: "Ann" }, start: 1, connect: 2, end: 3, outcome: "missed", reason: "callerCancelled", acct: "default", ...more });
const failure = (promise) => promise.then(() => "no failure", ({ code, reason }) => [code, reason]);

test("a page of the history is asked without a number, and is what the gateway says", async () => {
  const rig = await new Rig().welcome({ caps });
  assert.deepEqual([rig.phone.keepsHistory, rig.phone.keepsDirectory], [true, true]);
  const asked = rig.phone.history({ before: 9, limit: 500 });
  await settle();
  const [frame] = rig.said("hist.list");
  assert.deepEqual([frame.d, frame.seq], [{ before: 9, limit: 50 }, undefined]);
  await rig.ok("hist.list", { hist: { calls: [row(), row({ id: 6, dir: "out", outcome: "answered", device: "web", connect: undefined })], next: 6 } });
  const { calls, next } = await asked;
  assert.equal(next, 6);
  assert.deepEqual(calls[0], { id: 7, call: A, direction: "incoming", peer: { k: "phone", h: "+15550001", n: "Ann" }, startedAt: 1, connectedAt: 2, endedAt: 3, outcome: "missed", reason: "callerCancelled", device: null, account: "default" });
  assert.deepEqual([calls[1].direction, calls[1].connectedAt, calls[1].device], ["outgoing", null, "web"]);
});

test("rows that are none, and outcomes of a later version, break nothing", async () => {
  const rig = await new Rig().welcome({ caps });
  const odd = [null, 5, "x", {}, row({ id: "7" }), row({ id: -1 }), row({ peer: null }), row({ peer: {} }), row({ call: 5 }), row({ outcome: "__proto__", start: "x", end: 1.5, reason: 7, device: {} })];
  for (const hist of [undefined, null, 5, { calls: "x" }, { calls: odd, next: "9" }]) {
    const asked = rig.phone.history();
    await settle();
    await rig.ok("hist.list", { hist });
    const { calls, next } = await asked;
    assert.equal(next, null);
    assert.deepEqual(calls.map(({ outcome, startedAt, reason, device }) => [outcome, startedAt, reason, device]), hist?.calls === odd ? [["failed", 0, "unknown", null]] : []);
  }
  const names = rig.phone.names(["+1", "+1", 5, "", null]);
  await settle();
  assert.deepEqual(rig.said("hist.resolve")[0].d, { handles: ["+1"] });
  await rig.ok("hist.resolve", { names: [{ k: "phone", h: "+1", n: "Ann" }, { k: "phone", h: "+2" }, null, { n: "x" }] });
  assert.deepEqual(await names, [{ k: "phone", h: "+1", n: "Ann" }]);
  assert.deepEqual([await rig.phone.names([]), await rig.phone.findNames("   "), rig.said("dir.find").length], [[], [], 0]);
});

test("names are found by what is typed, cut to what the gateway takes, and the user's numbers come with their order", async () => {
  const rig = await new Rig().welcome({ caps });
  const found = rig.phone.findNames(` ${"é".repeat(500)} `, { limit: 5 });
  const own = rig.phone.ownNumbers();
  await settle();
  assert.deepEqual(rig.said("dir.find")[0].d, { text: "é".repeat(32), limit: 5 });
  await rig.ok("dir.find", { names: [{ k: "phone", h: "+1", n: "Ann" }] });
  await rig.ok("user.get", { user: { numbers: ["+15551230001", 5, "", "+15551230002"], name: "Alice" } });
  assert.deepEqual([await found, await own], [[{ k: "phone", h: "+1", n: "Ann" }], ["+15551230001", "+15551230002"]]);
});

test("a question that the gateway refuses, does not answer or that cannot be asked is settled", async () => {
  const rig = await new Rig().welcome({ caps: [] });
  assert.equal(rig.phone.keepsHistory, false);
  const refused = failure(rig.phone.history());
  await settle();
  await rig.refuse("hist.list", { code: "unsupported" });
  assert.deepEqual(await refused, ["refused", "unsupported"]);
  const silent = failure(rig.phone.ownNumbers());
  await rig.clock.advance(rig.clock.time + 15_001);
  assert.deepEqual(await silent, ["unreachable", ""]);
  const many = Array.from({ length: 9 }, () => failure(rig.phone.history()));
  assert.deepEqual(await many[8], ["refused", "tooMany"]);
  rig.phone.close();
  assert.deepEqual(await Promise.all(many.slice(0, 8)), Array(8).fill(["unreachable", ""]));
  assert.deepEqual(await failure(rig.phone.history()), ["unreachable", ""]);
});

test("a question lives over a resumed session, and its answer is heard once", async () => {
  const rig = await new Rig().welcome({ caps });
  const asked = rig.phone.history();
  await settle();
  rig.socket.end();
  await rig.clock.advance(rig.clock.time + 1_000);
  await rig.welcome({ caps, resumed: true });
  assert.equal(rig.said("hist.list").length, 2);
  assert.equal(rig.said("hist.list")[0].id, rig.said("hist.list")[1].id);
  await rig.ok("hist.list", { hist: { calls: [row()] } });
  assert.equal((await asked).calls.length, 1);
});

test("what has changed at the gateway is an event", async () => {
  const rig = await new Rig().welcome({ caps });
  const events = [];
  for (const type of ["history", "directory"]) rig.phone.addEventListener(type, ({ isErased }) => events.push([type, isErased]));
  await rig.say({ t: "hist.changed", d: { id: 17 } });
  await rig.say({ t: "hist.changed", d: { id: 0 } });
  await rig.say({ t: "dir.changed", d: { version: 5 } });
  assert.deepEqual(events, [["history", false], ["history", true], ["directory", undefined]]);
});

test("the number that a call rings is what the gateway has read, known before it rings", async () => {
  const rig = await new Rig().welcome({ caps });
  const call = rig.phone.call("1-800-FLOWERS");
  await settle();
  assert.equal(call.peer.h, "1-800-FLOWERS");
  const [start] = rig.said("call.start");
  assert.equal(start.d.to.h, "1-800-FLOWERS");
  for (const to of [undefined, null, 5, { h: 5 }, { k: "phone", h: "" }]) assert.ok(call.peer.h, JSON.stringify(to));
  await rig.ok("call.start", { call: call.id, sdp: "answer", to: { k: "phone", h: "+18003569377" } });
  assert.deepEqual(call.peer, { k: "phone", h: "+18003569377" });
  assert.equal(call.phase === "progress", false);
});
