// What the status page asks the gateway, and when; and what it says. Without a page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Feed, INTERVAL, LONGEST, PATIENCE } from "../../Sources/Client/WebStatus/status/feed.js";
import * as texts from "../../Sources/Client/WebStatus/status/texts.js";
import { span } from "../../Sources/Client/WebUI/times.js";

const DOCUMENT = {
  version: "1", node: "a", instance: "one", started: 0, now: 100_000, ready: true, components: [{ name: "calls", ready: true }],
  trunks: { count: 0, down: 0, rows: [] }, calls: { count: 0, found: 0, poor: 0, complete: true, rows: [] }, ended: [], hour: {},
};

/** A feed over answers that the test gives, on a clock that the test moves. */
class Rig {
  constructor() {
    this.time = 0;
    this.timers = new Map();
    this.asked = [];
    this.answers = [];
    const timers = {
      setTimeout: (run, wait) => { const id = Symbol(); this.timers.set(id, { run, at: this.time + wait }); return id; },
      clearTimeout: (id) => this.timers.delete(id),
    };
    this.feed = new Feed({
      now: () => this.time, timers,
      fetch: async (url, { signal, headers }) => {
        this.asked.push({ url, ...headers });
        const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        if (answer === "none") return new Promise((_, fail) => signal.addEventListener("abort", () => fail(new Error("aborted"))));
        if (answer instanceof Error) throw answer;
        this.time += answer.took ?? 0;
        return { status: answer.status ?? 200, ok: (answer.status ?? 200) < 300, headers: new Map([["Content-Type", answer.type ?? "application/json"]]), json: async () => answer.body };
      },
    });
  }
  says(...answers) { this.answers = answers; }
  /** Goes on to the next timer, until `time`. */
  async until(time) {
    for (;;) {
      await new Promise((done) => setImmediate(done));
      const [next] = [...this.timers].sort(([, a], [, b]) => a.at - b.at);
      if (!next || next[1].at > time) break;
      this.timers.delete(next[0]);
      this.time = Math.max(this.time, next[1].at);
      next[1].run();
    }
    this.time = Math.max(this.time, time);
  }
}
const good = (more) => ({ body: { ...DOCUMENT, ...more } });
const problem = (status, detail) => ({ status, type: "application/problem+json", body: { detail } });

test("one request each five seconds, and one at a time", async () => {
  const rig = new Rig();
  rig.says(good());
  rig.feed.ask();
  await rig.until(60_000);
  assert.equal(rig.asked.length, 13);
  rig.says("none");
  rig.feed.ask();
  const before = rig.asked.length;
  await rig.until(60_000 + PATIENCE - 1);
  assert.equal(rig.asked.length, before, "nothing is asked while an answer is waited for");
  await rig.until(60_000 + PATIENCE);
  assert.equal(rig.feed.fault.kind, "silent");
  assert.match(rig.feed.fault.text, /within 10 s/);
});

test("a slow gateway is asked for a tenth of the time at most, and one that does not answer each minute", async () => {
  const rig = new Rig();
  rig.says({ ...good(), took: 3_000 });
  await rig.feed.ask();
  assert.equal(rig.feed.wait, 30_000);
  rig.says(new Error("refused"));
  const waits = [];
  for (let i = 0; i < 6; i += 1) { await rig.feed.ask(); waits.push(rig.feed.wait); }
  assert.deepEqual(waits, [INTERVAL, 10_000, 20_000, 40_000, LONGEST, LONGEST]);
  rig.says(good());
  await rig.feed.ask();
  assert.equal(rig.feed.wait, INTERVAL);
  assert.equal(rig.feed.fault, null);
});

test("a page that is not seen asks for readiness alone, each minute", async () => {
  const rig = new Rig();
  rig.says(good());
  await rig.feed.ask();
  rig.feed.isHidden = true;
  rig.asked.length = 0;
  await rig.until(600_000);
  assert.deepEqual(rig.asked.map(({ url }) => url), Array(10).fill("readyz"));
  rig.says({ status: 503, body: { ready: false, components: [{ name: "store", ready: false, reason: "full" }] } });
  await rig.until(660_000);
  assert.deepEqual(rig.feed.ready, { ready: false, reasons: [{ name: "store", ready: false, reason: "full" }] });
  rig.says(good());
  rig.asked.length = 0;
  rig.feed.isHidden = false;
  await rig.until(rig.time);
  assert.deepEqual(rig.asked.map(({ url }) => url), ["v1/status"], "at once");
});

