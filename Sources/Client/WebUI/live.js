// What a screen reader speaks. Three regions, so that none overwrites another: a polite one for what changed, one for what is over, which often comes in the
// same step, and an assertive one for what must be known at once. They are in the page before they have a text, for a region that comes with its text is not spoken.
import { $, make, write } from "./elements.js";

const region = (id, politeness) => {
  if (!$(id)) document.body.append(make("p", { id, className: "unseen", role: politeness === "assertive" ? "alert" : "status" }));
  $(id).ariaLive = politeness;
  $(id).ariaAtomic = "true";
  return $(id);
};
const polite = region("announce", "polite"), over = region("announce-over", "polite"), assertive = region("alert", "assertive");

/** Spoken after what is being spoken; the same text is spoken once. */
export const announce = (text) => write(polite, text);

/** The same of something that is over, beside what the rest of the page announces. An empty text makes room for the same one again. */
export const announceOver = (text) => write(over, text);

/** What is announced now. */
export const announced = () => polite.textContent;

/** Spoken at once, in the middle of a sentence too: a second call, a call that was lost. An empty text takes it back. */
export const interrupt = (text) => write(assertive, text);
