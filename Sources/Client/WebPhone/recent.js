// The list of calls of before: pages of the gateway's history, the missed ones by themselves, their count on the app's icon and in the title.
import { setTitleCount } from "./bell.js";
import { place } from "./calls.js";
import { formatted } from "./dialling.js";
import { fill } from "./dialer.js";
import { shownName, t, when } from "./language.js";
import { forgetNames, nameOf, namesVersion } from "./names.js";
import { $, app, icon, show } from "./page.js";
import { fillRows, make, write } from "./ui/elements.js";
import { duration, historyWords, isMissed } from "./words.js";

/** Pages that one click on "older" asks for at most, where missed calls are looked for. */
const PAGES = 5, ENOUGH = 10;

let onlyMissed = false, isAsking = false, isStale = false, isFailed = false, shownStamp = "";

/** Once for each telephone. */
export function followHistory(phone) {
  const on = (type, f) => phone.addEventListener(type, (event) => { if (phone === app.phone) f(event); });
  let wasOnline = false;
  on("state", () => {
    const isOnline = phone.state === "online";
    if (isOnline && !wasOnline) refresh();
    wasOnline = isOnline;
  });
  on("history", ({ isErased }) => {
    if (isErased) app.history?.erase();
    refresh();
  });
  on("directory", () => {
    forgetNames();
    refresh();
  });
  [onlyMissed, isStale, isFailed] = [false, false, false];
  forgetNames();
}

/** The newest page, once: what changes meanwhile is asked for behind it. */
async function refresh() {
  if (!app.phone?.keepsHistory || !app.history) return;
  if (isAsking) { isStale = true; return; }
  await ask(async (phone, history) => history.take(await phone.history(), true));
  if (isStale) {
    isStale = false;
    refresh();
  }
}

async function older() {
  if (isAsking) return;
  await ask(async (phone, history) => {
    const before = history.entries.filter(isMissed).length;
    for (let pages = 0; pages < PAGES && history.next !== null; pages++) {
      history.take(await phone.history({ before: history.next }), false);
      if (phone !== app.phone || !onlyMissed || history.entries.filter(isMissed).length - before >= ENOUGH) break;
    }
  });
}

async function ask(f) {
  const { phone, history } = app;
  isAsking = true;
  app.render();
  isFailed = await f(phone, history).then(() => false, () => true);
  isAsking = false;
  if (phone === app.phone) app.render();
}

function create() {
  const use = make("button", { type: "button", className: "entry" });
  for (const name of ["arrow", "who", "when", "how"]) use.append(make(name === "who" ? "bdi" : "span", { className: name }));
  use.firstChild.ariaHidden = "true";
  const call = make("button", { type: "button", className: "bare call" }, icon("phone"));
  return make("li", {}, use, call);
}

function update(item, entry) {
  const [use, call] = item.children, [arrow, who, at, how] = use.children;
  const name = shownName(entry.name || nameOf(entry.number) || "") || shownName(formatted(entry.number ?? "")) || t("unknown");
  const words = [isMissed(entry) && t("recent.isMissed"), entry.connectedMs !== null && duration(entry.connectedMs), historyWords(entry)].filter(Boolean).join(" · ");
  const values = { name, when: when(entry.at), how: words };
  write(arrow, entry.direction === "incoming" ? "↙" : "↗");
  write(who, name);
  write(at, values.when);
  write(how, words);
  item.classList.toggle("missed", isMissed(entry));
  use.ariaLabel = `${t(entry.direction === "incoming" ? "recent.from" : "recent.to", values)} ${entry.number ? t("recent.copies") : ""}`.trim();
  // a user of this gateway has an id, which is no number
  use.onclick = () => fill(entry.kind === "generic" && entry.number ? `sip:${entry.number}@${location.hostname}` : entry.number ?? "");
  call.ariaLabel = t("recent.callBack", { name });
  call.hidden = !entry.number;
  call.disabled = app.phone?.state !== "online";
  call.onclick = () => place(entry.kind === "generic" ? { k: "generic", h: entry.number } : entry.number);
}

/** `live`: calls that stand elsewhere on the page. True: there is something to show. */
export function showRecent({ live }) {
  const { phone, history } = app;
  const isMany = !!phone && !!history;
  const stamp = isMany ? JSON.stringify([history.stamp, namesVersion(), onlyMissed, isAsking, isFailed, live.map(({ id }) => id), phone.state === "online", phone.keepsHistory, new Date().toDateString()]) : "";
  if (stamp === shownStamp) return $("history").childElementCount > 0;
  shownStamp = stamp;
  const hidden = new Set(live.map(({ id }) => id)), all = isMany ? history.entries.filter(({ id }) => !hidden.has(id)) : [];
  const unseen = isMany ? history.unseen.filter(({ id }) => !hidden.has(id)).length : 0;
  const entries = onlyMissed ? all.filter(isMissed) : all;
  fillRows($("history"), entries, { key: ({ id }) => id, create, update });
  show("history", entries.length > 0);
  show("no-missed", onlyMissed && entries.length === 0 && !isAsking);
  showFilter(unseen);
  show("older", isMany && history.next !== null);
  $("older").disabled = isAsking || phone?.state !== "online";
  write($("older"), t(isAsking ? "recent.loading" : "recent.more"));
  show("older-fault", isFailed);
  show("recent-local", isMany && phone.state === "online" && !phone.keepsHistory);
  setTitleCount(unseen);
  badge(unseen);
  return all.length > 0;
}

function showFilter(unseen) {
  $("show-all").ariaPressed = String(!onlyMissed);
  $("show-missed").ariaPressed = String(onlyMissed);
  write($("missed-count"), unseen ? String(unseen) : "");
  show("missed-count", unseen > 0);
  $("show-missed").ariaLabel = unseen ? t("recent.missedCount", { count: unseen }) : t("recent.missed");
}

let badged = null;
/** An installed page has a number on its icon. */
function badge(count) {
  if (badged === count) return;
  badged = count;
  const done = count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.();
  done?.catch(() => {});
}

export function wireRecent() {
  $("show-all").onclick = () => filter(false);
  $("show-missed").onclick = () => filter(true);
  $("older").onclick = () => older();
}

/** Who looks at the missed calls has seen them. */
function filter(isOn) {
  onlyMissed = isOn;
  if (isOn) app.history?.see();
  app.render();
}
