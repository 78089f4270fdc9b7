// A sentence in view until it no longer holds, with a button where a click helps.
import { announce, announced } from "./live.js";
import { write } from "./elements.js";

/**
 * Over an element with a `p` and a `button`: `notice(text, act)` shows the text and announces it, an empty text hides it. `act` is
 * `{label, run}`.
 */
export function noticeIn(element) {
  const [words, button] = [element.querySelector("p"), element.querySelector("button")];
  let run = null;
  button.onclick = () => run?.();
  return (text, act = null) => {
    run = act?.run ?? null;
    button.hidden = !act;
    if (act) write(button, act.label);
    const before = words.textContent;
    if (before === text) return;
    words.textContent = text;
    element.hidden = !text;
    // what no longer holds is not left for who reads the page aloud
    if (text || announced() === before) announce(text);
  };
}
