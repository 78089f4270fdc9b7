// trunkline.js against the files that the Swift machines replay too (Tests/ClientMachines/VectorTests.swift).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { reasonText } from "../../Sources/Client/WebClient/trunkline.js";
import { difference, filled, read } from "./vectors.mjs";

/** Cases, plays of them (a case with rows is played once for each) and cases that a browser has not, at least and at most. */
const COUNTS = { sessions: [29, 29, 0], replay: [22, 22, 0], races: [54, 54, 18], reasons: [11, 84, 0], nodes: [30, 30, 3], questions: [8, 10, 0] };

for (const [name, [cases, plays, most]] of Object.entries(COUNTS)) {
  test(`trunkline.js does what ${name}.txt says`, async (t) => {
    const all = read(name);
    const skipped = all.filter((one) => one.not.browser);
    const played = all.filter((one) => !one.not.browser);
    let count = 0;
    for (const one of played) {
      for (const row of one.rows.length ? one.rows.map((words) => filled(one, words)) : [one]) {
        count++;
        assert.equal(await difference(row), null, name + ".txt");
      }
    }
    t.diagnostic(`${name}: ${played.length} cases in ${count} plays, ${skipped.length} not for a browser`);
    for (const one of skipped) t.diagnostic(`not for a browser: ${one.name}: ${one.not.browser}`);
    assert.ok(skipped.every((one) => one.not.browser.length > 10), "a case that is left out says why");
    assert.ok(played.length >= cases && count >= plays && skipped.length <= most, `${played.length} cases, ${count} plays, ${skipped.length} left out`);
  });
}

test("a line that is wrong, missing, too much or in another order is a difference", async () => {
  const [login] = read("sessions").filter((one) => one.name === "a login");
  const changed = (change) => {
    const steps = login.steps.map((step) => ({ ...step, expected: [...step.expected] }));
    change(steps.find((step) => step.event === "opened").expected, steps);
    return difference({ ...login, steps });
  };
  assert.equal(await changed(() => {}), null);
  assert.match(await changed((lines) => { lines[0] = lines[0].replace('"fg"', '"bg"'); }), /- send hello[^]*\+ send hello/);
  assert.match(await changed((lines) => lines.pop()), /\+ send hello/);
  assert.match(await changed((lines) => lines.push("close 1000")), /- close 1000/);
  assert.match(await changed((lines, steps) => steps.at(-1).expected.push("send ping")), /- send ping/);
});

test("every reason has the words of texts.txt", () => {
  const rows = readFileSync(new URL("../Vectors/client/texts.txt", import.meta.url), "utf8").split("\n").filter((line) => line && !line.startsWith("#"));
  assert.equal(rows.length, 26);
  for (const row of rows) {
    const [, reason, words] = /^(\S+) \S+ (.*)$/.exec(row);
    assert.equal(reasonText(reason), words, reason);
  }
  assert.equal(reasonText("tiredOfTalking"), "call failed");
});
