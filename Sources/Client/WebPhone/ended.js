// What is left of a call that is over: who, why, and a way to call again. A card stays until it is dismissed, or the next call is made or answered.
import { t } from "./language.js";
import { $, app } from "./page.js";
import { busy, congestion } from "./tones.js";
import { fillRows, make, write } from "./ui/elements.js";

const LIMIT = 3;
/** The newest first: `{id, name, number, words, isOwn}`. */
let cards = [];
let redial = () => {};

/** By the cause, as the exchanges of the telephone network do: the callee is busy, or no way leads there. */
const BUSY = new Set(["busy", "declined", "dnd", "blocked"]);
const CONGESTED = new Set(["notFound", "forbidden", "callerNumber", "emergency", "trunkFailed", "trunkLost", "overload", "tooMany", "tooManyCalls", "server", "networkLost", "gatewayLost",
  "gatewayRestart", "mediaTimeout", "mediaFailed", "codec", "auth", "unknown", "unreachable"]);

/** `card.reason` may be of an earlier load of this page; `isAlone`: no other call goes on, whose voice a tone would cover. */
export function leaveCard(card, isAlone) {
  cards = [card, ...cards.filter(({ id }) => id !== card.id)].slice(0, LIMIT);
  if (!isAlone || card.isOwn) return;
  if (BUSY.has(card.reason) && card.direction === "outgoing") busy.startFor(5);
  else if (CONGESTED.has(card.reason) && (card.direction === "outgoing" || card.wasUp)) congestion.startFor(3);
}

export function dropCards() {
  hush();
  cards = [];
}

export const hasCards = () => cards.length > 0;

/** A click or a key has it quiet. */
export function hush() {
  busy.stop();
  congestion.stop();
}

export function dismissLast() {
  const [first] = cards;
  if (!first) return false;
  dismiss(first.id);
  return true;
}

function dismiss(id) {
  hush();
  cards = cards.filter((card) => card.id !== id);
  app.render();
}

function create() {
  const row = make("li", { className: "person" }, make("p", {}, make("strong", { dir: "auto" }), make("span")), make("button", { type: "button" }),
    make("button", { type: "button", className: "plain" }));
  return row;
}

function update(row, card) {
  const index = cards.indexOf(card), [who, words] = row.querySelectorAll("strong, span"), [again, close] = row.querySelectorAll("button");
  write(who, card.name);
  write(words, card.words);
  Object.assign(again, { id: `again-${index}`, hidden: !card.number, disabled: app.phone.state !== "online", ariaLabel: t("ended.callAgainName", { name: card.name }) });
  write(again, t("ended.callAgain"));
  again.onclick = () => redial(card.number);
  close.id = `dismiss-${index}`;
  write(close, t("ended.dismiss"));
  close.onclick = () => dismiss(card.id);
}

export function showEnded() {
  const isShown = !!app.phone && app.phone.state !== "failed" && cards.length > 0;
  $("ended").hidden = !isShown;
  if (isShown) fillRows($("ended-list"), cards, { key: ({ id }) => id, create, update });
}

export function wireEnded(call) {
  redial = call;
  for (const type of ["pointerdown", "keydown"]) addEventListener(type, hush, { capture: true });
}
