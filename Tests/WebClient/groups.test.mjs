// Calls that hear each other: the gateway joins their trunks, the browser plays them all and has one microphone for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PhoneError } from "../../Sources/Client/WebClient/trunkline.js";
import { A, B, OFFER, online, settle } from "./phone.mjs";

async function pair() {
  const rig = await online();
  const first = await rig.talk(A);
  const second = await rig.ring(B);
  second.answer();
  await settle();
  await rig.ok("call.hold");
  await rig.ok("call.answer", { won: true });
  await rig.tell("call.connected", B, { at: rig.clock.now() + 1, codec: "opus" });
  for (const id of [A, B]) await rig.tell("call.update", id, { caps: { hold: true, group: true } });
  return { rig, first, second };
}

test("merge: the held call is resumed, and both have microphone and loudspeaker", async () => {
  const { rig, first, second } = await pair();
  assert.equal(first.isHeld, true);
  const merged = second.merge(first);
  await settle();
  assert.deepEqual(rig.said("call.group").map((frame) => [frame.call, frame.d]), [[B, { with: A }]]);
  assert.equal(first.group, null, "nothing before the gateway's word");
  await rig.ok("call.group");
  await merged;
  assert.ok(first.group !== null && first.group === second.group);
  await settle();
  assert.deepEqual(rig.said("call.hold").at(-1).d, { on: false });
  assert.equal(rig.said("call.hold").length, 2, "nobody is held for who is resumed");
  await rig.ok("call.hold");
  assert.deepEqual([first.isHeld, first.isListening, second.isListening], [false, true, true]);
  assert.deepEqual([first.isCapturing, second.isCapturing], [true, true]);

  const left = second.leaveGroup();
  await settle();
  assert.deepEqual(rig.said("call.group").at(-1).d, { with: null });
  await rig.ok("call.group");
  await left;
  assert.deepEqual([first.group, second.group], [null, null], "one alone is no group");
  assert.deepEqual([first.isListening, second.isListening], [false, true], "the microphone is one call's again");
  assert.deepEqual([rig.said("call.hold").at(-1).call, rig.said("call.hold").at(-1).d.on], [A, true], "the other hears hold audio");
});

test("the end of one leaves the other by itself; a third call counts as the second", async () => {
  const { rig, first, second } = await pair();
  const merged = second.merge(first);
  await settle();
  await rig.ok("call.group");
  await merged;
  const C = "00000000-0000-4000-8000-000000000043";
  await rig.tell("call.offer", C, OFFER);
  await settle();
  assert.equal(rig.phone.calls.find((call) => call.id === C)?.state, "ringing", "a group is one of two calls");
  await rig.tell("call.ended", A, { reason: "remoteHangup" });
  assert.deepEqual([first.group, second.group], [null, null]);
});

test("a refusal changes nothing, and a gateway that does not mix is not asked", async () => {
  const { rig, first, second } = await pair();
  const refused = assert.rejects(second.merge(first), (error) => error instanceof PhoneError && error.reason === "tooMany");
  await settle();
  await rig.refuse("call.group", { code: "tooMany" });
  await refused;
  assert.deepEqual([first.group, first.isHeld], [null, true]);
  await rig.tell("call.update", A, { caps: { hold: true } });
  await assert.rejects(second.merge(first), (error) => error.code === "refused" && error.reason === "unsupported");
  assert.equal(rig.said("call.group").length, 1);
  await second.leaveGroup();
  assert.equal(rig.said("call.group").length, 1, "it is in none");
});
