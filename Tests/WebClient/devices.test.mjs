// Devices that are unplugged in a call, and come back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Stream, online, settle } from "./phone.mjs";
import { Track } from "./fakes.mjs";

/** A browser with these devices, which says when they change; a choice that is kept. */
class Desk {
  constructor(chosen = {}) {
    this.kept = new Map(Object.entries(chosen).map(([name, id]) => [`trunkline.${name}`, id]));
    this.devices = ["m1", "m2"].map((deviceId) => ({ kind: "audioinput", deviceId })).concat(["l1", "l2"].map((deviceId) => ({ kind: "audiooutput", deviceId })));
    this.opened = [];
    this.sinks = [];
    const desk = this;
    this.mediaDevices = Object.assign(new EventTarget(), {
      enumerateDevices: async () => desk.devices,
      getUserMedia: async ({ audio }) => {
        const wanted = audio.deviceId?.exact, inputs = desk.devices.filter(({ kind }) => kind === "audioinput");
        const found = wanted ? inputs.find(({ deviceId }) => deviceId === wanted) : inputs[0];
        if (!found) throw new DOMException("none", wanted ? "OverconstrainedError" : "NotFoundError");
        desk.opened.push(found.deviceId);
        return new Stream([Object.assign(new Track(), { getSettings: () => ({ deviceId: found.deviceId }) })]);
      },
    });
  }
  get options() {
    const storage = { getItem: (key) => this.kept.get(key) ?? null, setItem: (key, value) => this.kept.set(key, value), removeItem: (key) => this.kept.delete(key) };
    const player = () => ({ play: async () => {}, stop() {}, setSinkId: async (id) => {
      if (id && (this.refuses || !this.devices.some(({ deviceId }) => deviceId === id))) throw new DOMException("gone", "NotFoundError");
      this.sinks.push(id);
    } });
    return { microphone: undefined, mediaDevices: this.mediaDevices, storage, player };
  }
  async unplug(id) { this.gone = this.devices.find((one) => one.deviceId === id); this.devices = this.devices.filter((one) => one !== this.gone); await this.tell(); }
  async plug(device = this.gone) { this.devices = [...this.devices, device]; await this.tell(); }
  async tell() { this.mediaDevices.dispatchEvent(new Event("devicechange")); await settle(); await settle(); }
}
const codes = ({ phone }) => [phone.microphoneFallback?.code ?? null, phone.loudspeakerFallback?.code ?? null];

test("the chosen loudspeaker is unplugged in a call: the system's one, it is said, and taken back when it returns", async () => {
  const desk = new Desk({ loudspeaker: "l2" }), rig = await online(desk.options);
  await rig.talk();
  let told = 0;
  rig.phone.addEventListener("devices", () => told++);
  assert.equal(desk.sinks.at(-1), "l2");
  await desk.unplug("l2");
  assert.deepEqual([desk.sinks.at(-1), codes(rig), rig.phone.loudspeaker], ["", [null, "loudspeakerGone"], "l2"]);
  assert.ok(told >= 1);
  assert.match(rig.phone.loudspeakerFallback.text, /loudspeaker was disconnected/);
  const count = desk.sinks.length;
  await desk.tell();
  assert.equal(desk.sinks.length, count, "once");
  await desk.plug();
  assert.deepEqual([desk.sinks.at(-1), codes(rig)], ["l2", [null, null]]);
});

test("a loudspeaker that is back and not ready is taken at the next change; another choice ends the waiting", async () => {
  const desk = new Desk({ loudspeaker: "l2" }), rig = await online(desk.options);
  await rig.talk();
  await desk.unplug("l2");
  desk.refuses = true;
  await desk.plug();
  assert.deepEqual(codes(rig), [null, "loudspeakerGone"]);
  desk.refuses = false;
  await desk.tell();
  assert.deepEqual([desk.sinks.at(-1), codes(rig)], ["l2", [null, null]]);
  await desk.unplug("l2");
  await rig.phone.useLoudspeaker("l1");
  assert.deepEqual([desk.sinks.at(-1), codes(rig)], ["l1", [null, null]]);
  await desk.plug();
  assert.equal(desk.sinks.at(-1), "l1");
});

