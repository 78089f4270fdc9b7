"""What is said in the calls: a lead-in that is not scored, then passages of 8 s, each of one voice."""
import os, sys
import numpy as np
import audio

LEAD = 6 * 8000
LENGTH = 8 * 8000
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.voices")


class Voices:
    def __init__(self, files, folder):
        if not files and os.path.isdir(FOLDER):
            files = sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER) if name.endswith(".wav"))
        if not files:
            sys.exit("ears: no recordings to speak: run python3 Bench/voices.py --folder Bench/.voices, or name some with --voices")
        self.folder, self.voices = folder, []
        for path in files:
            samples = audio.read_wav(path)
            if len(samples) < LENGTH:
                samples = np.tile(samples, LENGTH // len(samples) + 1)
            level = np.sqrt(np.mean(samples[np.abs(samples) > 300].astype(float) ** 2))
            self.voices.append((os.path.basename(path).rsplit(".", 1)[0], samples * (2600 / level)))  # -22 dBov while somebody speaks

    def write(self, first, count, pauses=False):
        """A file with `count` passages from the voice numbered `first` on; its name, samples, segments and the names of the voices."""
        name = f"{self.folder}/said-{first}-{count}{'-pauses' if pauses else ''}.wav"
        chosen = [self.voices[(first + index) % len(self.voices)] for index in range(count + 1)]
        parts = [self.part(chosen[-1][1], LEAD, pauses)]
        parts += [self.part(voice, LENGTH, pauses) for _, voice in chosen[:-1]]
        samples = np.clip(np.concatenate(parts), -32768, 32767).astype(np.int16)
        if not os.path.exists(name):
            audio.write_wav(name, samples)
        segments = [(LEAD + index * LENGTH, LEAD + (index + 1) * LENGTH) for index in range(count)]
        return name, samples, segments, [voice for voice, _ in chosen[:-1]]

    def part(self, voice, length, pauses):
        if not pauses:
            return voice[:length]
        # A second and a half of speech, a second and a half of a quiet room, and again.
        out = np.random.default_rng(7).normal(0, 6, length)
        edge = np.concatenate([np.linspace(0, 1, 80), np.ones(12000 - 160), np.linspace(1, 0, 80)])
        for start in range(0, length - 12000 + 1, 24000):
            out[start : start + 12000] += voice[start // 2 : start // 2 + 12000] * edge
        return out
