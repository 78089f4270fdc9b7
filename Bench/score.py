"""PESQ-NB (P.862.1) at 8 kHz. Standard input: a line `reference.wav<TAB>heard.wav` each; standard output: a score each, in the
same order; 1.0 where PESQ finds nothing to compare."""
import concurrent.futures
import os
import sys
import wave

import numpy
from pesq import pesq


def samples(path):
    with wave.open(path) as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2")


def score(line):
    reference, heard = line.rstrip("\n").split("\t")
    try:
        return pesq(8000, samples(reference), samples(heard), "nb")
    except Exception:  # no utterance found: nothing was heard
        return 1.0


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for value in pool.map(score, sys.stdin.readlines(), chunksize=8):
            print(f"{value:.4f}")
