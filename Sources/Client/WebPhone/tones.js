// Tones of a telephone, each on the device that it belongs to: the bell rings where the user wants to notice it, the others sound with the call.
import { app, device } from "./page.js";

const RINGER = "trunkline.ringer", VOLUME = "trunkline.ringVolume", USUAL = 50;

/** The id of the device that rings; null: the system's. */
export const ringer = () => device.get(RINGER);
export function chooseRinger(id) { if (id) device.set(RINGER, id); else device.remove(RINGER); }

/** 0 to 100; 50 is as loud as a page rings that nobody has set. */
export function ringVolume() {
  const text = device.get(VOLUME), volume = text === null ? USUAL : Number(text);
  return volume >= 0 && volume <= 100 ? volume : USUAL;
}
export const setRingVolume = (volume) => device.set(VOLUME, String(volume));

const loudspeaker = () => (app.phone?.loudspeakerFallback ? null : app.phone?.loudspeaker ?? null);

/** A device that is gone leaves the tone on the system's one: nobody misses a call for a headset in a drawer. */
function route(context, node, id) {
  if (!id || context.setSinkId) {
    node.connect(context.destination);
    if (id) context.setSinkId(id).catch(() => {});
    return null;
  }
  const stream = context.createMediaStreamDestination(), player = new Audio();
  node.connect(stream);
  player.srcObject = stream.stream;
  (player.setSinkId?.(id) ?? Promise.resolve()).catch(() => {}).finally(() => player.play().catch(() => {}));
  return player;
}

/** Two tones with a cadence in seconds; heard once the browser lets this page sound. */
class Tone {
  constructor(frequencies, { on, off, volume, sink = loudspeaker, scale = () => 1 }) {
    Object.assign(this, { frequencies, on, off, volume, sink, scale });
  }

  start() {
    if (this.context) return;
    this.context = new AudioContext();
    const gain = this.context.createGain();
    gain.gain.value = 0;
    this.player = route(this.context, gain, this.sink());
    const volume = this.volume * this.scale();
    for (const frequency of this.frequencies) {
      const oscillator = this.context.createOscillator();
      oscillator.frequency.value = frequency;
      oscillator.connect(gain);
      oscillator.start();
    }
    for (let at = 0; at < 120; at += this.on + this.off) {
      gain.gain.setTargetAtTime(volume, at, 0.01);
      gain.gain.setTargetAtTime(0, at + this.on, 0.01);
    }
    // A page that was not clicked may not sound yet: the first touch lets it.
    this.wake = () => {
      this.context?.resume();
      this.player?.play().catch(() => {});
    };
    for (const type of ["pointerdown", "keydown"]) addEventListener(type, this.wake);
  }

  /** And stops by itself. */
  startFor(seconds) {
    this.stop();
    this.start();
    this.timer = setTimeout(() => this.stop(), 1000 * seconds);
  }

  stop() {
    if (!this.context) return;
    clearTimeout(this.timer);
    for (const type of ["pointerdown", "keydown"]) removeEventListener(type, this.wake);
    this.context.close();
    this.player?.pause();
    this.player = null;
    this.context = null;
  }
}

export const chime = new Tone([587, 740], { on: 1, off: 2, volume: 0.06, sink: ringer, scale: () => ringVolume() / USUAL });
/** Call waiting: beside a voice, so short and soft. */
export const knock = new Tone([440], { on: 0.3, off: 3.7, volume: 0.03 });
/** Of an exchange (ITU-T E.180): the other side is busy, or no way leads to it. */
export const busy = new Tone([480, 620], { on: 0.5, off: 0.5, volume: 0.03 });
export const congestion = new Tone([480, 620], { on: 0.25, off: 0.25, volume: 0.03 });
export const ringback = new Tone([440, 480], { on: 2, off: 4, volume: 0.03 });
/** For who tries a loudspeaker. */
export const sample = new Tone([523, 659], { on: 0.4, off: 0.2, volume: 0.06 });