test("a call that begins while the chosen loudspeaker is away plays on the system's one, and goes over", async () => {
  const desk = new Desk({ loudspeaker: "l9" }), rig = await online(desk.options);
  await settle();
  assert.deepEqual(codes(rig), [null, "loudspeakerGone"]);
  await rig.talk();
  assert.deepEqual(desk.sinks, [], "nothing is set that is not there");
  await desk.plug({ kind: "audiooutput", deviceId: "l9" });
  assert.deepEqual([desk.sinks, codes(rig)], [["l9"], [null, null]]);
});

test("the chosen microphone is unplugged in a call: another one at once, it is said, and taken back", async () => {
  const desk = new Desk({ microphone: "m2" }), rig = await online(desk.options), call = await rig.talk();
  assert.deepEqual(desk.opened, ["m2"]);
  desk.devices = desk.devices.filter(({ deviceId }) => deviceId !== "m2");
  call.localStream.getTracks()[0].end();
  await settle();
  await desk.tell();
  assert.deepEqual([desk.opened, codes(rig), call.isCapturing, call.microphoneFault], [["m2", "m1"], ["microphoneGone", null], true, null]);
  assert.equal(rig.phone.microphoneFault, null, "there is one");
  assert.match(rig.phone.microphoneFallback.text, /microphone was disconnected/);
  const [other] = call.localStream.getTracks();
  await desk.plug({ kind: "audioinput", deviceId: "m2" });
  assert.deepEqual([desk.opened, codes(rig), other.readyState, rig.phone.microphone], [["m2", "m1", "m2"], [null, null], "ended", "m2"]);
});

test("a microphone whose track says nothing of its end is replaced by what the list says", async () => {
  const desk = new Desk(), rig = await online(desk.options), call = await rig.talk();
  await desk.unplug("m1");
  assert.deepEqual([desk.opened, call.isCapturing, codes(rig)], [["m1", "m2"], true, [null, null]]);
  await desk.tell();
  assert.equal(desk.opened.length, 2);
});

test("no other microphone: the call goes on without, says so, and takes the first that comes", async () => {
  const desk = new Desk({ microphone: "m2" }), rig = await online(desk.options), call = await rig.talk();
  desk.devices = desk.devices.filter(({ kind }) => kind !== "audioinput");
  call.localStream.getTracks()[0].end();
  await settle();
  await desk.tell();
  assert.deepEqual([call.state, call.microphoneFault.code, rig.phone.microphoneFault.code, desk.opened.length], ["connected", "microphoneAbsent", "microphoneAbsent", 1]);
  await desk.plug({ kind: "audioinput", deviceId: "m7" });
  assert.deepEqual([call.microphoneFault, desk.opened.at(-1), codes(rig)], [null, "m7", ["microphoneGone", null]]);
});

test("a microphone that was busy and opens lacks nothing any more; a stream for its level is the app's own", async () => {
  const desk = new Desk(), rig = await online(desk.options), { getUserMedia } = desk.mediaDevices;
  desk.mediaDevices.getUserMedia = async () => { throw new DOMException("busy", "NotReadableError"); };
  await assert.rejects(rig.phone.openMicrophone(), { code: "microphoneBusy" });
  assert.equal(rig.phone.microphoneFault.code, "microphoneBusy");
  desk.mediaDevices.getUserMedia = getUserMedia;
  const stream = await rig.phone.openMicrophone();
  assert.deepEqual([rig.phone.microphoneFault, stream.getTracks().length, desk.opened], [null, 1, ["m1"]]);
});

test("a microphone that ends as soon as it is opened is not opened again and again", async () => {
  const desk = new Desk(), rig = await online(desk.options), call = await rig.talk();
  for (let turn = 0; turn < 10; turn++) {
    call.localStream.getTracks()[0].end();
    await settle();
  }
  assert.ok(desk.opened.length <= 2, `${desk.opened.length}`);
  await rig.clock.advance(rig.clock.time + 2_000);
  call.localStream.getTracks()[0].end();
  await settle();
  assert.equal(desk.opened.length, 3);
});

