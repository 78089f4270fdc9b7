"""Voices for `bench-quality` and `bench-ears`: prompts of telephone exchanges that Debian ships, read by seven people in five languages,
and of 16 kHz by four of them and a reader of LibriVox. Writes a WAV file for each, of 8 kHz into the folder and of 16 into `wide` there,
`--seconds` or more of sentences with half a second between them; what is there is left alone. Downloads 160 MB of Debian packages by
apt-get, once, and keeps none of it but the sentences; root is not needed.

    python3 Bench/voices.py --folder Bench/.voices

Who they are, and their licences: the table in Bench/README.md.
"""
import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import wave

# The file's name, its package, and where its prompts are.
VOICES = [
    ("allison-en", "asterisk-core-sounds-en-wav", "sounds/en_US_f_Allison"),
    ("allison-es", "asterisk-core-sounds-es-wav", "sounds/es_MX_f_Allison"),
    ("june-fr", "asterisk-core-sounds-fr-wav", "sounds/fr_CA_f_June"),
    ("carlo-it", "asterisk-core-sounds-it-wav", "sounds/it_IT_m_Carlo"),
    ("ivrvoice-ru", "asterisk-core-sounds-ru-wav", "sounds/ru_RU_f_IvrvoiceRU"),
    ("paola-it", "asterisk-prompt-it-menardi-wav", "sounds/it_IT_f_Menardi"),
    ("armelle-fr", "asterisk-prompt-fr-armelle", "sounds/fr"),
    ("july-es", "asterisk-prompt-es-co", "sounds/es"),
    ("wide/allison-en", "asterisk-core-sounds-en-g722", "sounds/en_US_f_Allison"),
    ("wide/allison-es", "asterisk-core-sounds-es-g722", "sounds/es_MX_f_Allison"),
    ("wide/june-fr", "asterisk-core-sounds-fr-g722", "sounds/fr_CA_f_June"),
    ("wide/carlo-it", "asterisk-core-sounds-it-g722", "sounds/it_IT_m_Carlo"),
    ("wide/ivrvoice-ru", "asterisk-core-sounds-ru-g722", "sounds/ru_RU_f_IvrvoiceRU"),
    ("wide/librivox-en", "pocketsphinx-testdata", "test/data/librivox"),
]
SHARE = ("usr/share/asterisk", "usr/share/pocketsphinx")


def say(text):
    print(f"voices: {text}", file=sys.stderr, flush=True)


class Packages:
    """Debian packages, unpacked into a folder that goes away. Where root's package lists know nothing, lists of its own."""

    def __init__(self, folder):
        self.folder, self.options = pathlib.Path(folder), []

    def apt(self, *arguments):
        command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=", *self.options, *arguments]
        return subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def unpacked(self, package):
        got = self.apt("download", package)
        if got.returncode and not self.options:
            (self.folder / "apt/lists/partial").mkdir(parents=True)
            (self.folder / "apt/cache/archives/partial").mkdir(parents=True)
            self.options = ["-o", f"Dir::State={self.folder}/apt", "-o", "Dir::State::status=/var/lib/dpkg/status",
                            "-o", f"Dir::Cache={self.folder}/apt/cache"]
            self.apt("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "update")
            got = self.apt("download", package)
        if got.returncode:
            raise OSError((got.stderr.strip().splitlines() or ["no package"])[-1])
        archive = next(self.folder.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive.name, package], cwd=self.folder, check=True)
        archive.unlink()
        return next(share for share in (self.folder / package / name for name in SHARE) if share.exists())


def sentences(folder):
    """Prompts that are longer than a word, in an order of chance that is always the same."""
    files = [file for suffix, least in (("wav", 24000), ("gsm", 2475), ("g722", 12000)) for file in sorted(folder.rglob(f"*.{suffix}"))
             if "silence" not in file.parts and file.stat().st_size > least]
    random.Random(5).shuffle(files)
    return files


def samples(file, rate):
    if file.suffix == ".wav":
        with wave.open(str(file)) as prompt:
            assert (prompt.getframerate(), prompt.getnchannels(), prompt.getsampwidth()) == (rate, 1, 2), file
            return prompt.readframes(prompt.getnframes())
    import av  # with aiortc; only GSM and G.722 need it

    with av.open(str(file), format=file.suffix[1:]) as prompt:
        return b"".join(frame.to_ndarray().astype("<i2").tobytes() for frame in prompt.decode(audio=0))


def passage(files, seconds, rate):
    octets = b""
    for file in files:
        octets += samples(file, rate) + bytes(rate)
        if len(octets) >= 2 * rate * seconds:
            return octets
    raise OSError("too few prompts")


def write(octets, path, rate):
    partial = path.with_suffix(".partial")
    with wave.open(str(partial), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(octets)
    partial.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=8, help="at least; a prompt is not cut")
    options = parser.parse_args()
    (options.folder / "wide").mkdir(parents=True, exist_ok=True)
    missing = [voice for voice in VOICES if not (options.folder / f"{voice[0]}.wav").exists()]
    if missing and not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        say("no apt-get here: recordings of people are left out")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(folder)
        for number, (name, package, prompts) in enumerate(missing):
            say(f"{name} from {package}, {number + 1} of {len(missing)}")
            try:
                rate = 16000 if name.startswith("wide/") else 8000
                files = sentences(packages.unpacked(package) / prompts)
                write(passage(files, options.seconds, rate), options.folder / f"{name}.wav", rate)
            except (OSError, ImportError, subprocess.CalledProcessError) as error:
                say(f"{name} is left out: {error}")
                if number == 0 and isinstance(error, OSError):
                    say("Debian's packages cannot be had: recordings of people are left out")
                    return 1
            shutil.rmtree(packages.folder / package, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
