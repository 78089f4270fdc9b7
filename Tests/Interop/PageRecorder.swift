/// What a page in Chromium hears, sample by sample at 8 kHz.
enum PageRecorder {
  /// Defines `recordStream(stream, take)`, which hands over the samples of a stream as integers, some milliseconds at a time. They are
  /// taken on the browser's audio thread and wait for the page's: a page that is late (its own script, or another process) loses
  /// none. A ScriptProcessorNode runs on the page's thread, and what it missed counted as the gateway's. The page needs
  /// `Page.setBypassCSP`, for it loads a script of the test.
  static let script = """
    { const module = `registerProcessor("recorder", class extends AudioWorkletProcessor {
        constructor() { super(); this.samples = []; }
        process([channels]) {
          const block = channels[0] ?? new Float32Array(128);
          for (const x of block) this.samples.push(Math.max(-32768, Math.min(32767, Math.round(x * 32767))));
          if (this.samples.length >= 1024) { this.port.postMessage(this.samples); this.samples = []; }
          return true; } });`;
      const context = new AudioContext({ sampleRate: 8000 });
      // before the first call, so that none of its words is missed
      const loaded = context.audioWorklet.addModule(URL.createObjectURL(new Blob([module], { type: "text/javascript" })));
      window.recordStream = async (stream, take) => {
        await loaded;
        const tap = new AudioWorkletNode(context, "recorder");
        tap.port.onmessage = ({ data }) => take(data);
        context.createMediaStreamSource(stream).connect(tap); tap.connect(context.destination); }; }
    """
}
