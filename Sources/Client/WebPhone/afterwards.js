// Digits for who answers: an extension, a conference's code. They are sent once the call is connected.

/** A comma, as telephones have it; and how long the gateway takes for a digit, with the gap behind it. */
const PAUSE = 2_000, DIGIT = 240;

/** `sent(digits)`: they are queued at the gateway. A call that is over gets none. */
export function sendAfterwards(call, then, sent, timers = globalThis) {
  const parts = then.match(/[,;]+|[\d*#]+/g) ?? [];
  const next = async () => {
    const part = parts.shift();
    if (!part || call.state === "ended") return;
    const isPause = /[,;]/.test(part);
    if (!isPause) await call.sendDigits(part).then(() => sent(part), () => parts.splice(0));
    timers.setTimeout(next, isPause ? PAUSE * part.length : DIGIT * part.length);
  };
  const begin = () => {
    if (call.phase !== "connected") return;
    call.removeEventListener("state", begin);
    next();
  };
  call.addEventListener("state", begin);
  begin();
}
