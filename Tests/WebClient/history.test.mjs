// The web phone's list of calls: the gateway's, this device's, and each once. And digits behind an answer.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { sendAfterwards } from "../../Sources/Client/WebPhone/afterwards.js";
import { History, MOST } from "../../Sources/Client/WebPhone/history.js";
import { historyWords, isMissed } from "../../Sources/Client/WebPhone/words.js";
import { Clock, settle } from "./fakes.mjs";

let kept;
beforeEach(() => {
  kept = new Map();
  globalThis.localStorage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => { if (kept.isFull) throw new DOMException("full", "QuotaExceededError"); kept.set(key, value); }, removeItem: (key) => kept.delete(key) };
});

const row = (id, more) => ({ id, call: `c${id}`, direction: "incoming", peer: { k: "phone", h: "+15550000001", n: "Ann" }, startedAt: id * 1000, connectedAt: null, endedAt: id * 1000 + 500, outcome: "missed", reason: "callerCancelled", ...more });
const page = (from, to) => ({ calls: Array.from({ length: from - to + 1 }, (_, n) => row(from - n)), next: to > 1 ? to : null });
const ids = (history) => history.entries.map(({ id }) => id);

test("a call that the gateway and this device have stands once, with what each knows better", () => {
  const history = new History("alice");
  history.put({ id: "c2", direction: "incoming", name: null, number: "+15550000001", at: 2000, connectedMs: 900, reason: "transferred" });
  history.put({ id: "only-here", direction: "outgoing", name: null, number: "+1", at: 2500, connectedMs: null, reason: "unreachable" });
  history.put({ id: "c4", direction: "incoming", name: null, number: "+1", at: 4000, connectedMs: null, reason: null });
  history.take({ calls: [row(3), row(2, { outcome: "answered", connectedAt: 2100, endedAt: 3100, reason: "localEnd" }), row(1)], next: null }, true);
  assert.deepEqual(ids(history), ["c4", "c3", "only-here", "c2", "c1"]);
  const both = history.entries.find(({ id }) => id === "c2");
  assert.deepEqual([both.name, both.connectedMs, historyWords(both)], ["Ann", 1000, "Transferred"]);
  history.take({ calls: [row(4), row(3)], next: 3 }, true);
  assert.equal(ids(history).filter((id) => id === "c4").length, 1);
  assert.equal(historyWords(history.entries[0]), "The caller hung up");
});

test("ten thousand rows come page by page, each once, and end at what a page can hold", () => {
  const history = new History("alice");
  history.put({ id: "old", direction: "incoming", number: "+1", at: 5, connectedMs: null, reason: "unreachable" });
  history.take({ ...page(10_000, 9_951), next: 9_951 }, true);
  assert.deepEqual([ids(history).length, ids(history).includes("old")], [50, false], "what is older than the page comes with its own");
  for (let pages = 0; history.next !== null; pages++) {
    assert.ok(pages < 300);
    history.take({ ...page(history.next - 1, history.next - 50), next: history.next - 50 }, false);
  }
  assert.equal(history.entries.filter(({ row }) => row).length, MOST);
  assert.equal(new Set(ids(history)).size, ids(history).length);
  const rows = history.entries.filter(({ row }) => row).map(({ row }) => row);
  assert.deepEqual(rows, rows.toSorted((one, other) => other - one));
});

test("a page that was away for more than one page shows no gap", () => {
  const history = new History("alice");
  history.take({ ...page(100, 51), next: 51 }, true);
  history.take({ ...page(50, 1), next: null }, false);
  history.take({ ...page(300, 251), next: 251 }, true);
  assert.deepEqual([history.entries.length, history.next], [50, 251]);
  history.take({ ...page(320, 271), next: 271 }, true);
  assert.deepEqual([history.entries.length, history.next], [70, 251], "pages that join stay");
});

