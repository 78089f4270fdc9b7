"""Packets of encoders that are not ours, for fit_noise.py --packets: speech and sounds of the full band by libopus in settings picked at
random, by ffmpeg's own encoder of Opus, and by its encoder of G.722. Why: docs/decisions/0231. Some five minutes on two cores.

    .venv/bin/python Bench/other_encoders.py --folder /tmp/packets      # numpy; espeak-ng, ffmpeg, libopus
"""
import argparse
import concurrent.futures
import ctypes
import ctypes.util
import pathlib
import subprocess
import sys

import numpy as np

import fit_noise

sys.path.insert(0, str(fit_noise.ROOT / "Tests/Vectors/encoders"))
from make import ogg_packets  # noqa: E402

RATE, SECONDS, VOICES, SOUNDS = 48000, 12, 48, 32
VOIP, AUDIO, LOW_DELAY = 2048, 2049, 2051
REQUESTS = {"bitrate": 4002, "vbr": 4006, "complexity": 4010, "fec": 4012, "loss": 4014, "bandwidth": 4004, "mode": 11002}


def resample(samples, before, after):
    count = int(len(samples) * after / before)
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return np.fft.irfft(spectrum, count) * count / len(samples)


def phrase(random):
    command = ["espeak-ng", "-v", random.choice(fit_noise.LANGUAGES) + random.choice(fit_noise.VARIANTS)]
    command += ["-s", str(random.choice([120, 150, 175, 210])), "-p", str(random.randint(25, 80))]
    text = fit_noise.TEXTS[random.randint(len(fit_noise.TEXTS))]
    wave = subprocess.run([*command, "--stdout", text], capture_output=True, check=True).stdout
    samples = resample(np.frombuffer(wave[44 : len(wave) // 2 * 2], np.int16).astype(float), 22050, RATE)
    start = random.randint(max(1, len(samples) - 5 * RATE))
    samples = samples[start : start + 5 * RATE]
    return samples * fit_noise.decibels(random.uniform(-44, -18)) / np.sqrt((samples**2).mean())


def voice(number):
    """Phrases of several talkers, of one band and brightness, with noise, and every other one with digital silence in it."""
    random = np.random.RandomState(9000 + number)
    samples = np.zeros(0)
    while len(samples) < SECONDS * RATE:
        samples = np.concatenate([samples, phrase(random), np.zeros(random.randint(4000, 24000))])
    samples = samples[: SECONDS * RATE]
    spectrum, tones = np.fft.rfft(samples), np.fft.rfftfreq(len(samples), 1 / RATE)
    spectrum[tones < random.choice([20, 80, 200, 300])] = 0
    spectrum[tones > random.choice([3600, 7500, 12000, 24000, 24000])] *= 0.01
    if random.rand() < 0.5:
        spectrum *= np.minimum(4, np.maximum(1, tones / 2000) ** random.uniform(0, 1))
    samples = np.fft.irfft(spectrum, len(samples))
    if random.rand() < 0.8:
        samples += random.randn(len(samples)) * fit_noise.decibels(random.uniform(-90, -58))
    place = random.randint(24000)
    while number % 2 == 1 and place < len(samples):
        length = random.randint(9600, 48000)
        samples[place : place + length] = 0
        place += length + random.randint(14400, 72000)
    return samples


def sound(number):
    """The telephone's sounds, and claps and hiss of the full band on top."""
    random = np.random.RandomState(1000 + number)
    samples = resample(fit_noise.sound(number), fit_noise.RATE, RATE)
    place = random.randint(RATE)
    while place < len(samples) - RATE:
        times = np.arange(24000) / RATE
        noise = random.randn(24000)
        if random.randint(3) < 2:
            noise = np.convolve(noise * np.exp(-times * random.uniform(6, 150)), random.uniform(-0.2, 0.95) ** np.arange(12))[:24000]
        samples[place : place + 24000] += noise / np.abs(noise).max() * fit_noise.decibels(random.uniform(-34, -9))
        place += random.randint(24000, 120000)
    return samples


def frames(samples, channels):
    if channels == 2:
        samples = np.c_[samples, np.r_[np.zeros(40), samples[:-40]] * 0.6]
    return np.clip(np.round(samples), -32768, 32767).astype("<i2").reshape(-1, channels)


def libopus(samples, channels, milliseconds, application, settings):
    library = ctypes.CDLL(ctypes.util.find_library("opus"))
    library.opus_encoder_create.restype = ctypes.c_void_p
    error = ctypes.c_int()
    encoder = ctypes.c_void_p(library.opus_encoder_create(RATE, channels, application, ctypes.byref(error)))
    for name, value in settings.items():
        if library.opus_encoder_ctl(encoder, REQUESTS[name], ctypes.c_int(value)) != 0:
            raise ValueError(f"{name} {value}")
    length, packets, room = RATE // 1000 * milliseconds, [], ctypes.create_string_buffer(1500)
    speech = frames(samples, channels)
    for start in range(0, len(speech) - length + 1, length):
        frame = np.ascontiguousarray(speech[start : start + length])
        packets.append(room.raw[: library.opus_encode(encoder, frame.ctypes.data_as(ctypes.c_void_p), length, room, 1275)])
    library.opus_encoder_destroy(encoder)
    return packets


def ffmpeg(samples, channels, options):
    command = ["ffmpeg", "-loglevel", "error", "-f", "s16le", "-ar", str(RATE), "-ac", str(channels), "-i", "-", *options, "-"]
    return subprocess.run(command, input=frames(samples, channels).tobytes(), capture_output=True, check=True).stdout


def settings(random, kind):
    """Channels, milliseconds, application and requests."""
    channels, length = 1 + (random.rand() < (0.25 if kind == "celt" else 0.1)), 10 if random.rand() < 0.2 else 20
    common = {"vbr": int(random.rand() < 0.7), "complexity": int(random.choice([0, 3, 5, 9, 10])), "loss": int(random.choice([0, 0, 10]))}
    if kind == "celt":
        rate, band = random.choice([24, 32, 48, 64, 64, 96, 128]), random.choice([1101, 1103, 1104, 1105, 1105, 1105])
        application = int(random.choice([AUDIO, LOW_DELAY, VOIP]))
        common |= {} if application == LOW_DELAY else {"mode": 1002}
    else:
        rate, band, application = random.choice([20, 24, 32, 32, 40, 64]), random.choice([1104, 1105, 1105]), int(random.choice([AUDIO, VOIP]))
        common |= {"mode": 1001, "fec": int(random.rand() < 0.5)}
    return channels, length, application, common | {"bitrate": int(rate) * 1000, "bandwidth": int(band)}


def make(arguments):
    number, folder = arguments
    random = np.random.RandomState(77 + number)
    samples = voice(number) if number < 100 else sound(number - 100)

    def put(name, encoding, packets):
        octets = b"".join(len(packet).to_bytes(2, "big") + packet for packet in packets)
        (folder / f"{number}_{name}.packets").write_bytes(encoding + b"\n" + octets)

    for index, kind in enumerate(["celt", "celt", "celt", "hybrid", "hybrid"]):
        put(f"{index}_{kind}", b"opus", libopus(samples, *settings(random, kind)))
    channels, rate, length = 1 + (random.rand() < 0.25), random.choice([32, 48, 64, 96, 128]), 10 if random.rand() < 0.2 else 20
    own = ["-f", "ogg", "-strict", "-2", "-c:a", "opus", "-b:a", f"{rate}k", "-opus_delay", str(length)]
    put("ffmpeg", b"opus", ogg_packets(ffmpeg(samples, channels, own)))
    octets = ffmpeg(samples, 1, ["-ar", "16000", "-f", "g722", "-c:a", "g722"])
    put("g722", b"g722", [octets[at : at + 160] for at in range(0, len(octets) - 159, 160)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--numbers", type=int, nargs="*", default=[*range(VOICES), *range(100, 100 + SOUNDS)])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        list(pool.map(make, [(number, options.folder) for number in options.numbers]))


if __name__ == "__main__":
    main()
