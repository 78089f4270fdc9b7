import { read, filled, difference } from "./vectors.mjs";
let ok = 0, bad = 0;
for (const name of ["sessions", "replay", "races", "reasons"]) for (const one of read(name)) {
  if (one.not.browser) continue;
  for (const row of one.rows.length ? one.rows.map((r) => filled(one, r)) : [one]) {
    const d = await difference(row);
    if (d) { bad++; console.log(name + ":" + d + "\n"); } else ok++;
  }
}
console.log(ok, bad);
