// A page that is left open for a week: tokens of an hour, nights in which the machine sleeps, a gateway that is upgraded on the way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock, Rig, settle } from "./phone.mjs";

const START = 1_790_000_000_000, HOUR = 3_600_000, DAY = 24 * HOUR;

/** As the gateway of docs/reference/protocol.md: it knows its sessions until it is upgraded, and announces the end of each token a minute before. */
class Gateway {
  expires = 0;
  sessions = new Set();
  answered = 0;
  constructor(rig) { this.rig = rig; }

  /** Takes whatever socket waits, and answers what was asked. */
  async serve() {
    const { rig } = this;
    await settle();
    while (rig.socket.readyState === 0) {
      rig.socket.open();
      await settle();
      const { d } = rig.said("hello").at(-1);
      const isKnown = d.resume && this.sessions.has(d.resume.sid);
      if (d.resume && !isKnown) { rig.socket.end(4001); await settle(); continue; }
      if (!d.resume && !this.takes(d.auth)) {
        await rig.say({ t: "err", re: rig.said("hello").at(-1).id, d: { code: "auth", fatal: true } });
        rig.socket.end(4001);
        await settle();
        continue;
      }
      const sid = isKnown ? d.resume.sid : `s${this.sessions.size}-${rig.world.sockets.length}`;
      this.sessions.add(sid);
      if (!isKnown) rig.seq = 0;
      await rig.say({ t: "welcome", re: rig.said("hello").at(-1).id, d: {
        sid, resumeToken: "r", resumed: !!isKnown, replayFrom: 1, time: rig.clock.now(), hb: 15000, ice: [], calls: [], dirVersion: 0, caps: ["hist", "dir"] } });
    }
    for (; this.answered < rig.sent.length; this.answered++) {
      const frame = rig.sent[this.answered];
      if (frame.t === "hello" || !frame.id) continue;
      if (frame.t === "auth.refresh") assert.ok(this.takes(frame.d.auth), "the refresh is in time");
      await rig.say({ t: "ok", re: frame.id, ...(frame.seq && { ack: frame.seq }), d: {} });
    }
  }
  takes(token) {
    const expires = 1_000 * JSON.parse(atob(token.split(".")[1])).exp;
    if (expires + 30_000 < this.rig.clock.now()) return false;
    this.expires = expires;
    return true;
  }
}

test("a page that is left open for a week, over sleep and an upgrade, rings, and has kept nothing that it does not need", async () => {
  const clock = new Clock(START);
  let tokens = 0;
  // a backend that is asked answers later
  const token = async () => { tokens++; return `e30.${btoa(JSON.stringify({ sub: "alice", dev: "web", exp: Math.floor(clock.now() / 1000) + 3_600, n: tokens }))}.x`; };
  const rig = new Rig({ clock, token }), gateway = new Gateway(rig);
  await gateway.serve();
  const first = rig.left();
  let announced = 0;
  const hours = async (count) => {
    for (let minute = 0; minute < 60 * count; minute++) {
      await clock.advance(clock.time + 60_000);
      if (gateway.expires - clock.now() <= 60_000 && announced !== gateway.expires) {
        announced = gateway.expires;
        await rig.say({ t: "auth.expiring", d: { at: gateway.expires } });
      }
      await gateway.serve();
    }
  };
  for (let day = 0; day < 7; day++) {
    await hours(16);
    assert.equal(rig.phone.state, "online", `day ${day}`);
    // the lid is closed for a night: the socket is dead by then, and the token over
    clock.freeze(8 * HOUR);
    gateway.sessions.clear();
    rig.socket.end(1006);
    rig.document.dispatchEvent(new Event("visibilitychange"));
    await gateway.serve();
    if (day === 3) {
      gateway.sessions.clear();
      await rig.say({ t: "bye", d: { code: 1012, afterMs: 1_000 } });
      rig.socket.end(1012);
      await clock.advance(clock.time + 10_000);
      await gateway.serve();
    }
  }
  assert.equal(clock.time >= 7 * DAY, true);
  assert.equal(rig.phone.state, "online");
  const { sockets } = rig.world;
  assert.ok(sockets.length < 40, `${sockets.length} sockets in a week`);
  assert.ok(tokens >= 7 * 16 && tokens <= 7 * 20, `${tokens} tokens of an hour`);
  assert.equal(sockets.filter(({ readyState }) => readyState < 2).length, 1, "one is open");
  const now = rig.left();
  assert.deepEqual({ ...now, timers: now.timers <= first.timers + 2 }, { ...first, timers: true }, `${first.timers} timers at first, ${now.timers} now`);
  // and it rings
  const ack = rig.sent.filter((frame) => frame.seq).at(-1)?.seq;
  assert.ok(ack === undefined || ack > 0);
  const call = await rig.ring();
  assert.equal(call.state, "ringing");
  call.answer();
  await settle();
  await rig.ok("call.answer", { won: true });
  await rig.tell("call.connected", call.id, { at: clock.now(), codec: "opus" });
  assert.equal(call.state, "connected");
});
