// What the dialler makes of what was typed or pasted: one number, what is sent after the answer, or why it is neither. The number itself is the
// gateway's to read, as in the user's country (docs/operate/numbers.md); here is only decided what of a text it is.

const LONGEST_TEXT = 250, LONGEST = 32, LONGEST_INTERNATIONAL = 17, LONGEST_THEN = 64;
/** A number that stands beside another one has at least so many digits, so that 030/1234567 is one. */
const WHOLE = 6;
const KEYS = ["abc", "def", "ghi", "jkl", "mno", "pqrs", "tuv", "wxyz"];
const digitsOf = (text) => text.replace(/\D/g, "");

/** Letters as on the keypad (ITU-T E.161). */
const key = (letter) => String(2 + KEYS.findIndex((letters) => letters.includes(letter.toLowerCase())));

/** One spelling of digits, signs and blanks; marks that only turn the text are left out. */
const plain = (text) => text.normalize("NFKC").replace(/[\u0660-\u0669\u06F0-\u06F9]/g, (digit) => String(digit.codePointAt(0) & 15))
  .replace(/[\u00AD\u200B-\u200F\u2060-\u206F\u202A-\u202E\uFEFF]/g, "").replace(/[\u2010-\u2015\u2212\u30FC]/g, "-").replace(/[^\S\n]+/g, " ").trim();

