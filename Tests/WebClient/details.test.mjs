// What is told of a call beside who calls, and what an app gives along.
import assert from "node:assert/strict";
import { test } from "node:test";
import { callWords } from "../../Sources/Client/WebPhone/words.js";
import { A, OFFER, Rig, online, settle } from "./phone.mjs";

const PUSH = { call: A, wake: "w", gw: "wss://gateway.example.com/v1/connect", from: OFFER.from };
const SALES = { k: "phone", h: "+15551230001", n: "Sales" }, BOSS = { k: "generic", h: "+15551230009" };
const told = ({ called, attestation, isPrivate, diverted, parameters }) => ({ called, attestation, isPrivate, diverted, parameters });
const MANY = (count) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, "v".repeat(50)]));
const NOTHING = { called: null, attestation: null, isPrivate: false, diverted: [], parameters: {} };

test("called number, attestation, diversion, parameters: of a push, of the offer behind it, and of a snapshot", async () => {
  const rig = await online();
  let first;
  rig.phone.addEventListener("incoming", ({ call }) => { first = told(call); });
  const call = rig.phone.push({ ...PUSH, to: SALES, parameters: { ticket: "7" } });
  assert.deepEqual(first, { ...NOTHING, called: SALES, parameters: { ticket: "7" } }, "whoever hears of it finds them");
  assert.equal(callWords(call, true), "is calling for Sales");
  await rig.tell("call.offer", A, { ...OFFER, to: SALES, pstn: { trunk: "t", privacy: false, attest: "A", diverted: [BOSS] }, parameters: { ticket: "8", "X-Id": "a" } });
  assert.deepEqual(told(call), { called: SALES, attestation: "A", isPrivate: false, diverted: [{ ...BOSS, k: "phone" }], parameters: { ticket: "8", "X-Id": "a" } });
  assert.equal(callWords(call, true), "is calling for Sales via +15551230009");
  const loaded = new Rig();
  await loaded.welcome({ calls: [{ call: A, dir: "in", state: "connected", from: OFFER.from, to: SALES, gen: 1, at: 1, pstn: { privacy: true, attest: "B" }, parameters: { a: "b" } }] });
  assert.deepEqual(told(loaded.call), { called: SALES, attestation: "B", isPrivate: true, diverted: [], parameters: { a: "b" } });
});

test("parameters go with call.start, and only there where there are any", async () => {
  const rig = await online();
  rig.phone.call("+15559990001", { parameters: { ticket: "7", empty: "" } });
  await settle();
  assert.deepEqual(rig.said("call.start")[0].d.parameters, { ticket: "7", empty: "" });
  for (const parameters of [undefined, null, {}]) rig.phone.call("+15559990001", { parameters }).end();
  const call = rig.phone.call("+15559990001");
  await settle();
  assert.equal("parameters" in rig.said("call.start").at(-1).d, false);
  assert.deepEqual([call.called.h, call.parameters], ["+15559990001", {}]);
});

test("parameters that may not be sent are said, and nothing is dialled", async () => {
  const rig = await online();
  for (const parameters of ["a", 7, [], ["a"], { a: 1 }, { a: null }, { a: {} }, { "a b": "c" }, { "": "c" }, { ["k".repeat(65)]: "v" }, { "a\r\nX": "v" }, { a: "x".repeat(1_024) }, { a: "ü".repeat(512) }, { a: "two\twords" }, { a: "\x85" }, { A: "1", a: "2" }, MANY(17)]) {
    const call = rig.phone.call("+15559990001", { parameters });
    await settle();
    assert.deepEqual([call.state, call.error?.code], ["ended", "badParameters"], JSON.stringify(parameters).slice(0, 40));
  }
  assert.equal(rig.said("call.start").length, 0);
  // what JSON escapes is no longer for the gateway
  const good = [{ a: "x".repeat(1_023) }, { a: '"'.repeat(1_023) }, { "X!%*+`'~.-": "b" }, MANY(16)];
  for (const parameters of good) {
    const call = rig.phone.call("+15559990001", { parameters });
    await settle();
    assert.equal(call.error, null);
    call.end();
    await settle();
  }
  assert.deepEqual(rig.said("call.start").map(({ d }) => d.parameters), good);
});

test("as much as a gateway may send is taken", async () => {
  for (const parameters of [MANY(16), { a: '"'.repeat(1_023) }, { "X~Y": "ü".repeat(510) }]) {
    const rig = await online();
    await rig.tell("call.offer", A, { ...OFFER, parameters });
    assert.deepEqual(rig.call.parameters, parameters);
  }
});

test("what a gateway says that is none changes nothing", async () => {
  for (const d of [
    { to: null, pstn: null, parameters: null }, { to: "Sales", pstn: "A", parameters: "x" }, { to: {}, pstn: { attest: 7, privacy: "yes", diverted: "x" }, parameters: ["a"] },
    { to: { h: 7 }, pstn: { diverted: [null, 7, {}, { h: 1 }] }, parameters: { a: 1, "b c": "d", ["k".repeat(65)]: "v" } }, { parameters: { a: "x".repeat(2_000) } },
  ]) {
    const rig = await online();
    await rig.tell("call.offer", A, { ...OFFER, to: undefined, ...d });
    assert.deepEqual(told(rig.call), NOTHING, JSON.stringify(d).slice(0, 60));
  }
  const rig = await online();
  await rig.tell("call.offer", A, { ...OFFER, pstn: { attest: "A".repeat(500), diverted: Array(100).fill(BOSS) }, parameters: JSON.parse('{"__proto__":"x","constructor":"y","a":"b"}') });
  assert.deepEqual([rig.call.attestation, rig.call.diverted.length, rig.call.parameters.a, Object.getPrototypeOf(rig.call.parameters) === Object.prototype], [null, 10, "b", true]);
});
