// Levels in dBFS ten times a second.

/** `show({in, out})` until `stop()`. `peaks` are the highest levels so far. */
export function startMeters(call, show) {
  const context = new AudioContext();
  context.resume();
  const tap = () => Object.assign(context.createAnalyser(), { fftSize: 1024 });
  const nodes = { in: tap(), out: tap() };
  const sources = {};
  const samples = new Float32Array(1024);
  const peaks = { in: -90, out: -90 };

  /** A stream may come late, and be another later: a microphone chosen in the call, a new path. */
  function connect(name, stream) {
    if (!stream || sources[name]?.mediaStream === stream) return;
    sources[name]?.disconnect();
    sources[name] = context.createMediaStreamSource(stream);
    sources[name].connect(nodes[name]);
  }

  const timer = setInterval(() => {
    connect("in", call.remoteStream);
    connect("out", call.localStream);
    const now = {};
    for (const [name, node] of Object.entries(nodes)) {
      now[name] = read(node, samples);
      peaks[name] = Math.max(peaks[name], now[name]);
    }
    show(now);
  }, 100);

  return { call, peaks, stop() { clearInterval(timer); context.close(); } };
}

/** `show(level)` of one stream until `stop()`. */
export function levelOf(stream, show) {
  const context = new AudioContext(), node = Object.assign(context.createAnalyser(), { fftSize: 1024 }), samples = new Float32Array(1024);
  context.resume();
  context.createMediaStreamSource(stream).connect(node);
  const timer = setInterval(() => show(read(node, samples)), 100);
  return { stop() { clearInterval(timer); context.close(); } };
}

function read(node, samples) {
  node.getFloatTimeDomainData(samples);
  const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
  return power > 0 ? 10 * Math.log10(power) : -90;
}
