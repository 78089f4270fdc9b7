"""Scores of what was heard. Standard input: a line `reference.wav<TAB>heard.wav` each, both at 8 or at 16 kHz, with `<TAB>all` for every
score; standard output, in the same order: PESQ-NB (P.862.1) at 8 kHz, PESQ-WB (P.862.2) at 16, and of those lines also PESQ-WB and STOI
(0 to 1).

PESQ-WB is defined at 16 kHz: files of 8 kHz are brought there by interpolation, so it judges the telephone band by the other's model. STOI knows
no delay: what was heard is laid on the reference by correlation, second by second, as PESQ does by itself. PESQ is 1.0 where it finds
nothing to compare."""
import concurrent.futures
import os
import sys
import wave

import numpy
from pesq import pesq

try:
    from pystoi import stoi
    from scipy.signal import correlate, resample_poly
except ImportError:
    stoi = None


def samples(path):
    with wave.open(path) as file:
        return file.getframerate(), numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2")


def perceived(rate, reference, heard, band):
    try:
        return pesq(rate, reference, heard, band)
    except Exception:  # no utterance found: nothing was heard
        return 1.0


def shift(reference, heard, around, reach):
    """How much later than `around` the heard is, within ± `reach` samples."""
    start = max(0, around - reach)
    piece = heard[start : around + len(reference) + reach]
    if len(piece) < len(reference) or not piece.any() or not reference.any():
        return around
    return start + int(numpy.argmax(correlate(piece, reference, mode="valid", method="fft")))


def aligned(rate, reference, heard):
    heard = numpy.concatenate([heard, numpy.zeros(2 * rate)])
    whole = shift(reference, heard, 0, rate)
    out = numpy.zeros(len(reference))
    for start in range(0, len(reference), rate):
        part = reference[start : start + rate]
        at = shift(part, heard, whole + start, rate // 10)
        piece = heard[at : at + len(part)]
        out[start : start + len(piece)] = piece
    return out


def score(line):
    reference, heard, *wanted = line.rstrip("\n").split("\t")
    (rate, reference), (_, heard) = samples(reference), samples(heard)
    first = perceived(rate, reference, heard, "wb" if rate > 8000 else "nb")
    if not wanted or stoi is None:
        return f"{first:.4f}"
    reference, heard = reference.astype(float), heard.astype(float)
    wide = first
    if rate == 8000:
        wide = perceived(2 * rate, resample_poly(reference, 2, 1) / 32768, resample_poly(heard, 2, 1) / 32768, "wb")
    return f"{first:.4f} {wide:.4f} {stoi(reference, aligned(rate, reference, heard), rate):.4f}"


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for value in pool.map(score, sys.stdin.readlines(), chunksize=8):
            print(value)
