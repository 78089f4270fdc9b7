// Levels in dBFS ten times a second, and loss, jitter, buffer and round trip once a second.

/** `show(levels)` and `tell(text)` until `stop()`. `peaks` are the highest levels so far. */
export function startMeters(call, show, tell) {
  const context = new AudioContext();
  context.resume();
  const tap = () => Object.assign(context.createAnalyser(), { fftSize: 1024 });
  const nodes = { in: tap(), out: tap() };
  const streams = {};
  const samples = new Float32Array(1024);
  const peaks = { in: -90, out: -90 };

  /** A stream may come late: the microphone of a call that was taken up again. */
  function connect(name, stream) {
    if (!stream || streams[name] === stream) return;
    streams[name] = stream;
    context.createMediaStreamSource(stream).connect(nodes[name]);
  }

  const levels = setInterval(() => {
    connect("in", call.remoteStream);
    connect("out", call.localStream);
    const now = {};
    for (const [name, node] of Object.entries(nodes)) {
      node.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
      now[name] = power > 0 ? 10 * Math.log10(power) : -90;
      peaks[name] = Math.max(peaks[name], now[name]);
    }
    show(now);
  }, 100);

  const numbers = () => {
    const { loss, jitterMs, bufferMs, roundTripMs } = call.statistics;
    tell(`loss ${(100 * loss).toFixed(1)} % · jitter ${jitterMs} ms · buffer ${bufferMs} ms`
      + (roundTripMs === null ? "" : ` · round trip ${roundTripMs} ms`));
  };
  call.addEventListener("statistics", numbers);

  return { peaks, stop() { clearInterval(levels); call.removeEventListener("statistics", numbers); context.close(); } };
}