test("a token that is refused is not shown to the gateway again until there is another", async () => {
  const rig = new Rig();
  rig.feed.token = "wrong";
  rig.says(problem(401, "no"));
  await rig.feed.ask();
  await rig.until(3_600_000);
  assert.equal(rig.asked.length, 1);
  assert.equal(rig.feed.fault.kind, "login");
  rig.feed.token = "right";
  rig.says(good());
  await rig.feed.ask();
  assert.equal(rig.asked[1].Authorization, "Bearer right");
  await rig.until(rig.time + INTERVAL);
  assert.equal(rig.asked.length, 3);
});

test("what is no answer of a gateway is none: HTML of a proxy, half an answer, a refusal", async () => {
  const rig = new Rig();
  for (const answer of [{ status: 200, type: "text/html", body: {} }, { status: 502, type: "text/html", body: {} }, { body: { ready: true } }]) {
    rig.says(answer);
    await rig.feed.ask();
    assert.equal(rig.feed.fault.kind, "silent");
    assert.equal(rig.feed.status, null);
  }
  rig.says(problem(429, "the token exceeded its per_second requests"));
  await rig.feed.ask();
  assert.equal(rig.feed.fault.kind, "busy");
  assert.match(texts.headline({ ...rig.feed, age: 0 }).text, /Too busy to answer: the token exceeded its per_second requests/);
});

test("of two nodes one is shown, the other named; a restart is taken at once, another node only once the first is gone", async () => {
  const rig = new Rig(), a = good(), b = good({ node: "b", instance: "two" });
  rig.says(a);
  await rig.feed.ask();
  rig.says(b, a);
  for (let i = 0; i < 2; i += 1) { await rig.feed.ask(); assert.equal(rig.feed.status.node, "a"); }
  assert.deepEqual(rig.feed.others, ["b"]);
  rig.says(b);
  await rig.feed.ask();
  assert.equal(rig.feed.wait, 1_000, "what another says is asked again soon");
  for (let i = 0; i < 6; i += 1) await rig.feed.ask();
  assert.equal(rig.feed.status.node, "b");
  assert.deepEqual(rig.feed.others, []);
  rig.says(good({ node: "b", instance: "three", version: "2" }));
  await rig.feed.ask();
  assert.equal(rig.feed.status.instance, "three");
  assert.equal(rig.feed.isUpgraded, true);
  // two of one name: what was left for a restarted one answers again
  rig.says(good({ node: "b", instance: "two" }));
  await rig.feed.ask();
  rig.says(good({ node: "b", instance: "three" }));
  await rig.feed.ask();
  assert.equal(rig.feed.status.instance, "three");
});

test("each runbook that is linked has its section", () => {
  const sections = readFileSync(new URL("../../docs/operate/runbooks.md", import.meta.url), "utf8").split("\n").filter((line) => line.startsWith("## "))
    .map((line) => line.slice(3).toLowerCase().replaceAll(" ", "-"));
  const names = ["trunks", "store", "load", "shared-store", "cluster", "recordings", "OPTIONS not answered", "not located", "disabled", "no listener reaches it", "not registered", "thread control"];
  for (const name of names) assert.ok(sections.includes(texts.runbook(name)?.split("#")[1]), name);
  assert.equal(texts.runbook("no component of ours"), null);
});

test("a span has its two largest units", () => {
  const rows = [[0, "0 s"], [999, "1 s"], [59_499, "59 s"], [60_000, "1 min"], [125_000, "2 min 5 s"], [3_600_000, "1 h"], [7_500_000, "2 h 5 min"], [90_000_000, "1 d 1 h"], [-5, "0 s"]];
  for (const [milliseconds, text] of rows) assert.equal(span(milliseconds), text);
});

test("the first line says ready, or why not", () => {
  const line = (more) => texts.headline({ status: DOCUMENT, ready: { ready: true, reasons: [] }, fault: null, age: 65_000, isHidden: false, ...more });
  assert.deepEqual(line(), { level: "good", text: "Ready", title: "Ready" });
  assert.equal(line({ status: { ...DOCUMENT, trunks: { down: 2 } } }).text, "Ready, 2 trunks down");
  assert.equal(line({ ready: { ready: false, reasons: [{ name: "store", reason: "full" }, { name: "load" }] } }).text, "Not ready: store: full; load: not ready");
  assert.equal(line({ ready: { ready: false, reasons: [] } }).text, "Not ready: no component has reported");
  assert.equal(line({ fault: { kind: "silent", text: "" } }).title, "No answer for 1 min 5 s");
  assert.equal(line({ fault: { kind: "silent", text: "" } }).level, "unknown");
});
