"""Recordings of people for `bench-quality --speech`: the prompts of Asterisk as Debian has them, three women and a man in five languages,
8 s or more of each in a WAV file of 8 kHz. Downloads 100 MB of Debian packages into the folder, once.

    python3 Bench/voices.py --folder /tmp/voices
    bench-quality $(printf -- '--speech %s ' /tmp/voices/*.wav)

Licences: CC-BY-SA 3.0 (Allison Smith, June Wallack), CC-BY 3.0 (Maxim Topal), and as the packages' copyright files say (Carlo Flora).
"""
import argparse
import pathlib
import random
import subprocess
import wave

VOICES = {
    "en": "en_US_f_Allison", "es": "es_MX_f_Allison", "fr": "fr_CA_f_June", "it": "it_IT_m_Carlo", "ru": "ru_RU_f_IvrvoiceRU",
}


def unpacked(package, folder):
    if not (folder / package).exists():
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", next(folder.glob(f"{package}_*.deb")), folder / package], check=True)
    return folder / package / "usr/share/asterisk"


def prompts(folder):
    """Sentences, in an order of chance that is always the same."""
    files = [file for file in sorted(folder.rglob("*.wav")) if "silence" not in file.parts and file.stat().st_size > 24000]
    random.Random(5).shuffle(files)
    return files


def passage(files, seconds):
    """Prompts with half a second of silence between them."""
    octets = b""
    for file in files:
        with wave.open(str(file)) as prompt:
            octets += prompt.readframes(prompt.getnframes()) + bytes(2 * 4000)
        if len(octets) >= 2 * 8000 * seconds:
            break
    return octets


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=8, help="at least; a prompt is not cut")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for language, voice in VOICES.items():
        files = prompts(unpacked(f"asterisk-core-sounds-{language}-wav", options.folder) / "sounds" / voice)
        with wave.open(str(options.folder / f"{voice}.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(8000)
            out.writeframes(passage(files, options.seconds))


if __name__ == "__main__":
    main()
