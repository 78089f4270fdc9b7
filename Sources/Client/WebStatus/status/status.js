// The status page: what is wrong now, trunks, calls and how the last ones ended. What is asked and when is feed.js's, sentences are texts.js's.
import { brandName } from "../ui/brand.js";
import { $, fillRows, make, show, write } from "../ui/elements.js";
import { setIcon, setTitle } from "../ui/favicon.js";
import { focusFirst } from "../ui/focus.js";
import { announce, interrupt } from "../ui/live.js";
import { noticeIn } from "../ui/notice.js";
import { tab } from "../ui/storage.js";
import { duration, span } from "../ui/times.js";
import { Feed } from "./feed.js";
import { tableOf } from "./rows.js";
import * as texts from "./texts.js";

const TOKEN = "token";
const notice = noticeIn($("notice"));
const feed = globalThis.feed = new Feed(); // for the console and for tests
const time = (at) => (at ? new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" }).format(at) : "");
/** The gateway's clock, as far as this page can know it: the viewer's own may be years off. */
const now = () => feed.status.now + feed.age;

const drawTrunks = tableOf($("trunks"), {
  key: (trunk) => trunk.trunk, none: "No trunks",
  columns: [
    { name: "Trunk", of: (trunk) => trunk.trunk },
    { name: "State", wide: true, of: trunkState },
    { name: "Calls", of: (trunk) => trunk.calls + (trunk.callsLimit ? ` of ${trunk.callsLimit}` : "") },
    { name: "Last refusal", wide: true, of: (trunk) => texts.refusalText(trunk.lastRefusal, now()) },
  ],
  details: (trunk) => [
    ["Trunk", trunk.trunk], [trunk.up ? "Up since" : "Down since", time(trunk.since)], ["Name look-up", trunk.lookUp],
    ["Servers", trunk.servers.map(({ address, up }) => `${address} ${up ? "up" : "down"}`).join(", ") || "none known"],
    ["Registered until", trunk.registration && (trunk.registration.registered ? time(trunk.registration.expires) : "not registered")],
    ["Not used", trunk.breakerOpen && "calls over it failed in a row"],
    ["Unanswered requests", trunk.unanswered?.map(({ method, failure, count }) => `${count} ${method} (${failure})`).join(", ")],
    ["Last refusal", texts.refusalText(trunk.lastRefusal, now())],
  ],
});
function trunkState(trunk) {
  const since = span(now() - trunk.since), href = !trunk.up && texts.runbook(trunk.why ?? "trunks");
  if (trunk.up && trunk.breakerOpen) return { text: "Up, not used: calls failed", level: "wait", link: { label: "Runbook", href: texts.runbook("trunks") } };
  return { text: `${texts.trunkText(trunk)} for ${since}`, level: trunk.up ? "good" : "bad", link: href ? { label: "Runbook", href } : null };
}

const parties = { name: "From → to", wide: true, of: (call) => `${call.from || "withheld"} → ${call.to}` };
const ids = (call) => [["From", call.from], ["To", call.to], ["User", call.user], ["Trunk", call.trunk], ["Call", call.call], ["Call-ID", call.sipCallId]];
const heard = (call) => [["From the trunk", texts.heardText(call.fromTrunk)], ["From the app", texts.heardText(call.fromApp)]];
const drawCalls = tableOf($("calls"), {
  key: (call) => call.call, none: "No calls",
  columns: [
    { name: "Quality", of: (call) => ({ text: texts.qualityText(call), level: texts.qualityLevel(call.quality) }) },
    { name: "State", of: (call) => `${texts.stateText(call)} ${duration(now() - (call.connected ?? call.start))}` },
    parties, { name: "User", of: (call) => call.user }, { name: "Trunk", of: (call) => call.trunk },
  ],
  details: (call) => [...heard(call), ["Direction", texts.directionText(call.direction)], ["Started", time(call.start)], ["Answered", time(call.connected)], ...ids(call)],
});
const drawEnded = tableOf($("ended"), {
  key: (call) => call.call, none: "No call has ended since the gateway started",
  columns: [
    { name: "How it ended", wide: true, of: (call) => ({ text: texts.reasonText(call.reason), level: texts.isFault(call.reason) ? "bad" : "" }) },
    { name: "MOS", of: (call) => texts.worstScore(call)?.toFixed(1) },
    { name: "Ended", of: (call) => `${span(now() - call.end)} ago` },
    parties, { name: "Duration", of: (call) => (call.connectedMs ? duration(call.connectedMs) : "") }, { name: "Trunk", of: (call) => call.trunk },
  ],
  details: (call) => [
    ["Why", [texts.reasonText(call.reason), call.detail].filter(Boolean).join(": ")], ["By", call.by], ["SIP status", call.sip && String(call.sip)],
    ...heard(call), ["Direction", texts.directionText(call.direction)], ["Started", time(call.start)], ["Ended", time(call.end)], ...ids(call), ["Device", call.device],
  ],
});

// — what is shown —

let lastSaid = null, wasLogin = false;
function render() {
  const { status, fault, ready } = feed, isLogin = fault?.kind === "login";
  const line = texts.headline({ status, ready, fault, age: feed.age, isHidden: document.hidden });
  $("status").dataset.level = line.level;
  write($("headline"), line.text);
  if ($("headline").title !== line.text) $("headline").title = line.text;
  write($("about"), status ? texts.aboutText(status, feed.age) : "");
  setTitle(`${line.title}${status ? ` · ${status.node}` : ""} · ${brandName}`);
  setIcon(line.level);
  say(line, fault);
  showLogin(isLogin);
  showNotice();
  show("board", !!status);
  if (!status || document.hidden) return;
  showAge();
  draw();
}

/** Spoken once: a state that is as bad as before is not repeated with each second of its age. */
function say(line, fault) {
  const what = fault ? fault.kind : line.text;
  if (what === lastSaid) return;
  const isFirst = lastSaid === null;
  lastSaid = what;
  if (line.level === "bad" || (fault && fault.kind !== "login")) interrupt(line.text);
  else {
    interrupt("");
    if (!isFirst || line.level !== "unknown") announce(line.text);
  }
}

/** A token that is refused is said, and the keyboard stays where it is typed; who is logged in has it at the headline. */
function showLogin(isLogin) {
  if (isLogin && !wasLogin) {
    show("login", true);
    write($("login-fault"), feed.token ? (feed.status ? "The token has expired or was revoked." : "This token is not valid.") : "");
    // not away from somebody who reads or types elsewhere
    if (document.activeElement === document.body || !feed.status) $("token").focus();
  } else if (!isLogin && !feed.fault && !$("login").hidden) {
    const hadFocus = $("login").contains(document.activeElement);
    show("login", false);
    $("token").value = "";
    write($("login-fault"), "");
    if (hadFocus) focusFirst([$("headline")]);
  }
  wasLogin = isLogin;
}

function showNotice() {
  const { others, status, isUpgraded } = feed;
  if (status && others.length) {
    const names = [...new Set([status.node, ...others])];
    const what = names.length > 1 ? `nodes ${names.join(" and ")}` : `two gateways that are both called ${status.node}`;
    return notice(`This address leads to ${what}. This page shows ${status.node}. Open the address of the node that you want to see.`);
  }
  if (isUpgraded) return notice(`The gateway was upgraded to ${status.version}. This page is from the version before.`, { label: "Reload", run: () => location.reload() });
  notice("");
}

/** Rows of which the gateway has said nothing for longer than it was asked are grey, with their age. */
const isOld = () => !!feed.fault || feed.age > 2 * Math.max(feed.wait, 5_000);
function showAge() {
  const old = isOld(), { calls } = feed.status;
  $("board").classList.toggle("old", old);
  const parts = [old ? `Out of date: the state of ${span(feed.age)} ago, at ${time(feed.status.now)}.` : `As of ${time(feed.status.now)}.`];
  if (!old && !calls.complete) parts.push(calls.at ? `The gateway is too busy to list its calls; these are ${span(feed.status.now - calls.at)} old.` : "The gateway is too busy to list its calls.");
  write($("as-of"), parts.join(" "));
}

const matches = (row) => !feed.find || JSON.stringify(row).toLowerCase().includes(feed.find.toLowerCase());
function draw() {
  const { trunks, calls, ended, hour } = feed.status;
  const shown = { trunks: trunks.rows.filter((one) => !feed.find || one.trunk.toLowerCase().includes(feed.find.toLowerCase())), calls: calls.rows.filter(matches), ended: ended.filter(matches) };
  drawWrong();
  const none = feed.find ? `No match for “${feed.find}”` : undefined;
  drawTrunks(shown.trunks, none);
  drawCalls(shown.calls, none);
  drawEnded(shown.ended, none);
  write($("trunks-title"), `Trunks${trunks.count ? ` (${trunks.count}${trunks.down ? `, ${trunks.down} down` : ""})` : ""}`);
  const left = calls.found > calls.rows.length ? `, the worst ${calls.rows.length} shown` : "";
  write($("calls-title"), `Calls now (${calls.count}${calls.poor ? `, ${calls.poor} poor` : ""}${left})`);
  const fits = [[shown.trunks.length, "trunk"], [feed.find ? Math.max(shown.calls.length, calls.found) : 0, "call"], [shown.ended.length, "ended call"]];
  write($("found"), feed.find ? `Found: ${fits.map(([count, what]) => `${count} ${what}${count === 1 ? "" : "s"}`).join(", ")}` : "");
  drawHour(hour);
}

function drawWrong() {
  const { status } = feed, rows = [];
  for (const { name: part, reason } of status.components.filter((one) => !one.ready)) rows.push([part, `${part}: ${reason ?? "not ready"}`, texts.runbook(part)]);
  for (const trunk of status.trunks.rows.filter((one) => !one.up)) {
    rows.push([`trunk ${trunk.trunk}`, `Trunk ${trunk.trunk}: ${texts.lowered(texts.trunkText(trunk))} for ${span(now() - trunk.since)}${trunk.lookUp ? `, ${trunk.lookUp}` : ""}`, texts.runbook(trunk.why ?? "trunks")]);
  }
  const more = status.trunks.down - status.trunks.rows.filter((one) => !one.up).length;
  if (more > 0) rows.push(["more", `${more} more trunks are down`, null]);
  if (status.calls.poor) rows.push(["poor", `${status.calls.poor} ${status.calls.poor === 1 ? "call sounds" : "calls sound"} poor`, "status/runbooks.html#one-way-audio"]);
  for (const { name: part, note } of status.components.filter((one) => one.ready && one.note && one.name !== "trunks")) rows.push([`note ${part}`, `${part}: ${note}`, null]);
  $("wrong-part").classList.toggle("calm", rows.length === 0);
  fillRows($("wrong"), rows.length ? rows : [["nothing", "Nothing", null]], {
    key: ([key]) => key, create: () => make("li", {}, make("span"), " "),
    update: (item, [, text, href]) => {
      write(item.firstChild, text);
      const link = item.querySelector("a");
      if (!href) link?.remove();
      else if (!link) item.append(make("a", { href, textContent: "Runbook" }));
      else if (link.getAttribute("href") !== href) link.href = href;
    },
  });
}

function drawHour(hour) {
  const of = (count, connected) => count + (count ? ` (${Math.round(100 * connected / count)} % connected)` : "");
  const { total, minutes } = hour;
  write($("hour"), `Ended: ${of(total.incoming, total.incomingConnected)} incoming, ${of(total.outgoing, total.outgoingConnected)} outgoing`);
  const most = Math.max(1, ...minutes);
  $("minutes").setAttribute("aria-label", `Calls that ended in each of the last 60 minutes, at most ${Math.max(...minutes)} in one`);
  fillRows($("minutes"), minutes.map((count, at) => ({ count, at })), {
    key: ({ at }) => String(at), create: () => document.createElementNS("http://www.w3.org/2000/svg", "rect"),
    update: (bar, { count, at }) => {
      const height = 58 * count / most;
      for (const [key, value] of Object.entries({ x: at * 10 + 1, width: 8, y: 60 - height, height })) if (bar.getAttribute(key) !== String(value)) bar.setAttribute(key, value);
    },
  });
  const reasons = Object.entries(total.reasons).sort((a, b) => b[1] - a[1]);
  fillRows($("reasons"), reasons, {
    key: ([reason]) => reason, create: () => make("li"),
    update: (item, [reason, count]) => write(item, `${reason === "connected" ? "Connected" : texts.reasonText(reason)}: ${count}`),
  });
}

// — hands —

$("login").onsubmit = async (event) => {
  event.preventDefault();
  feed.token = $("token").value.trim() || null;
  write($("login-fault"), "");
  wasLogin = false; // what comes is the answer to this token
  await feed.ask();
  if (feed.fault?.kind !== "login") return feed.token && tab.set(TOKEN, feed.token);
  feed.token = null;
  tab.remove(TOKEN);
  $("token").focus();
  $("token").select();
};
let typed = null;
$("search").onsubmit = (event) => event.preventDefault();
$("filter").oninput = () => {
  feed.find = $("filter").value.trim();
  render();
  // the gateway looks through all calls, this page only through the rows that it has
  clearTimeout(typed);
  typed = setTimeout(() => feed.ask(), 400);
};
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input")) return;
  if (event.key === "/" && !$("board").hidden) {
    event.preventDefault();
    $("filter").focus();
  }
});
document.addEventListener("visibilitychange", () => { feed.isHidden = document.hidden; });
feed.addEventListener("change", render);
setInterval(() => { if (feed.fault || (feed.status && isOld())) render(); }, 1_000);

feed.token = tab.get(TOKEN);
render();
feed.isHidden = document.hidden;
feed.ask();
