"""Packets of people's speech, and of music on hold, for fit_noise.py --packets: the prompts of Asterisk as Debian has them (two women
and a man in three languages) by G.711, by the encoder of G.722 that Asterisk's were made with, and by libopus. Why: docs/decisions/0232.

    .venv/bin/python Bench/real_voices.py --folder /tmp/packets      # numpy, av; downloads 100 MB of Debian packages
    .venv/bin/python Bench/real_voices.py --folder /tmp/others --others     # voices that the network was not fitted to, to try it with
"""
import argparse
import audioop
import fractions
import pathlib
import random
import subprocess
import wave

import av
import numpy as np

FITTED = {"en": "en_US_f_Allison", "fr": "fr_CA_f_June", "it": "it_IT_m_Carlo"}
OTHERS = {"ru": "ru_RU_f_IvrvoiceRU"}
SECONDS = 200
# Bit rate in kbit/s, application, and what else libopus is told.
OPUS = {
    "12": (12, "voip", {}), "24": (24, "voip", {}), "32": (32, "voip", {}), "64": (64, "voip", {}), "audio64": (64, "audio", {}),
    "fec": (28, "voip", {"fec": "1", "packet_loss": "10"}),
}


def unpacked(package, folder):
    if not (folder / package).exists():
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", next(folder.glob(f"{package}_*.deb")), folder / package], check=True)
    return folder / package / "usr/share/asterisk"


def write(path, encoding, packets):
    parts = [len(packet).to_bytes(2, "big") + packet for packet in packets]
    path.write_bytes(encoding.encode() + b"\n" + b"".join(parts))


def prompts(folder, ending):
    files = sorted(file for file in folder.rglob(f"*.{ending}") if "silence" not in file.parts)
    random.Random(5).shuffle(files)
    return files


def linear(files, hiss):
    """Prompts with up to a second of silence between them, digital or with a little noise in all of it."""
    gaps, octets = random.Random(7), b""
    for file in files:
        with wave.open(str(file)) as prompt:
            octets += prompt.readframes(prompt.getnframes()) + bytes(2 * gaps.randint(1000, 8000))
        if len(octets) > 2 * 8000 * SECONDS:
            break
    samples = np.frombuffer(octets, np.int16) + hiss * np.random.RandomState(1).randn(len(octets) // 2)
    return np.clip(samples, -32768, 32767).astype(np.int16).tobytes()


def in_ticks(octets):
    return [octets[at : at + 160] for at in range(0, len(octets) - 159, 160)]


def by_opus(packets, kilobits, application, options):
    """What G.722 says, up to 48 kHz, by libopus."""
    decoder = av.CodecContext.create("g722", "r")
    frames = [frame.to_ndarray().ravel() for packet in packets[: 120 * 50] for frame in decoder.decode(av.Packet(packet))]
    spectrum = np.fft.rfft(np.concatenate(frames).astype(float))
    count = 3 * sum(map(len, frames))
    samples = np.clip(np.fft.irfft(spectrum, count) * 3, -32768, 32767).astype(np.int16)
    encoder = av.CodecContext.create("libopus", "w")
    encoder.sample_rate, encoder.layout, encoder.format, encoder.bit_rate = 48000, "mono", "s16", 1000 * kilobits
    encoder.time_base = fractions.Fraction(1, 48000)
    encoder.options = {"application": application, "frame_duration": "20", **options}
    result = []
    for start in range(0, count - 959, 960):
        frame = av.AudioFrame.from_ndarray(samples[None, start : start + 960].copy(), format="s16", layout="mono")
        frame.sample_rate, frame.pts = 48000, start
        result += [bytes(packet) for packet in encoder.encode(frame)]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--others", action="store_true", help="the voices that are for trying")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    # From 200 on fit_noise.py knows that they are real; those that leave 3 when divided by 4 would be left out.
    number = 200
    for language, voice in (OTHERS if options.others else FITTED).items():
        waves = prompts(unpacked(f"asterisk-core-sounds-{language}-wav", options.folder) / "sounds" / voice, "wav")
        for name, hiss in [("silence", 0), ("hiss", 20)]:
            samples = linear(waves, hiss)
            write(options.folder / f"{number}_{voice}_{name}_pcmu.packets", "pcmu", in_ticks(audioop.lin2ulaw(samples, 2)))
            write(options.folder / f"{number}_{voice}_{name}_pcma.packets", "pcma", in_ticks(audioop.lin2alaw(samples, 2)))
        files = prompts(unpacked(f"asterisk-core-sounds-{language}-g722", options.folder) / "sounds" / voice, "g722")
        wide = in_ticks(b"".join(file.read_bytes() for file in files)[: 8000 * SECONDS])
        write(options.folder / f"{number}_{voice}_g722.packets", "g722", wide)
        for name, setting in OPUS.items():
            write(options.folder / f"{number}_{voice}_opus{name}.packets", "opus", by_opus(wide, *setting))
        number += 4
    for file in [] if options.others else sorted(unpacked("asterisk-moh-opsound-wav", options.folder).glob("moh/*.wav"))[:2]:
        write(options.folder / f"{number}_{file.stem}_pcmu.packets", "pcmu", in_ticks(audioop.lin2ulaw(linear([file], 0), 2)))
        number += 4


if __name__ == "__main__":
    main()
