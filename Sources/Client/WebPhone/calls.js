// The calls as the page knows them: which is in front, what sounds, what the history notes, what of them a reload must not forget.
import { bell, ringback } from "./bell.js";
import { History } from "./history.js";
import { announce, app, read, tab } from "./page.js";
import { shownName, t } from "./language.js";
import { callWords, errorWords, reasonWords, transferWords } from "./words.js";

export const who = (call) => shownName(call.peer?.n || call.peer?.h || "") || t("unknown");

/** What the page knows of a call beyond the package: digits, how a transfer goes, the call that was asked first. */
const notes = new WeakMap();
export const note = (call) => notes.get(call) ?? {};

/** Said until the next call begins: why the last one could not be. */
export const last = { error: null, words: "" };

const isGrouped = (one, other) => !!one.group && one.group === other?.group;

/** Everybody who hears each other, with this call. */
export const party = (call) => (call.group ? (app.phone?.calls ?? []).filter((one) => one.state !== "ended" && isGrouped(one, call)) : [call]);

/** Whether both can hear each other: three people talk then. */
export function mergeable({ front, other }) {
  return [front, other].every((call) => call?.phase === "connected" && call.capabilities?.group === true);
}

/** Both hear each other, or the call in front leaves its group. */
export async function merge({ front, other }) {
  await (other ? front.merge(other) : front.leaveGroup()).catch((error) => {
    last.words = t(other ? "call.notMerged" : "call.notSeparated", { why: errorWords(error) }).trim();
  });
  app.render();
}

/**
 * `front` is what hands act upon, `other` the one on hold beside it and in no group with it, `waiting` rings while there is a `front`.
 * A call that goes out, or was just answered, is in front of the one that is being held for it.
 */
export function chosen() {
  const live = (app.phone?.calls ?? []).filter((call) => call.state !== "ended");
  const ringing = live.filter((call) => call.state === "ringing");
  const taken = live.filter((call) => call.state !== "ringing");
  const front = taken.findLast((call) => !call.isHeld) ?? taken.at(-1) ?? ringing[0] ?? null;
  return { front, other: taken.find((call) => call !== front && !isGrouped(call, front)) ?? null, waiting: ringing.find((call) => call !== front) ?? null, live };
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
  Object.assign(last, { error: null, words: "" });
  put(call, { at: began(call), connectedMs: null, reason: null });
  call.addEventListener("state", () => {
    if (call.state === "ended") ended(call); else remember();
    app.render();
  });
  call.addEventListener("digit", ({ digit }) => dialled(call, digit));
  call.addEventListener("quality", () => app.render());
  call.addEventListener("statistics", () => app.render());
  call.addEventListener("transferred", ({ status }) => transferTold(call, status));
  if (call.state === "ended") ended(call);
}

export function dialled(call, digits) {
  note(call).digits += digits;
  app.render();
}

export function transferTold(call, status) {
  note(call).transfer = status === "failed" ? null : transferWords(status);
  note(call).isTransferred = status === "done";
  if (status === "failed") last.words = transferWords(status);
  app.render();
}

/** Blind transfer. The words of a refusal stay in view until the next call. */
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
  last.words = t("transfer.refused", { why: errorWords(error) }).trim();
  app.render();
}

/** Milliseconds of talk so far, or null. */
const talked = (call) => (call.connectedAt === null ? null : call.seconds * 1000);

/** By the gateway's clock, once a session is there. */
const began = (call) => call.startedAt + (app.phone?.skew ?? 0);

function put(call, more) {
  const { n: name = null, h: number = null } = call.peer ?? {};
  app.history?.put({ id: call.id, direction: call.direction, name, number, ...more });
}

/** Once a second: a page that is closed in a call has noted how long it was. */
export const noteTime = (call) => put(call, { connectedMs: talked(call) });

function endWord(call) {
  if (call.error) return call.error.code;
  if (note(call).isTransferred || (note(call).isGivenAway && call.endReason === "remoteHangup")) return "transferred";
  return call.endReason === "localEnd" && call.direction === "incoming" && call.connectedAt === null ? "localDecline" : call.endReason;
}

function ended(call) {
  if (note(call).isNoted) return;
  note(call).isNoted = true;
  const reason = endWord(call);
  put(call, { at: began(call), connectedMs: talked(call), reason });
  last.error = call.error;
  remember();
  announce(t("call.said", { name: who(call), words: reasonWords(reason) }));
}

/** Nobody is unmuted by a reload. */
function remember() {
  const { live } = chosen();
  tab.set("muted", JSON.stringify(live.filter((call) => call.isMuted).map((call) => call.id)));
}

/** Of the page before it was loaded again: read once, for the first call that is taken up writes its own. */
const mutedBefore = read(tab, "muted") ?? [];

/** This page was loaded again in a call. */
export function takeUp(call) {
  if (mutedBefore.includes?.(call.id)) call.mute(true);
}

/** A call of an earlier load of this page, or of a push, is over. */
export function gone(id, reason) {
  if (app.history?.find(id)) app.history.put({ id, reason });
  last.words = reasonWords(reason);
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
export const spoken = (call, isReachable) => t("call.said", { name: who(call), words: note(call).transfer ?? callWords(call, isReachable) });
