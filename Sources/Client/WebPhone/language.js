// Which language the page speaks, and its texts: a table for each, with the same keys (texts-en.js). A value stands in a text where its name is in braces.
import { branded } from "./ui/brand.js";
const TABLES = { en: () => import("./texts-en.js"), de: () => import("./texts-de.js"), fr: () => import("./texts-fr.js"), es: () => import("./texts-es.js") };
export const LANGUAGES = Object.keys(TABLES);

let table = {}, plurals = new Intl.PluralRules("en");
/** The language of the texts with the region that the user has, for dates and numbers: "de-AT". */
export let locale = "en";

const base = (tag) => tag.toLowerCase().split("-")[0];
const isValid = (tag) => { try { return Intl.getCanonicalLocales(tag).length > 0; } catch { return false; } };

/** The first of the user's languages that there is a table for; English else. A region that the browser does not know is left out. */
export function chosenLanguage(wanted) {
  const tag = (wanted ?? []).find((one) => typeof one === "string" && isValid(one) && Object.hasOwn(TABLES, base(one)));
  return tag ? { language: base(tag), locale: tag } : { language: "en", locale: "en" };
}

/** From now on. A table that does not come leaves the page in English, which is the only one that must. */
export async function speak(wanted) {
  const chosen = chosenLanguage(wanted);
  const english = (await TABLES.en()).default;
  const own = chosen.language === "en" ? english : await TABLES[chosen.language]().then((module) => module.default, () => null);
  table = own ? { ...english, ...own } : english;
  locale = own ? chosen.locale : "en";
  plurals = new Intl.PluralRules(locale);
  if (globalThis.document?.documentElement) Object.assign(document.documentElement, { lang: own ? chosen.language : "en", dir: "ltr" });
}

export const hasText = (key) => Object.hasOwn(table, key);

/** The text of a key. A name that is written from right to left does not turn the words around it. */
export function t(key, values = {}) {
  const entry = table[key] ?? key; // a text that is missing must not stop a call
  const text = typeof entry === "string" ? entry : entry[plurals.select(values.count)] ?? entry.other;
  return branded(text).replace(/\{(\w+)\}/g, (_, name) => isolated(String(values[name] ?? "")));
}

/** Marks that turn the text around them, and signs without width. */
const MARKS = /[\u200B\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/g;
/** Scripts from right to left, and what hides in a name to turn the text behind it. */
const TURNS = /[\u0590-\u08FF\u200E\u200F\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;

/** First strong isolate and its end around it (Unicode UAX #9). */
export const isolated = (text) => (TURNS.test(text) ? `\u2068${text}\u2069` : text);

const LONGEST_NAME = 120;
/** A name as it can be shown: without marks that turn the text around it, on one line, with at most four marks above a letter, and not without end. */
export function shownName(text) {
  const plain = String(text).replace(MARKS, "").replace(/[\p{Cc}\u2028\u2029]+/gu, " ").replace(/(\p{M}{4})\p{M}+/gu, "$1").trim();
  const letters = [...plain.slice(0, 4 * LONGEST_NAME)];
  return letters.length > LONGEST_NAME ? `${letters.slice(0, LONGEST_NAME - 1).join("")}…` : plain;
}

export const number = (value, options) => new Intl.NumberFormat(locale, options).format(value);
export const percent = (value) => number(value, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
export const milliseconds = (value) => number(Math.round(value), { style: "unit", unit: "millisecond", unitDisplay: "short" });

/** The time today, else the day and the time, with the year where it is another one. Nothing where it is no time. */
export function when(at, now = new Date()) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const time = { hour: "2-digit", minute: "2-digit" }, isToday = date.toDateString() === now.toDateString();
  const year = date.getFullYear() === now.getFullYear() ? {} : { year: "numeric" };
  return new Intl.DateTimeFormat(locale, isToday ? time : { day: "numeric", month: "short", ...year, ...time }).format(date);
}

/** The texts that stand in the page's own markup. */
export function fillPage(root = document) {
  if (root === document) {
    document.title = t("appTitle");
    // what is installed has the page's language, too
    const { lang } = document.documentElement, manifest = document.querySelector('link[rel="manifest"]');
    if (manifest && lang !== "en") manifest.href = `manifest-${lang}.webmanifest`;
  }
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  for (const element of root.querySelectorAll("[data-t-placeholder]")) element.placeholder = t(element.dataset.tPlaceholder);
}

await speak(globalThis.navigator?.languages);
if (globalThis.document?.documentElement) fillPage();
