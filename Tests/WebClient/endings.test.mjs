// How a call that this user gave up is called, and of what kind a number is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonText } from "../../Sources/Client/WebClient/trunkline.js";
import { party } from "../../Sources/Client/WebClient/texts.js";
import { reasonWords } from "../../Sources/Client/WebPhone/words.js";
import { A, OFFER, online, settle } from "./phone.mjs";

test("an outgoing call that nobody had answered is cancelled by its own end, by the gateway's word for it, and by a logout", async () => {
  const rig = await online();
  const starting = rig.phone.call("+15559990001");
  starting.end();
  assert.equal(starting.endReason, "cancelled");
  const calling = await rig.dial();
  await rig.tell("call.progress", calling.id, { stage: "ringing" });
  calling.end();
  assert.deepEqual([calling.endReason, calling.text, rig.said("call.end").at(-1).d.reason], ["cancelled", "cancelled", "localEnd"]);
  await rig.ok("call.end");
  const elsewhere = await rig.dial();
  await rig.tell("call.ended", elsewhere.id, { reason: "localEnd" });
  assert.equal(elsewhere.endReason, "cancelled");
  assert.deepEqual([reasonText("cancelled"), reasonWords("cancelled")], ["cancelled", "You cancelled the call"]);
});

test("a call that talked, one that came in, and one that was refused are not cancelled", async () => {
  const rig = await online();
  const talked = await rig.dial();
  await rig.tell("call.connected", talked.id, { at: rig.clock.now() });
  talked.end();
  assert.equal(talked.endReason, "localEnd");
  const declined = await rig.ring();
  declined.decline();
  assert.equal(declined.endReason, "localEnd");
  const busy = await rig.dial();
  await rig.tell("call.ended", busy.id, { reason: "busy" });
  assert.equal(busy.endReason, "busy");
});

test("a number has one kind in offer, push, update and history", async () => {
  for (const h of ["+15550001", "200", "*21#", "0"]) for (const k of ["phone", "generic", "email", 7, undefined]) assert.equal(party({ k, h }).k, "phone", `${k} ${h}`);
  for (const [value, k] of [[{ k: "email", h: "a@b.c" }, "email"], [{ k: "generic", h: "anonymous" }, "generic"], [{ k: "phone", h: "+abc" }, "generic"], [{ k: "phone", h: "unknown" }, "generic"]]) assert.equal(party(value).k, k);
  for (const none of [undefined, null, {}, { h: "" }, { h: 5 }, "x", []]) assert.deepEqual(party(none), { k: "generic", h: "Unknown" });
  const rig = await online();
  const call = rig.phone.push({ call: A, wake: "w", gw: "wss://gateway.example.com/v1/connect", from: { k: "generic", h: "200", n: "Bo" } });
  assert.deepEqual(call.peer, { k: "phone", h: "200", n: "Bo" });
  await rig.tell("call.offer", A, { ...OFFER, from: { k: "generic", h: "200" } });
  assert.equal(call.peer.k, "phone");
  await rig.tell("call.update", A, { from: { k: "generic", h: "200", n: "Bo" } });
  assert.deepEqual(call.peer, { k: "phone", h: "200", n: "Bo" });
  call.end();
  rig.phone.call(call.peer);
  await settle();
  assert.equal(rig.said("call.start").at(-1).d.to.k, "phone", "a call back is one to a number");
});
