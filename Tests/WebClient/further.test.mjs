// Sessions at further nodes: the device's place stays where its own session is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { A, B, Rig, settle } from "./phone.mjs";

const HOME = "wss://n1.example.com/v1/connect", THERE = "wss://n2.example.com/v1/connect";

test("a further session whose resume is refused says that it is further; the phone's own never does", async () => {
  const rig = new Rig();
  await rig.welcome({ node: "n1", url: HOME, caps: ["nodes"] });
  const own = rig.socket;
  assert.equal(rig.said("hello").at(-1).d.further, undefined);
  const wake = async (call) => { own.say({ t: "call.wake", call, d: { v: 1, t: "call", call, exp: 9e9, acct: "default", gw: THERE, wake: "w" } }); await settle(); };
  const greet = async (d = {}) => {
    rig.socket.open();
    await settle();
    rig.socket.say({ t: "welcome", re: rig.said("hello").at(-1).id, d: { sid: "s2", resumeToken: "r2", resumed: false, replayFrom: 1, time: rig.clock.now(), hb: 15000, ice: [],
      calls: [{ call: A, dir: "in", state: "ringing", from: { k: "phone", h: "+1" }, to: { k: "phone", h: "+2" }, acct: "default", sdp: "offer", gen: 1, at: 1 }], caps: ["nodes"], node: "n2", url: THERE, ...d } });
    await settle();
  };
  await wake(A);
  assert.equal(rig.socket.url, THERE);
  await greet();
  assert.deepEqual([rig.said("hello").at(-1).d.wake, rig.said("hello").at(-1).d.further], ["w", undefined]);
  // a second call of that node: the session becomes one for all
  await wake(B);
  assert.deepEqual([rig.said("auth.refresh").at(-1)?.d.further], [true]);
  const further = rig.socket;
  further.end(1006);
  await rig.clock.advance(rig.clock.time + 2_000);
  assert.notEqual(rig.socket, further);
  rig.socket.open();
  await settle();
  assert.equal(rig.said("hello").at(-1).d.resume?.sid, "s2");
  rig.socket.end(4001);
  await settle();
  await rig.clock.advance(rig.clock.time + 2_000);
  rig.socket.open();
  await settle();
  const hello = rig.said("hello").at(-1).d;
  assert.deepEqual([typeof hello.auth, hello.resume, hello.further], ["string", undefined, true]);
  assert.equal(own.readyState, own.constructor.OPEN ?? 1, "the phone's own session stays");
});
