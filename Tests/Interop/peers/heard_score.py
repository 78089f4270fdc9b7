"""PESQ (narrowband) of a passage in a recording: heard_score.py SAID.wav HEARD.wav FROM TO, in seconds of the recording. One JSON object."""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Bench/ears"))
import audio, hearing

said, heard = audio.read_wav(sys.argv[1]), audio.read_wav(sys.argv[2])
first, last = (int(float(word) * hearing.RATE) for word in sys.argv[3:5])
heard = heard[first:last].astype(float)
found = hearing.places(said, heard)
print(json.dumps({"event": "score", "pesq": hearing.score(said, heard, [(0, len(said))], found)[0], "places": len(found)}))
