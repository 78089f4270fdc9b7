// What a browser gives a phone, each part of which an app may give instead.

/** What the browser gives, unless the app gives another, or null for none. Nothing is touched before a Phone is made. */
export function seamsOf(options) {
  const g = globalThis, seams = { MessageChannel: g.MessageChannel };
  const take = (from, ...names) => { for (const name of names) seams[name] = options[name] === undefined ? from?.[name] : options[name]; };
  const random = options.random ?? Math.random;
  take(g, "WebSocket", "RTCPeerConnection", "MediaStream", "document");
  take(g.navigator, "mediaDevices", "permissions", "connection");
  take({
    window: g.document && g, random, player, fetch: (...all) => g.fetch(...all), uuid: () => g.crypto?.randomUUID?.() ?? uuid(random),
    // Unix time that no clock change moves
    clock: { now: () => g.performance.timeOrigin + g.performance.now(), setTimeout: (f, ms) => g.setTimeout(f, ms), clearTimeout: (t) => g.clearTimeout(t) },
    get storage() { try { return g.localStorage; } catch { return null; } },
  }, "window", "random", "player", "fetch", "uuid", "clock", "storage");
  /** Adds a listener; the result removes it. */
  seams.listen = (target, type, f) => {
    target.addEventListener(type, f);
    return () => target.removeEventListener(type, f);
  };
  return seams;
}

/** For pages that are no secure context, and old Nodes. */
const uuid = (random) => "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, () => Math.floor(random() * 16).toString(16));

/** An audio element. */
function player() {
  const audio = new globalThis.Audio();
  return {
    play(stream) { audio.srcObject = stream; return audio.play(); },
    stop() { audio.pause(); audio.srcObject = null; },
    setSinkId: audio.setSinkId && ((id) => audio.setSinkId(id)),
  };
}
