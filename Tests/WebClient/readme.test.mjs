// The browser's sample in README.md runs as it stands, on the fakes.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Rig, A } from "./phone.mjs";
import { settle } from "./fakes.mjs";

test("the README's sample rings, answers, dials and hangs up", async () => {
  const text = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const code = text.match(/```js\n([\s\S]*?)\n```/)[1];
  const [first, ...lines] = code.split("\n");
  assert.match(first, /^import \{ Phone \} from "https:\/\/[^"]+\/trunkline\/trunkline\.js";$/);
  assert.ok(lines.length < 6);
  const rig = new Rig(), buttons = {};
  let options;
  // the phone of the rig stands in for a new one: what the sample gives it is looked at instead
  function Phone(gateway, given) {
    assert.match(gateway, /^wss:.*\/v1\/connect$/);
    options = given;
    return rig.phone;
  }
  const document = { title: "", querySelector: (name) => (buttons[name] ??= {}) };
  const fetch = async (path) => ({ text: async () => `token of ${path}` });
  new Function("Phone", "document", "fetch", lines.join("\n"))(Phone, document, fetch);
  assert.equal(await options.token(), "token of /phone-token");

  await rig.welcome();
  await rig.ring(A);
  assert.equal(document.title, "+15550001 ringing");
  buttons["#answer"].onclick();
  await settle();
  await rig.ok("call.answer", { won: true });
  await rig.tell("call.connected", A, { at: rig.clock.now(), codec: "opus" });
  buttons["#end"].onclick();
  await settle();
  assert.equal(rig.said("call.end").length, 1);
  buttons["#call"].onclick();
  await settle();
  assert.equal(rig.said("call.start").at(-1).d.to.h, "+15557654321");
});
