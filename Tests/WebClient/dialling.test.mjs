// What the dialler of the web phone makes of what was typed or pasted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatted, readNumber } from "../../Sources/Client/WebPhone/dialling.js";

const read = (text) => { const { number, then, refusal } = readNumber(text, "phone.example.com"); return refusal ? `refused: ${refusal}` : then ? `${number} then ${then}` : number; };

for (const [text, expected] of [
  // what people write between digits stays for the gateway, which reads it as in the user's country
  ["+49 (0)30 1234567", "+49(0)301234567"], ["030/123 45-67", "0301234567"], ["(030) 1234567", "(030)1234567".replace(/[()]/g, "")], ["tel:+49-30-1234567", "+49301234567"],
  ["TEL:030.1234567", "0301234567"], ["callto:+1 555 123 4567", "+15551234567"], ["０３０１２３４５６７", "0301234567"], ["＋４９ ３０ １２３４５６７", "+49301234567"],
  ["\u202A+49 30 1234567\u202C", "+49301234567"], ["٠٣٠ ١٢٣٤٥٦٧", "0301234567"], ["+49\u00a030\u20111234567", "+49301234567"], ["  112 ", "112"], ["*21#", "*21#"], ["#31#0301234567", "#31#0301234567"],
  ["11", "11"], ["tel:%2B4930123456", "+4930123456"], ["sip:+4930123456@carrier.example;user=phone", "+4930123456"], ["<tel:+4930123456>", "+4930123456"],
  ["tel:123456;phone-context=+4930", "123456;phone-context=+4930"],
  // letters by the keypad's rule
  ["1-800-FLOWERS", "18003569377"], ["1 800 go fedex", "18004633339"], ["0800 REISE", "080073473"], ["+1 (800) ABC-DEFG", "+18002223334"], ["1800pqrswxyz", "180077779999"],
  // extensions and pauses
  ["030 1234567 ext. 12", "0301234567 then ,12"], ["030 1234567 x12", "0301234567 then ,12"], ["030 1234567 x 12", "0301234567 then ,12"], ["030 1234567 #12", "0301234567 then ,12"],
  ["+1 555 123 4567 extension 9", "+15551234567 then ,9"], ["0301234567,,12#", "0301234567 then ,,12#"], ["+15551234567,,123456789#,,7", "+15551234567 then ,,123456789#,,7"],
  ["030 1234567;12", "0301234567 then ,12"], ["tel:+4930123456;ext=12", "+4930123456 then ,12"], ["tel:+4930123456;ext=12;phone-context=x", "+4930123456;phone-context=x then ,12"],
  ["030 1234567 Durchwahl 12", "0301234567 then ,12"], ["030 1234567 Dw. 12", "0301234567 then ,12"], ["030 1234567 DW: 12", "0301234567 then ,12"], ["01 23 45 67 89 poste 12", "0123456789 then ,12"],
  ["912 345 678 extensión 12", "912345678 then ,12"], ["912345678 anexo 12", "912345678 then ,12"], ["1-800-FLOWERS ext 12", "18003569377 then ,12"], ["+1 555 123 4567 p12w3", "+15551234567 then ,12;3"],
  ["+1 555 123 4567,12,", "+15551234567 then ,12"],
  // what cannot be one number
  ["", "refused: empty"], ["   ", "refused: empty"], ["()-", "refused: empty"], ["+", "refused: empty"],
  ["030 123456 / 030 654321", "refused: two"], ["0301234567 oder 0307654321", "refused: two"], ["030123456\n030654321", "refused: two"], ["+49 30 123456 +49 30 654321", "refused: two"],
  ["030 1234567, 030 7654321", "refused: two"], ["030 1234567; +49 30 7654321", "refused: two"], ["030 1234567 | 030 7654321", "refused: two"], ["0301234567/0307654321", "refused: two"],
  ["+49301234567,+49307654321", "refused: two"], ["030 1234567 and 030 7654321", "refused: two"],
  ["Ada", "refused: text"], ["Ada Lovelace", "refused: text"], ["call me at 030 1234567", "refused: text"], ["Tel. 030 1234567", "0301234567"], ["Phone: +1 555 123 4567", "+15551234567"], ["Fax: 030 1234567", "0301234567"],
  ["30 Leute", "refused: text"], ["1 a", "refused: text"], ["ALARM", "refused: text"], ["0301234567 ab", "refused: letters"], ["030 1234567 heute", "refused: letters"],
  ["https://example.com/1234567", "refused: address"], ["www.example.com", "refused: address"], ["example.com/030123456", "refused: address"], ["javascript:alert(1)", "refused: address"], ["file:///etc/passwd", "refused: address"],
  ["ada@example.com", "refused: email"], ["mailto:ada@example.com", "refused: email"], ["12345@example.com", "refused: email"],
  ["sip:ada@elsewhere.example", "refused: sip"], ["sips:ada@elsewhere.example;transport=tls", "refused: sip"], ["sip:elsewhere.example", "refused: sip"],
  ["5", "refused: short"], ["+1", "refused: short"], ["1".repeat(33), "refused: long"], ["+4930" + "1".repeat(20), "refused: long"], ["x".repeat(1e6), "refused: long"], ["1".repeat(1e6), "refused: long"],
  ["030 12+34567", "refused: character"], ["030 123€4567", "refused: character"], ["030 123😀4567", "refused: character"], ["030\u00001234567", "refused: character"], ["<b>030</b>", "refused: text"],
  ["0301234567 ext. zwölf", "refused: extension"], ["0301234567 Durchwahl", "refused: extension"], ["tel:+4930123456;ext=", "refused: extension"], ["0301234567,,1a", "refused: extension"],
  ["0301234567," + "1".repeat(65), "refused: extension"],
]) {
  test(`${JSON.stringify(text.length > 60 ? `${text.slice(0, 20)}… (${text.length})` : text)} is ${expected}`, () => assert.equal(read(text), expected));
}