test("what lists say that are none: nothing is changed by them, and a phone without ids believes nothing missing", async () => {
  for (const list of [null, undefined, "devices", [{ kind: "audiooutput", deviceId: "" }, { kind: "audioinput", deviceId: "" }]]) {
    const desk = new Desk({ microphone: "m2", loudspeaker: "l2" }), rig = await online(desk.options), call = await rig.talk();
    desk.devices = list;
    await desk.tell();
    assert.deepEqual([codes(rig), desk.sinks.at(-1), call.isCapturing], [[null, null], "l2", true]);
    rig.phone.close();
    await desk.tell();
    assert.deepEqual(rig.left(), { timers: 0, peers: 0, microphones: 0 });
  }
  for (const enumerateDevices of [undefined, async () => { throw new Error("no"); }]) {
    const desk = new Desk({ loudspeaker: "l2" });
    desk.mediaDevices.enumerateDevices = enumerateDevices;
    const rig = await online(desk.options);
    await rig.talk();
    assert.deepEqual([codes(rig), await rig.phone.loudspeakers()], [[null, null], []]);
  }
});

test("a loudspeaker that is unplugged while it is set, after the browser has taken it: the system's one, and it is said", async () => {
  const desk = new Desk(), { options } = desk, make = options.player;
  let taken = null;
  // the browser has taken it, and the page learns of it after the plug is out
  options.player = () => { const made = make(), set = made.setSinkId; return { ...made, setSinkId: async (id) => { await set(id); if (id === "l2") await new Promise((go) => { taken = go; }); } }; };
  const rig = await online(options);
  await rig.talk();
  const setting = rig.phone.useLoudspeaker("l2");
  await settle();
  await desk.unplug("l2");
  taken();
  await setting.catch(() => {});
  await settle();
  assert.deepEqual([desk.sinks.at(-1), codes(rig), rig.phone.loudspeaker], ["", [null, "loudspeakerGone"], "l2"]);
});

test("a loudspeaker that one of two calls refuses is nobody's: both stay where they were", async () => {
  const desk = new Desk({ loudspeaker: "l1" }), { options } = desk, make = options.player, players = [];
  options.player = () => {
    const made = make(), set = made.setSinkId, own = { sinks: [], refuses: false };
    players.push(own);
    return { ...made, setSinkId: async (id) => { if (own.refuses && id === "l2") throw new DOMException("gone", "NotFoundError"); await set(id); own.sinks.push(id); } };
  };
  const rig = await online(options);
  await rig.talk();
  await rig.talk("5c1b2a58-7d1e-4b8e-9b21-0d6f6a5f2b11");
  players[1].refuses = true;
  await assert.rejects(rig.phone.useLoudspeaker("l2"), { code: "loudspeakerAbsent" });
  assert.deepEqual([players[0].sinks.at(-1), players[1].sinks.at(-1), rig.phone.loudspeaker], ["l1", "l1", "l1"]);
});

test("a microphone that is unplugged while it is set: another one, and the choice is kept for its return", async () => {
  const desk = new Desk({ microphone: "m1" }), { options } = desk, open = options.mediaDevices.getUserMedia;
  let taken = null;
  options.mediaDevices.getUserMedia = async (wish) => { const stream = await open(wish); if (wish.audio.deviceId?.exact === "m2") await new Promise((go) => { taken = go; }); return stream; };
  const rig = await online(options);
  await rig.talk();
  const setting = rig.phone.useMicrophone("m2");
  await settle();
  await desk.unplug("m2");
  taken();
  await setting.catch(() => {});
  await settle(); await settle();
  assert.deepEqual([desk.opened.at(-1), codes(rig), rig.phone.microphone], ["m1", ["microphoneGone", null], "m2"]);
});
