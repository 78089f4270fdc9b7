// Names of the user's directory for numbers, and for what is typed. The gateway has the directory, which may be large; the page asks for what it shows.
import { app } from "./page.js";

/** Numbers that are remembered, with their name or none. */
const REMEMBERED = 500;
const known = new Map();
let wanted = new Set(), isAsking = false, version = 0;

const isNumber = (text) => /^\+[1-9]\d{5,15}$/.test(text ?? "");

/** What the directory calls a number; null: nothing, or it is being asked. */
export function nameOf(number) {
  if (!isNumber(number) || !app.phone?.keepsDirectory) return null;
  if (known.has(number)) return known.get(number);
  if (wanted.size < REMEMBERED) wanted.add(number);
  ask();
  return null;
}

async function ask() {
  const { phone } = app;
  if (isAsking || !phone?.isOnline || wanted.size === 0) return;
  isAsking = true;
  const numbers = [...wanted].slice(0, 64);
  const names = await phone.names(numbers).catch(() => null);
  isAsking = false;
  if (phone !== app.phone) return;
  for (const number of numbers) wanted.delete(number);
  // a question without an answer is not repeated by every change of the page
  for (const number of numbers) known.set(number, names?.find(({ h }) => h === number)?.n ?? null);
  version++;
  while (known.size > REMEMBERED) known.delete(known.keys().next().value);
  app.render();
  ask();
}

/** Grows when a name may be another. */
export const namesVersion = () => version;

/** The directory is another, or another user has logged in. */
export function forgetNames() {
  version++;
  known.clear();
  wanted = new Set();
}
