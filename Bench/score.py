"""Scores what bench-quality wrote: mean PESQ (P.862.1, narrow band) per path, impairment and receiver, and the drop from the
same path without loss.  usage: score.py FOLDER [--json]"""
import collections
import concurrent.futures
import os
import sys
import wave

import numpy
from pesq import pesq


def samples(path):
    with wave.open(path) as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2")


def score(run):
    folder, reference, file = run
    try:
        return pesq(8000, samples(os.path.join(folder, reference)), samples(os.path.join(folder, file)), "nb")
    except Exception:  # PESQ finds no utterance: nothing was heard
        return 1.0


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "runs.tsv"), encoding="utf-8") as file:
        runs = [line.rstrip("\n").split("\t") for line in file]
    jobs = [(folder, run[5], run[6]) for run in runs]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        scores = list(pool.map(score, jobs, chunksize=8))
    table = collections.defaultdict(list)
    for run, value in zip(runs, scores):
        table[run[0], run[1], run[4]].append(value)
        if "--passages" in sys.argv:
            table[run[0] + ": " + run[2], run[1], run[4]].append(value)
    mean = {key: sum(values) / len(values) for key, values in table.items()}
    whos = sorted({key[2] for key in mean}, reverse=True)
    print(f"{'path':28}{'network':34}" + "".join(f"{who:>9}{'drop':>7}" for who in whos))
    for path, network in dict.fromkeys((key[0], key[1]) for key in mean):
        row = f"{path:28}{network:34}"
        for who in whos:
            value = mean.get((path, network, who))
            clean = mean.get((path, "0 % loss", who))
            row += f"{value:9.2f}" if value is not None else f"{'–':>9}"
            row += f"{clean - value:7.2f}" if value is not None and clean is not None else f"{'–':>7}"
        print(row)


main()
