// The calls as the page knows them: which is in front, what sounds, what the history notes, what of them a reload must not forget.
import { askForNumbers, callFrom } from "./account.js";
import { sendAfterwards } from "./afterwards.js";
import { bell } from "./bell.js";
import { formatted } from "./dialling.js";
import { dropCards, leaveCard } from "./ended.js";
import { History } from "./history.js";
import { nameOf } from "./names.js";
import { announceOver, app, read, tab } from "./page.js";
import { ringback } from "./tones.js";
import { shownName, t } from "./language.js";
import { callWords, duration, errorWords, reasonWords, transferWords } from "./words.js";

/** What the user's directory calls them, else what the network does, else the number. */
export const nameIn = (call) => shownName(nameOf(call.peer?.h) ?? "") || shownName(call.peer?.n ?? "");
export const who = (call) => nameIn(call) || shownName(formatted(call.peer?.h ?? "")) || t("unknown");

/** What the page knows of a call beyond the package: digits, how a transfer goes, the call that was asked first. */
const notes = new WeakMap();
export const note = (call) => notes.get(call) ?? {};

/** Why the last thing asked of a call was refused: said while that call is there. */
const refusal = { call: null, words: "" };
export const refusalWords = () => (refusal.call && refusal.call.state !== "ended" ? refusal.words : "");
const refuse = (call, words) => Object.assign(refusal, { call, words });

const isGrouped = (one, other) => !!one.group && one.group === other?.group;

/** Everybody who hears each other, with this call. */
export const party = (call) => (call.group ? (app.phone?.calls ?? []).filter((one) => one.state !== "ended" && isGrouped(one, call)) : [call]);

/** Whether both can hear each other: three people talk then. */
export function mergeable({ front, other }) {
  return [front, other].every((call) => call?.phase === "connected" && call.capabilities?.group === true);
}

/** Both hear each other, or the call in front leaves its group. */
export async function merge({ front, other }) {
  refuse(null, "");
  await (other ? front.merge(other) : front.leaveGroup()).catch((error) => {
    refuse(front, t(other ? "call.notMerged" : "call.notSeparated", { why: errorWords(error) }).trim());
  });
  app.render();
}

/**
 * `front` is what hands act upon, `others` are on hold beside it and in no group with it, `queue` rings while there is a `front`; `other` and
 * `waiting` are the first of them.
 * A call that goes out, or was just answered, is in front of the one that is being held for it.
 */
export function chosen() {
  const live = (app.phone?.calls ?? []).filter((call) => call.state !== "ended");
  const ringing = live.filter((call) => call.state === "ringing");
  const taken = live.filter((call) => call.state !== "ringing");
  const front = taken.findLast((call) => !call.isHeld) ?? taken.at(-1) ?? ringing[0] ?? null;
  const others = taken.filter((call) => call !== front && !isGrouped(call, front)), queue = ringing.filter((call) => call !== front);
  return { front, other: others[0] ?? null, others, waiting: queue[0] ?? null, queue, live };
}

/** Which of both can send its other side to the other call; the held one first: that is who is being transferred. */
export function transferable({ front, other }) {
  const isUp = (call) => call?.phase === "connected";
  if (!isUp(front) || !isUp(other)) return null;
  return [other, front].find((call) => call.capabilities?.transfer) ?? null;
}

export function openHistory(user) { app.history = new History(user); }

/** Every call that the phone has, once. */
export function followAll() {
  for (const call of app.phone.calls) if (!notes.has(call)) follow(call);
  app.render();
}

function follow(call) {
  notes.set(call, { digits: "", transfer: null, isTransferred: false, isGivenAway: false, isNoted: false });
  put(call, { at: began(call), connectedMs: null, reason: null });
  call.addEventListener("state", () => {
    if (call.direction === "outgoing" || call.state !== "ringing") beginsAnew(call);
    if (call.state === "ended") ended(call); else remember();
    app.render();
  });
  call.addEventListener("digit", ({ digit }) => dialled(call, digit));
  call.addEventListener("quality", () => app.render());
  call.addEventListener("statistics", () => app.render());
  call.addEventListener("transferred", ({ status }) => transferTold(call, status));
  if (call.direction === "outgoing") beginsAnew(call);
  if (call.state === "ended") ended(call);
}

/** What was left of the calls before goes when the next one is made or answered. */
function beginsAnew(call) {
  if (note(call).hasBegun || call.state === "ended" && call.direction === "incoming") return;
  note(call).hasBegun = true;
  dropCards();
}

/** From a click. `then`: what is sent once the call is connected. */
export function place(number, then = "") {
  const call = app.phone.call(number, { from: callFrom() });
  if (then) sendAfterwards(call, then, (digits) => dialled(call, digits));
  followAll();
}

export function dialled(call, digits) {
  note(call).digits += digits;
  app.render();
}

export function transferTold(call, status) {
  note(call).transfer = status === "failed" ? null : transferWords(status);
  note(call).isTransferred = status === "done";
  refuse(call, status === "failed" ? transferWords(status) : "");
  app.render();
}

/** Blind transfer. The words of a refusal stay in view while the call is there. */
export async function transferTo(call, number) {
  transferTold(call, "trying");
  await call.transfer(number).catch((error) => refused(call, error));
}

