// A page that is left open outlives an upgrade of its gateway: then it says so, and loads the new one when its user wants.
import { app } from "./page.js";

let first = null, isNew = false;

/** Each time the gateway is reached: `version` names the files that it serves. A gateway without it says nothing. */
export async function askVersion() {
  const text = await fetch("version", { cache: "no-store" }).then((answer) => (answer.ok ? answer.text() : ""), () => "");
  if (!/^[0-9a-f]{16}$/.test(text)) return;
  first ??= text;
  isNew = text !== first;
  app.render();
}

export const isOutdated = () => isNew;
