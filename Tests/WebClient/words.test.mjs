// What the web phone says, without a page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PhoneError } from "../../Sources/Client/WebClient/trunkline.js";
import * as words from "../../Sources/Client/WebPhone/words.js";

const call = (more) => ({ phase: "connected", isTakenUp: false, isHeld: false, isHeldByPeer: false, isMuted: false, isReconnecting: false, ...more });

test("the page does not say connected through silence", () => {
  assert.equal(words.callWords(call(), true), "Connected");
  for (const isReachable of [true, false]) {
    for (const more of [{}, { isHeld: true }, { isMuted: true }, { isHeldByPeer: true }]) assert.equal(words.callWords(call({ isReconnecting: true, ...more }), isReachable), "Reconnecting…");
  }
  assert.equal(words.callWords({ phase: "ended", isReconnecting: true, endReason: "networkLost" }, true), "The network connection was lost");
});

test("a call that no gateway was reached for says so in the history", () => {
  assert.equal(words.callWords({ phase: "ended", error: new PhoneError("unreachable", "nothing"), endReason: "unknown" }, false), "The gateway could not be reached");
});