/** Attended: the other side of `call` talks with that of `other`, which hangs up here when it does. */
export async function transferBoth(call, other) {
  note(other).isGivenAway = true;
  transferTold(call, "trying");
  await call.transferWith(other).catch((error) => refused(call, error));
}

function refused(call, error) {
  transferTold(call, "failed");
  refuse(call, t("transfer.refused", { why: errorWords(error) }).trim());
  app.render();
}

/** Milliseconds of talk so far, or null. */
const talked = (call) => (call.connectedAt === null ? null : call.seconds * 1000);

/** By the gateway's clock, once a session is there. */
const began = (call) => call.startedAt + (app.phone?.skew ?? 0);

function put(call, more) {
  const { n: name = null, h: number = null, k: kind = "phone" } = call.peer ?? {};
  app.history?.put({ id: call.id, direction: call.direction, name, number, kind, ...more });
}

/** Once a second: a page that is closed in a call has noted how long it was. */
export const noteTime = (call) => put(call, { connectedMs: talked(call) });

function endWord(call) {
  if (call.error) return call.error.code;
  if (note(call).isTransferred || (note(call).isGivenAway && call.endReason === "remoteHangup")) return "transferred";
  // that it is over is all that a gateway knows which was not there
  if (call.endReason === "unknown" && call.connectedAt !== null && note(call).wasUnreachable) return "gatewayLost";
  return call.endReason === "localEnd" && call.direction === "incoming" && call.connectedAt === null ? "localDecline" : call.endReason;
}

/** The user's own doing: no tone says so. */
const OWN = new Set(["localEnd", "cancelled", "localDecline", "transferred"]);

function ended(call) {
  if (note(call).isNoted) return;
  note(call).isNoted = true;
  const reason = endWord(call);
  put(call, { at: began(call), connectedMs: talked(call), reason });
  if (reason === "callerNumber") askForNumbers(app.phone);
  const wasUp = call.connectedAt !== null, words = reasonWords(reason);
  leaveCard({
    id: call.id, name: who(call), number: call.peer?.h ?? "", words: wasUp ? `${words} · ${duration(talked(call))}` : words, reason, direction: call.direction, wasUp,
    isOwn: OWN.has(reason) }, chosen().live.length === 0);
  remember();
  announceOver(t("call.said", { name: who(call), words: reasonWords(reason) }));
}

/** A call that is over by the time that the gateway is back was lost with it. */
export function noteLine() {
  if (!app.phone.isReachable) for (const call of chosen().live) note(call).wasUnreachable = true;
}

/** Nobody is unmuted by a reload, and a call that a reload did not find again is not silent about it. */
function remember() {
  const { live } = chosen();
  tab.set("live", JSON.stringify(live.filter((call) => call.connectedAt !== null).map((call) => call.id)));
  tab.set("muted", JSON.stringify(live.filter((call) => call.isMuted).map((call) => call.id)));
}

/** Of the page before it was loaded again: read once, for the first call that is taken up writes its own. */
const mutedBefore = read(tab, "muted") ?? [];
let liveBefore = read(tab, "live") ?? [];

/** The gateway is reached for the first time: what it does not know of the page before is over, and so is what it says by `gone`. */
export async function missBefore() {
  const { phone } = app;
  // the end of each call that the gateway still knows comes before it answers
  await phone.echo?.();
  const lost = Array.isArray(liveBefore) ? liveBefore : [];
  liveBefore = [];
  for (const id of lost) if (phone === app.phone && !phone.calls.some((call) => call.id === id)) gone(id, "gatewayLost");
}

/** This page was loaded again in a call. */
export function takeUp(call) {
  if (mutedBefore.includes?.(call.id)) call.mute(true);
}

/** A call of an earlier load of this page, or of a push, is over. */
export function gone(id, reason) {
  if (Array.isArray(liveBefore)) liveBefore = liveBefore.filter((one) => one !== id);
  const entry = app.history?.find(id);
  if (entry) app.history.put({ id, reason });
  leaveCard({
    id, name: shownName(entry?.name ?? "") || shownName(entry?.number ?? "") || t("unknown"), number: entry?.number ?? "", words: reasonWords(reason), reason,
    direction: entry?.direction ?? "incoming", wasUp: (entry?.connectedMs ?? null) !== null, isOwn: OWN.has(reason) }, chosen().live.length === 0);
  announceOver(reasonWords(reason));
  app.render();
}

/** Bell, call waiting or ringback, as the calls are. */
export function sound({ front, waiting }) {
  const rings = front?.state === "ringing" ? front : waiting;
  if (rings) bell.start(rings.id, who(rings), rings === waiting); else bell.stop();
  const isRinging = front?.phase === "progress" && front.progress === "ringing" && !front.hasEarlyMedia && app.phone.isReachable;
  if (isRinging) ringback.start(); else ringback.stop();
}

/** Both sides of a call in one sentence, for who does not see them. */
export function spoken(call, isReachable) {
  const isSentence = call.phase === "ringing" && isReachable && !call.isReconnecting; // "Ada Lovelace is calling for Sales"
  return t(isSentence ? "call.saidOf" : "call.said", { name: who(call), words: note(call).transfer ?? callWords(call, isReachable) });
}
