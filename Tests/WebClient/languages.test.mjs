// The languages of the web phone: every table whole, no text of the page outside of them, names and times as their readers expect them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, test } from "node:test";
import { PhoneError } from "../../Sources/Client/WebClient/trunkline.js";
import * as language from "../../Sources/Client/WebPhone/language.js";
import * as words from "../../Sources/Client/WebPhone/words.js";

const PAGE = new URL("../../Sources/Client/WebPhone/", import.meta.url);
const source = (name) => readFileSync(new URL(name, PAGE), "utf-8");
const tables = Object.fromEntries(await Promise.all(language.LANGUAGES.map(async (one) => [one, (await import(new URL(`texts-${one}.js`, PAGE))).default])));
const scripts = readdirSync(PAGE).filter((name) => name.endsWith(".js") && !name.startsWith("texts-"));
const texts = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry));
const placeholders = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();

afterEach(() => language.speak(["en"]));

test("every language has every text, with its placeholders and its plurals", () => {
  const keys = Object.keys(tables.en).sort();
  assert.ok(keys.length > 150, `${keys.length} texts`);
  for (const [name, table] of Object.entries(tables)) {
    assert.deepEqual(Object.keys(table).sort(), keys, name);
    for (const key of keys) {
      assert.equal(typeof table[key], typeof tables.en[key], `${name}: ${key}`);
      if (typeof table[key] === "object") {
        const needed = new Intl.PluralRules(name).resolvedOptions().pluralCategories.filter((one) => one !== "many");
        for (const category of needed) assert.ok(table[key][category], `${name}: ${key} has no ${category}`);
      }
      for (const text of texts(table[key])) {
        assert.ok(text.trim() && text === text.trim(), `${name}: ${key} is empty or has blanks around it`);
        assert.deepEqual(placeholders(text), placeholders(texts(tables.en[key])[0]), `${name}: ${key}`);
      }
    }
  }
});

test("no language repeats the English sentences", () => {
  for (const [name, table] of Object.entries(tables)) {
    if (name === "en") continue;
    const same = Object.keys(table).filter((key) => table[key] === tables.en[key] && /[a-z] [a-z]/.test(table[key]));
    assert.deepEqual(same, [], name);
  }
});