const LABEL = /^(?:tel(?:efon|éfono|ephone|\.)?|phone|fon|fax|mobile?|mobil|handy|mob|cell|móvil|nummer|number|número|numéro)\s*[.:]*\s*(?=[\d+(*#])/i;
const EXTENSION = /(?:[ ,;]*(?:\b|(?<=\d))(?:extension|extensión|extn|ext|xtn|durchwahl|dw|nebenstelle|nst|poste|anexo|int|доб|x)\s*[.:=]*\s*| #)(.*)$/iu;
const PAUSES = /^([^,;pw]*?\d[^,;pw]*)([,;pw].*)$/i;
const BETWEEN = /\n|\||\s\/\s|\b(?:or|oder|ou|o|and|und|et|y)\b|[,;](?=\s*[+0(])/i;

const refuse = (refusal, more) => ({ refusal, ...more });

/** Digits and pauses; a comma waits two seconds, a semicolon too, for this page cannot ask meanwhile. Null: not to be read. */
function afterwards(text) {
  const sent = text.toLowerCase().replace(/[\s.-]/g, "").replaceAll("p", ",").replaceAll("w", ";").replace(/[,;]+$/, "");
  return sent.length <= LONGEST_THEN && /^[,;]*[\d*#]+(?:[,;]+[\d*#]+)*$/.test(sent) ? sent : null;
}

function areTwo(text) {
  const wholes = text.split(BETWEEN).filter((part) => digitsOf(part).length >= WHOLE);
  if (wholes.length > 1) return true;
  if ((text.match(/\+/g)?.length ?? 0) > 1 && text.split("+").filter((part) => digitsOf(part).length >= WHOLE).length > 1) return true;
  const [one, other] = text.split("/").map((part) => digitsOf(part).length);
  return text.split("/").length === 2 && one > WHOLE && other > WHOLE;
}

/** Addresses of other kinds; null: it may be a number. A SIP address of this host is a user or a number of this gateway. */
function address(text, host) {
  const sip = /^sips?:(?:([^@;?]*)@)?([^@;?:>]*)/i.exec(text);
  if (sip) {
    const user = decoded(sip[1] ?? "");
    if (/^\+?[\d*#().-]{2,}$/.test(user)) return { text: user };
    const isHere = !!host && sip[2].toLowerCase() === host.toLowerCase() && /^[^\s\p{Cc}]{1,128}$/u.test(user);
    return isHere ? { found: { number: { k: "generic", h: user }, shown: user, then: "" } } : refuse("sip");
  }
  if (/^mailto:/i.test(text) || /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text)) return refuse("email");
  if (/^(?!(?:tel|callto):)[a-z][a-z0-9+.-]*:(?:\/\/|[^\s\d+(])/i.test(text) || /^www\./i.test(text) || /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:[/?#:]|$)/i.test(text)) return refuse("address");
  return null;
}

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

/** The parameters of a `tel:` URI (RFC 3966): an extension is taken out, the others are the gateway's. */
function parameters(text) {
  const [number, ...rest] = text.split(";"), kept = [];
  let then = "";
  for (const one of rest) {
    const [name, value = ""] = one.split("=");
    if (!/^\s*ext\s*$/i.test(name)) kept.push(one.trim()); else if (!(then = afterwards(value) ?? "")) return refuse("extension");
  }
  return { number, kept: kept.filter((one) => /^[a-z-]+=[!-:<-~]*$/i.test(one)).map((one) => `;${one}`).join(""), then: then && `,${then}` };
}

/**
 * `{number, shown, then}`: what to call, how it is shown before, and what is sent after the answer (a comma is a pause); or `{refusal}`, a key of
 * `dial.refusal.…`, with what it names. `host`: of this page.
 */
export function readNumber(input, host = globalThis.location?.hostname ?? "") {
  if (input.length > LONGEST_TEXT) return refuse("long");
  const unwrapped = plain(input).replace(/^<(tel:[^<>]*|sips?:[^<>]*)>$/i, "$1");
  const other = address(unwrapped, host);
  if (other?.refusal || other?.found) return other.found ?? other;
  const isLink = /^(?:tel|callto):/i.test(unwrapped);
  let text = other?.text ?? (isLink ? decoded(unwrapped.replace(/^\w+:\/*/, "")) : unwrapped.replace(LABEL, "")), kept = "", then = "";
  if (/;\s*[a-z-]+\s*=/i.test(text)) {
    const found = parameters(text);
    if (found.refusal) return found;
    ({ number: text, kept, then } = found);
  }
  if (areTwo(text)) return refuse("two");
  const mark = digitsOf(text.slice(0, text.search(EXTENSION))).length >= 3 && EXTENSION.exec(text);
  if (mark && (/\d/.test(mark[1]) || !/^\s*(?:x|int)/i.test(mark[0]))) {
    const sent = afterwards(mark[1]);
    // an x, or what begins like a mark, may be a letter of the number
    if (sent === null && !isWord(mark)) return refuse("extension");
    if (sent !== null) [text, then] = [text.slice(0, mark.index), `,${sent}`];
  }
  const pauses = !then && PAUSES.exec(text);
  if (pauses && !/\p{L}/u.test(pauses[2].replace(/[pw]/gi, "")) || (pauses && /^[,;]/.test(pauses[2]))) {
    const sent = afterwards(pauses[2]);
    if (sent === null) { if (digitsOf(pauses[2])) return refuse("extension"); } else [text, then] = [pauses[1], sent.replace(/^;/, ",")];
  }
  return whole(text.replace(/[,;\s]+$/, ""), kept, then);
}

/** Letters of a vanity number behind a mark: 1 800 EXTREME. */
const isWord = (mark) => /^[ ]*[a-z]+$/i.test(mark[0].replace(/[\s-]/g, "")) && /^(?:x|ext|int|dw)/i.test(mark[0].trim()) && !/[.:]/.test(mark[0]) && /^[a-z]/i.test(mark[1]);

function whole(text, kept, then) {
  const letters = text.match(/\p{L}/gu) ?? [], first = text.search(/\p{L}/u);
  if (letters.length) {
    if (digitsOf(text.slice(0, first)).length < 3) return refuse("text");
    if (letters.length < 3 || !/^[a-z]*$/i.test(letters.join("")) || /[a-z]{3,}[^a-z]*\d{4,}/i.test(text)) return refuse("letters");
    // behind a whole number stands a word, not a part of it
    if (digitsOf(text.slice(0, first)).length > 7 && /\s/.test(text[first - 1] ?? "")) return refuse("letters");
  }
  const shown = text.replace(/[a-z]/gi, key), odd = [...shown].find((one) => !/[\d+*#() ./~\[\]-]/.test(one));
  if (odd) return refuse(/[<>]/.test(odd) ? "text" : "character", { character: odd.trim() || "?" });
  const signs = shown.replace(/\(0\)/g, "⓪").replace(/[^\d+*#⓪]/g, "").replaceAll("⓪", "(0)");
  const digits = digitsOf(signs);
  if (!digits) return refuse("empty");
  if (signs.lastIndexOf("+") > 0 || (signs[0] === "+" && /[*#]/.test(signs))) return refuse("character", { character: signs.lastIndexOf("+") > 0 ? "+" : /[*#]/.exec(signs)[0] });
  const count = signs.replace(/[+()]/g, "").length;
  if (count > (signs[0] === "+" ? LONGEST_INTERNATIONAL : LONGEST)) return refuse("long");
  if (count < 2) return refuse("short");
  const number = signs.startsWith("+") ? signs : signs.replaceAll("(0)", "0");
  return { number: number + kept, shown: number === shown ? formatted(number) : shown, then };
}

const TWO_DIGITS = new Set("20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98".split(" "));
/** Plans in which every number has the same groups. */
const GROUPS = { 1: [3, 3, 4], 33: [1, 2, 2, 2, 2], 34: [3, 3, 3] };

/** E.164 with its country code apart (ITU-T E.164: one digit, those of two, else three), and grouped where the country has one way to do it; anything else as it is. */
export function formatted(number) {
  if (!/^\+[1-9]\d{3,16}$/.test(number)) return number;
  const code = /^\+[17]/.test(number) ? number[1] : TWO_DIGITS.has(number.slice(1, 3)) ? number.slice(1, 3) : number.slice(1, 4);
  let rest = number.slice(1 + code.length);
  if (!rest) return number;
  const groups = GROUPS[code];
  if (groups && groups.reduce((sum, size) => sum + size) === rest.length) {
    rest = groups.reduce(([done, left], size) => [[...done, left.slice(0, size)], left.slice(size)], [[], rest])[0].join(" ");
  }
  return `+${code} ${rest}`;
}
