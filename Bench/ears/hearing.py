"""What was heard of what was said: where each part of a passage is in a recording, when it was heard, and its PESQ."""
import ctypes, ctypes.util
import numpy as np
from pesq import pesq

RATE = 8000
WINDOW, HOP = 3840, 1920  # samples: long enough for speech to be found by its waveform, short enough to see delay move


def decimated(samples, rate):
    """At 8 kHz, without shift."""
    if rate == RATE:
        return samples.astype(np.float64)
    taps = np.arange(-(24 * rate // RATE), 24 * rate // RATE + 1)
    kernel = np.sinc(taps * RATE / rate * 0.95) * np.hanning(len(taps))
    smooth = np.convolve(samples, kernel / kernel.sum(), "same")
    return np.interp(np.arange(len(smooth) * RATE // rate) * (rate / RATE), np.arange(len(smooth)), smooth)


def places(said, heard, first=0, last=None):
    """Pairs (sample of what was said, sample of what was heard, likeness), for windows in which somebody speaks."""
    if len(heard) < RATE:
        return np.zeros((0, 3))
    said, heard = said.astype(np.float64), heard.astype(np.float64)
    size = 1 << int(np.ceil(np.log2(len(said) + len(heard))))
    whole = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(said, size)), size)
    coarse = int(np.argmax(whole))
    coarse = coarse - size if coarse > size // 2 else coarse
    found, reach = [], 3200
    loud = np.sqrt(np.mean(said**2)) * 0.3
    for start in range(first, (last or len(said)) - WINDOW, HOP):
        part = said[start : start + WINDOW]
        if np.sqrt(np.mean(part**2)) < loud:
            continue
        low = start + coarse - reach
        area = heard[max(0, low) : low + 2 * reach + WINDOW]
        if len(area) < 2 * WINDOW:
            continue
        power = np.convolve(area**2, np.ones(WINDOW), "valid")
        likeness = np.correlate(area, part, "valid") / np.sqrt(np.maximum(power, 1) * np.sum(part**2))
        best = int(np.argmax(likeness))
        if likeness[best] > 0.6 and 0 < best < len(likeness) - 1:
            left, peak, right = likeness[best - 1 : best + 2]
            bend = left - 2 * peak + right
            shift = 0.5 * (left - right) / bend if bend else 0
            found.append((start, max(0, low) + best + shift, peak))
    return np.array(found).reshape(-1, 3)


def score(said, heard, segments, found):
    """PESQ-NB of each segment (first sample, last sample); 1 where nothing was heard."""
    scores = []
    for first, last in segments:
        inside = found[(found[:, 0] >= first) & (found[:, 0] < last)]
        if not len(inside):
            scores.append(1.0)
            continue
        offset = int(np.median(inside[:, 1] - inside[:, 0]))
        low, high = first + offset - 1600, last + offset + 1600
        part = np.zeros(high - low)
        kept = heard[max(0, low) : max(0, high)]
        part[max(0, -low) : max(0, -low) + len(kept)] = kept
        reference = np.concatenate([np.zeros(1600), said[first:last], np.zeros(1600)])
        try:
            scores.append(round(float(pesq(RATE, reference.astype(np.int16), np.clip(part, -32768, 32767).astype(np.int16), "nb")), 3))
        except Exception:  # no utterance was found: nothing was heard
            scores.append(1.0)
    return scores


def delays(found, mouth, ear):
    """Milliseconds from mouth to ear of each window; `mouth(sample)` and `ear(sample)` give seconds."""
    return np.array([1000 * (ear(there) - mouth(here)) for here, there, _ in found])


def spread(values):
    """How far a delay moves in a call: without the ends, which a window at a word's edge may make."""
    return float(np.percentile(values, 95) - np.percentile(values, 5)) if len(values) > 4 else float("nan")


class Opus:
    """libopus' decoder, with its copies (FEC) and its own concealment."""

    def __init__(self):
        self.library = ctypes.CDLL(ctypes.util.find_library("opus") or "libopus.so.0")
        self.library.opus_decoder_create.restype = ctypes.c_void_p
        error = ctypes.c_int()
        self.state = ctypes.c_void_p(self.library.opus_decoder_create(48000, 1, ctypes.byref(error)))

    def decode(self, payload, samples=960, copy=False):
        out = (ctypes.c_int16 * 5760)()
        count = self.library.opus_decode(self.state, payload, len(payload) if payload else 0, out, samples if copy or not payload else 5760, int(copy))
        return np.array(out[: max(count, 0)], np.int16)

    def __del__(self):
        self.library.opus_decoder_destroy(self.state)


def played(packets, clock, buffer=0.06):
    """What a player with a fixed buffer makes of (arrival, time stamp, payload) of 20 ms each: samples at 8 kHz, when its first is heard, what
    was concealed and repaired in packets, and each packet's arrival by its place. Opus where the clock is 48 kHz, else PCMU, whose gaps
    get the last packet again, ever lower."""
    import audio

    first = packets[0][1]
    came = {}
    for at, stamp, payload in packets:
        came.setdefault(round(((stamp - first) & 0xFFFFFFFF) / clock * 50), (at, payload))
    came = {place: value for place, value in came.items() if place < 50 * 600}
    begin = min(at - place * 0.02 for place, (at, _) in came.items())
    in_time = {place for place, (at, _) in came.items() if at <= begin + place * 0.02 + buffer}
    decoder = Opus() if clock == 48000 else None
    parts, concealed, repaired, last, level = [], 0, 0, np.zeros(160), 1.0
    for place in range(max(came) + 1):
        if place in in_time:
            payload = came[place][1]
            last = decoder.decode(payload) if decoder else audio.DECODE[0][np.frombuffer(payload, np.uint8)]
            level = 1.0
            parts.append(last)
        elif decoder and place + 1 in in_time:
            parts.append(decoder.decode(came[place + 1][1], 960, copy=True))
            repaired += 1
        else:
            concealed += 1
            level *= 0.7
            parts.append(decoder.decode(None) if decoder else last * level)
    samples = np.concatenate(parts).astype(np.float64)
    return decimated(samples, clock), begin + buffer, concealed, repaired, {place: at for place, (at, _) in came.items()}
