"""PESQ (narrowband) of every time that a passage is in a recording: passages_score.py SAID.wav HEARD.wav. One JSON object: scores and places
in seconds, in the order in which they were heard."""
import json, os, sys
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Bench/ears"))
import audio, hearing

said = audio.read_wav(sys.argv[1]).astype(float)
heard = audio.read_wav(sys.argv[2]).astype(float)
# windows of the passage in which somebody speaks: what was heard of it to a third is a passage
spoken = len(hearing.places(said, np.concatenate([np.zeros(8000), said, np.zeros(8000)])))
size = 1 << int(np.ceil(np.log2(len(said) + len(heard))))
found = []
while len(found) < 9:
    # the loudest place of all is the next one; what it was is taken out
    likeness = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(said, size)), size)[: len(heard)]
    at = int(np.argmax(likeness))
    first, last = max(0, at - 8000), min(len(heard), at + len(said) + 8000)
    part = heard[first:last].copy()
    places = hearing.places(said, part)
    if len(places) < spoken / 3:
        break
    found.append((at / hearing.RATE, hearing.score(said, part, [(0, len(said))], places)[0]))
    heard[at : at + len(said)] = 0
found.sort()
print(json.dumps({"event": "score", "pesq": [score for _, score in found], "at": [round(at, 2) for at, _ in found]}))