test("missed calls are counted until they are seen, on a device that was here before", () => {
  const history = new History("alice");
  history.take(page(3, 1), true);
  assert.equal(history.unseen.length, 0, "a new device has seen what was before");
  history.take({ calls: [row(6), row(5, { outcome: "answered", connectedAt: 5 }), row(4, { outcome: "filtered", reason: "dnd" })], next: null }, true);
  assert.deepEqual(history.unseen.map(({ id }) => id), ["c6", "c4"]);
  assert.deepEqual(new History("alice").unseen, [], "until the gateway has said so again");
  history.put({ id: "c7", direction: "incoming", number: "+1", at: 7000, connectedMs: null, reason: "callerCancelled" });
  assert.equal(history.unseen.length, 3);
  history.take({ calls: [row(7)], next: null }, true);
  assert.equal(history.unseen.length, 3, "the same call is one");
  history.see();
  assert.equal(history.unseen.length, 0);
  history.take({ calls: [row(8, { direction: "outgoing" }), row(9, { outcome: "declined" }), row(10, { outcome: "answeredElsewhere", connectedAt: 1 })], next: null }, true);
  assert.equal(history.unseen.length, 0);
});

test("what is cleared can come back, and what the gateway has erased cannot", () => {
  const history = new History("alice");
  history.put({ id: "x", direction: "outgoing", number: "+1", at: 1, connectedMs: null, reason: "unreachable" });
  history.take(page(3, 1), true);
  const undo = history.clear();
  assert.deepEqual(ids(history), []);
  history.take(page(3, 1), true);
  assert.deepEqual(ids(history), [], "also when the gateway says it again");
  history.take(page(4, 1), true);
  assert.deepEqual(ids(history), ["c4"]);
  undo();
  assert.deepEqual(ids(history), ["c4", "c3", "c2", "c1", "x"]);
  history.erase();
  assert.deepEqual([ids(history), history.next], [[], null]);
});

test("a storage that is full, denied or full of nonsense costs no row of the gateway", () => {
  for (const text of ["{", "null", "[]", '{"id":"x","at":null}', '{"id":1e99}']) {
    kept.set("trunkline.seen.alice", text);
    kept.set("trunkline.cleared.alice", text);
    kept.set("trunkline.history.alice", text);
    const history = new History("alice");
    history.take(page(3, 1), true);
    assert.equal(history.entries.length, 3, text);
    assert.ok(history.unseen.length >= 0);
  }
  kept.clear();
  kept.isFull = true;
  const full = new History("alice");
  full.put({ id: "x", direction: "outgoing", number: "+1", at: 5000, connectedMs: null, reason: "busy" });
  full.take(page(3, 1), true);
  assert.deepEqual(ids(full), ["x", "c3", "c2", "c1"]);
  globalThis.localStorage = undefined;
  const denied = new History("bob");
  denied.put({ id: "y", direction: "outgoing", number: "+1", at: 5000, connectedMs: null, reason: "busy" });
  denied.take(page(2, 1), true);
  assert.deepEqual(ids(denied), ["y", "c2", "c1"]);
});

test("outcomes that the page does not know are said by their reason", () => {
  assert.equal(historyWords({ outcome: "failed", reason: "networkLost" }), "The network connection was lost");
  assert.equal(historyWords({ outcome: "answeredElsewhere", reason: "remoteHangup" }), "Answered on another device");
  assert.equal(historyWords({ reason: null }), "Ended while this page was closed");
  assert.equal(isMissed({ direction: "outgoing", connectedMs: null, outcome: "missed" }), false);
});

test("digits behind a number are sent after the answer, with their pauses, and not to a call that is over", async () => {
  const clock = new Clock(0), sent = [];
  const make = (phase) => Object.assign(new EventTarget(), { phase, state: "calling", sendDigits: async (digits) => { if (digits === "9") throw new Error("refused"); sent.push([clock.time, digits]); } });
  const said = [];
  const call = make("progress");
  sendAfterwards(call, ",12,,3#", (digits) => said.push(digits), clock);
  await clock.advance(10_000);
  assert.deepEqual(sent, []);
  call.phase = "connected";
  call.dispatchEvent(new Event("state"));
  await settle();
  await clock.advance(12_000);
  assert.deepEqual(sent, [[12_000, "12"]]);
  call.dispatchEvent(new Event("state"));
  await clock.advance(16_480);
  assert.deepEqual([sent, said], [[[12_000, "12"], [16_480, "3#"]], ["12", "3#"]]);
  await clock.advance(60_000);
  assert.equal(sent.length, 2);
  const over = make("connected");
  sendAfterwards(over, ",1", () => {}, clock);
  over.state = "ended";
  await clock.advance(70_000);
  const refused = make("connected");
  sendAfterwards(refused, "9,1", () => {}, clock);
  await clock.advance(80_000);
  assert.equal(sent.length, 2);
  assert.equal(clock.count, 0);
});
