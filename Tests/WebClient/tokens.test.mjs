// Tokens that are short, kept by the app's backend until they end, or refused by the gateway in mid-session.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock, Rig, settle } from "./phone.mjs";

const START = 1_790_000_000_000;
const made = (exp) => `e30.${btoa(JSON.stringify({ sub: "alice", dev: "web", exp }))}.${exp}`;

test("a backend that keeps each token of two minutes until it ends: the next one is there before the session is over, each time", async () => {
  const clock = new Clock(START);
  let exp = 0, asked = 0;
  const token = () => {
    asked++;
    const now = Math.floor(clock.now() / 1000);
    if (exp <= now) exp = now + 121;
    return made(exp);
  };
  const rig = await new Rig({ clock, token }).welcome({ time: START });
  for (let cycle = 1; cycle <= 20; cycle++) {
    const end = exp;
    await clock.advance((end - 60) * 1000 - START);
    await rig.say({ t: "auth.expiring", d: { at: end * 1000 } });
    // it asks after 0, 10, 30, 50 and 70 s: the gateway takes the old token for 30 s beyond its end
    await clock.advance((end + 29) * 1000 - START);
    await settle();
    assert.equal(rig.said("auth.refresh").length, cycle, `cycle ${cycle}: ${rig.phone.state}`);
    await rig.ok("auth.refresh");
  }
  assert.ok(asked <= 1 + 20 * 5, `${asked} questions`);
});

test("a token that the gateway refuses in mid-session is given up for the one before it, and the app hears of it", async () => {
  const clock = new Clock(START), faults = [];
  let answer = made(START / 1000 + 600);
  const rig = await new Rig({ clock, token: () => answer }).welcome({ time: START });
  rig.phone.addEventListener("tokenStale", ({ error }) => faults.push(error.code));
  const first = answer;
  answer = made(START / 1000 + 7_200);
  await clock.advance(540_000);
  await rig.say({ t: "auth.expiring", d: { at: START + 600_000 } });
  await settle();
  await rig.refuse("auth.refresh", { code: "auth" });
  assert.deepEqual([faults, rig.phone.state], [["staleToken"], "online"]);
  // it is asked again by itself, and a fresh session says the token that was good
  answer = made(START / 1000 + 7_300);
  await clock.advance(552_000);
  await settle();
  assert.equal(rig.said("auth.refresh").length, 2);
  await rig.refuse("auth.refresh", { code: "auth" });
  rig.socket.end(4008);
  await clock.advance(556_000);
  rig.socket.open();
  await settle();
  assert.equal(rig.said("hello").at(-1).d.auth, first);
});

test("a refresh that the gateway has no time for is repeated until it has, before the token in use ends, and no token is called stale", async () => {
  const clock = new Clock(START), faults = [];
  let answer = made(START / 1000 + 600);
  const rig = await new Rig({ clock, token: () => answer }).welcome({ time: START });
  rig.phone.addEventListener("tokenStale", ({ error }) => faults.push(error.code));
  const next = answer = made(START / 1000 + 7_200);
  await clock.advance(540_000);
  await rig.say({ t: "auth.expiring", d: { at: START + 600_000 } });
  await settle();
  for (let refused = 1; refused <= 4; refused++) {
    assert.deepEqual(rig.said("auth.refresh").map(({ d }) => d.auth), Array(refused).fill(next));
    await rig.refuse("auth.refresh", { code: "overload", retryMs: 1_000 });
    assert.deepEqual([faults, rig.phone.state], [[], "online"]);
    await clock.advance(clock.time + 20_000);
    await settle();
  }
  assert.ok(clock.time <= 630_000, "within the 30 s that the gateway takes the old token beyond its end");
  assert.equal(rig.said("auth.refresh").length, 5);
  await rig.ok("auth.refresh");
  await clock.advance(clock.time + 300_000);
  assert.equal(rig.said("auth.refresh").length, 5, "once it is taken no other is sent");
  rig.socket.end(4008);
  await clock.advance(clock.time + 5_000);
  rig.socket.open();
  await settle();
  assert.equal(rig.said("hello").at(-1).d.auth, next);
});
