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
    connect("out", call.microphone);
    const now = {};
    for (const [name, node] of Object.entries(nodes)) {
      node.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
      now[name] = power > 0 ? 10 * Math.log10(power) : -90;
      peaks[name] = Math.max(peaks[name], now[name]);
    }
    show(now);
  }, 100);

  const numbers = setInterval(async () => {
    if (call.state !== "connected" || call.pc.signalingState === "closed") return;
    const stats = [...(await call.pc.getStats()).values()];
    const inbound = stats.find((s) => s.type === "inbound-rtp");
    const pair = stats.find((s) => s.type === "candidate-pair" && s.nominated);
    if (!inbound) return;
    const total = inbound.packetsReceived + inbound.packetsLost;
    const loss = total ? (100 * inbound.packetsLost) / total : 0;
    const delay = inbound.jitterBufferEmittedCount ? (1000 * inbound.jitterBufferDelay) / inbound.jitterBufferEmittedCount : 0;
    tell(`loss ${loss.toFixed(1)} % · jitter ${(inbound.jitter * 1000).toFixed(0)} ms · buffer ${delay.toFixed(0)} ms`
      + (pair?.currentRoundTripTime !== undefined ? ` · round trip ${(pair.currentRoundTripTime * 1000).toFixed(0)} ms` : ""));
  }, 1000);

  return { peaks, stop() { clearInterval(levels); clearInterval(numbers); context.close(); } };
}