test("a user of this gateway is called by a SIP address of this host, and by no other", () => {
  assert.deepEqual(readNumber("sip:bob@phone.example.com", "phone.example.com"), { number: { k: "generic", h: "bob" }, shown: "bob", then: "" });
  assert.equal(readNumber("sip:bob@PHONE.example.com:5061;transport=tls", "phone.example.com").number.h, "bob");
  assert.equal(readNumber("sip:bob@phone.example.com.evil.example", "phone.example.com").refusal, "sip");
});

test("a number is shown as it will be dialled, and grouped only where the plan is certain", () => {
  for (const [number, expected] of [
    ["+18003569377", "+1 800 356 9377"], ["+33123456789", "+33 1 23 45 67 89"], ["+34912345678", "+34 912 345 678"], ["+49301234567", "+49 301234567"], ["+4312345", "+43 12345"],
    ["+35312345678", "+353 12345678"], ["+79161234567", "+7 9161234567"], ["+882123456789", "+882 123456789"], ["+1555", "+1 555"], ["+1876", "+1 876"], ["0301234567", "0301234567"], ["112", "112"], ["alice", "alice"],
    ["+", "+"], ["", ""], ["+0123", "+0123"], ["+999123", "+999 123"], ["+49 30 1", "+49 30 1"], ["+1.234", "+1.234"],
  ]) assert.equal(formatted(number), expected, number);
  assert.equal(readNumber("1-800-FLOWERS").shown, "1-800-3569377");
  assert.equal(readNumber("+18003569377").shown, "+1 800 356 9377");
  assert.equal(readNumber("030/123 45-67 ext. 12").shown, "030/123 45-67");
  assert.equal(readNumber("\u202E030 1234567").shown, "030 1234567");
});

test("ten thousand texts by chance are numbers or refused, and never throw nor dial what was not typed", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const letters = [..."0123456789+*#()-./ ,;xXeEaAtelp:@w\n\u202e٣é😀%\u0000"];
  for (let n = 0; n < 10_000; n++) {
    const text = Array.from({ length: random(30) }, () => letters[random(letters.length)]).join("");
    const found = readNumber(text);
    if (found.refusal) continue;
    assert.match(found.number, /^[+\d*#][\d*#()]*(;[^;]+)*$/, JSON.stringify(text));
    assert.match(found.then, /^([,;]*[\d*#]+)*$/, JSON.stringify(text));
  }
});
