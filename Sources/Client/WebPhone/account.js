// Who is logged in, by number: the user's own ones, and which of them is called from. The gateway has them; which one is chosen is this device's.
import { formatted } from "./dialling.js";
import { t } from "./language.js";
import { $, app, device, show } from "./page.js";
import { write } from "./ui/elements.js";

let numbers = [];
const key = () => `trunkline.from.${app.phone?.user ?? ""}`;

/** Once for each telephone: asked at each login, for another token may have brought others. */
export function followNumbers(phone) {
  numbers = [];
  let wasOnline = false;
  phone.addEventListener("state", () => {
    const isOnline = phone.state === "online" && !!phone.user;
    const isNew = isOnline && !wasOnline;
    wasOnline = isOnline;
    if (isNew) askForNumbers(phone);
  });
}

/** Again where the gateway has refused the number that was called from: it is the user's no more. */
export async function askForNumbers(phone) {
  const own = await phone.ownNumbers().catch(() => null);
  if (phone !== app.phone || !own) return;
  numbers = own;
  app.render();
}

/** The number to call from; undefined: the gateway's first. One that is the user's no more does not count. */
export function callFrom() {
  const chosen = device.get(key());
  return numbers.length > 1 && numbers.includes(chosen) ? chosen : undefined;
}

/** One number is said, of several one is chosen. */
export function showNumbers() {
  show("own-number", numbers.length === 1);
  if (numbers.length === 1) write($("own-number"), t("dial.ownNumber", { number: formatted(numbers[0]) }));
  show("from-field", numbers.length > 1);
  const select = $("from"), text = JSON.stringify(numbers);
  if (select.dataset.shown !== text) {
    select.dataset.shown = text;
    select.replaceChildren(...numbers.map((number) => new Option(formatted(number), number)));
  }
  if (numbers.length > 1) select.value = callFrom() ?? numbers[0];
}

export function wireNumbers() {
  $("from").onchange = ({ target }) => {
    if (target.value === numbers[0]) device.remove(key()); else device.set(key(), target.value);
    app.render();
  };
}