/** Texts between quotes of a script, without its comments. */
function literals(script) {
  const code = script.replace(/(^|\s)\/\/.*$/gm, "").replace(/\/\*[^]*?\*\//g, "");
  return [...code.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map((match) => match[1] ?? match[2].replace(/\$\{[^]*?\}/g, "…"));
}

test("no text that a person reads stands in a script or in the markup", () => {
  const isSentence = (text) => /^[A-Z][a-z]+([ ,.…]|$)/.test(text) || /[a-z]{2,} [a-z]{2,} [a-z]{2,}/.test(text);
  // names of keys and of errors, and what start.js says before there is a table
  const allowed = /^(Enter|Escape|Tab|Backspace|Delete|Space|Arrow\w+|Audio|Microphone|NotAllowedError|Alt|Control|Shift|Meta|Home|End)$/;
  for (const name of scripts) {
    const code = name === "start.js" ? source(name).replace(/const texts = \{[^]*?\};/, "") : source(name);
    assert.deepEqual(literals(code).filter((text) => isSentence(text) && !allowed.test(text)), [], name);
  }
  const markup = source("index.html").replace(/<(title|svg|script)[^]*?<\/\1>/g, "");
  const seen = [...markup.matchAll(/>([^<]*\p{L}[^<]*)</gu)].map((match) => match[1].trim());
  assert.deepEqual(seen, ["Trunkline"], "only the product's name stands in the markup");
  assert.doesNotMatch(markup, /\s(aria-label|placeholder|title)="/, "names of elements are data-t-label and data-t-placeholder");
});

test("the page asks for no text that is not there", () => {
  const known = new Set(Object.keys(tables.en));
  const asked = scripts.flatMap((name) => [...source(name).matchAll(/\bt\(([^;]*?)[,)]/g)].flatMap((match) => literals(match[1])).filter((key) => !key.includes("…")).map((key) => [name, key]));
  const markup = [...source("index.html").matchAll(/data-t(?:-label|-placeholder)?="([^"]*)"/g)].map((match) => ["index.html", match[1]]);
  assert.ok(asked.length > 40 && markup.length > 20);
  for (const [name, key] of [...asked, ...markup]) assert.ok(known.has(key) || !key.includes("."), `${name}: ${key}`);
});

test("what the package says by code, the page says in its own language", async () => {
  const said = readFileSync(new URL("../../Sources/Client/WebClient/texts.js", import.meta.url), "utf-8");
  const rows = (name) => [...said.match(new RegExp(`const ${name} = \\{([^]*?)\\n\\};`))[1].matchAll(/(?:^|[\s,{])(\w+): /g)].map((match) => match[1]);
  for (const code of rows("ERRORS")) assert.ok(tables.en[`error.${code}`], code);
  for (const cause of rows("CAUSES")) assert.ok(tables.en[`unreachable.${cause}`], cause);
  for (const reason of rows("REASONS")) assert.ok(tables.en[`reason.${reason}`], reason);
  for (const [, cause, direction] of said.match(/const WARNINGS = \{([^]*?)\n\};/)[1].matchAll(/\["(\w+)", (?:"(\w+)"|null)/g)) {
    assert.ok(tables.en[`warning.${cause}${direction ? `.${direction}` : ""}`], cause);
  }
  await language.speak(["de-CH"]);
  assert.equal(words.errorWords(new PhoneError("unreachable", "offline")), tables.de["unreachable.offline"]);
  assert.equal(words.errorWords(new PhoneError("emergency")), tables.de["error.emergency"]);
  assert.equal(words.errorWords({ code: "ofALaterVersion", text: "In English." }), "In English.");
  assert.equal(words.warningWords({ cause: "oneWay", direction: "out", text: "" }), tables.de["warning.oneWay.out"]);
});

test("what is installed has the language of the page: a manifest for each, which differ in words alone", async () => {
  const words = ["lang", "name", "description"];
  const manifest = (lang) => JSON.parse(source(lang === "en" ? "manifest.webmanifest" : `manifest-${lang}.webmanifest`));
  const rest = (lang) => Object.fromEntries(Object.entries(manifest(lang)).filter(([key]) => !words.includes(key)));
  const served = readFileSync(new URL("../../Sources/Client/CWebFiles/files.c", import.meta.url), "utf-8");
  for (const lang of language.LANGUAGES) {
    assert.deepEqual(rest(lang), rest("en"), lang);
    assert.deepEqual([manifest(lang).lang, manifest(lang).name], [lang, tables[lang].appTitle]);
    if (lang !== "en") assert.notEqual(manifest(lang).description, manifest("en").description);
    // the page names it once it knows its language
    const link = { href: "manifest.webmanifest" };
    globalThis.document = { documentElement: { lang: "", dir: "" }, querySelector: (what) => (what.includes("manifest") ? link : null), querySelectorAll: () => [], title: "" };
    try {
      await language.speak([lang]);
      language.fillPage();
      assert.ok(served.includes(`FILE("/${link.href}", "application/manifest+json"`), `${link.href} is not served`);
      assert.equal(link.href, lang === "en" ? "manifest.webmanifest" : `manifest-${lang}.webmanifest`);
    } finally { delete globalThis.document; }
  }
});

test("the first of the user's languages that there is counts; what is no language is passed over", () => {
  const { chosenLanguage: chosen } = language;
  assert.deepEqual(chosen(["nl", "fr-CA", "de"]), { language: "fr", locale: "fr-CA" });
  assert.deepEqual(chosen(["ES"]), { language: "es", locale: "ES" });
  for (const odd of [[], undefined, ["ja"], ["x"], ["constructor"], ["de_DE", "-", "", null, 5], ["__proto__"]]) assert.deepEqual(chosen(odd), { language: "en", locale: "en" });
});

test("times and figures are those of the user's region; a clock that is years off shows its year", async () => {
  const now = new Date(2026, 10, 30, 14, 5);
  await language.speak(["en-US"]);
  assert.match(language.when(now.getTime(), now), /^02:05\sPM$/u);
  await language.speak(["de"]);
  assert.equal(language.when(now.getTime(), now), "14:05");
  assert.match(language.when(new Date(2026, 9, 3, 8, 5).getTime(), now), /^3\. Okt\., 08:05$/);
  assert.match(language.when(new Date(1970, 0, 2, 8, 5).getTime(), now), /1970/);
  assert.match(language.when(new Date(2038, 0, 2, 8, 5).getTime(), now), /2038/);
  for (const odd of [NaN, Infinity, 9e15, undefined, "x"]) assert.equal(language.when(odd, now), "");
  assert.match(words.statisticsWords({ loss: 0.0123, jitterMs: 4.2, bufferMs: null, roundTripMs: 1234 }), /^Verlust 1,2\s%\s·\sJitter 4\sms\s·\sUmlaufzeit 1\.234\sms$/u);
});

test("a name keeps to itself: from right to left, hidden marks, lines, piles of marks, and no end", async () => {
  const { shownName, t } = language;
  assert.equal(t("call.callingTitle", { name: "Ada" }), "Ada is calling");
  assert.equal(t("call.callingTitle", { name: shownName("דנה לוי") }), "\u2068דנה לוי\u2069 is calling");
  assert.equal(shownName("a\u202Egpj.exe\u2066"), "agpj.exe");
  assert.equal(shownName("Ann\n\u0000<b>Example</b>\u2028"), "Ann <b>Example</b>");
  assert.equal(shownName("e" + "\u0301".repeat(300)), "e" + "\u0301".repeat(4));
  assert.equal([...shownName("🙂".repeat(500))].length, 120);
  assert.ok(shownName("x".repeat(1e6)).length <= 120);
});
