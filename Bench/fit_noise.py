"""Fits the network of SuddenSound anew and writes Sources/Media/AudioCodecs/SuddenSoundWeights.swift.

Speech by eSpeak NG and sounds that are no speech go through bench-noise, which writes a row for each 20 ms that BurstGuard judged
(Bench/Sources/bench-noise/RowFile.swift); for each kind of codec a network of ten nodes is fitted to them. What is decided here and
why: docs/decisions/0220. On two cores some 20 minutes, of which the fit is the smaller part.

    swift build -c release --package-path Bench --product bench-noise
    .venv/bin/python Bench/other_encoders.py --folder /tmp/packets
    .venv/bin/python Bench/real_voices.py --folder /tmp/packets
    .venv/bin/python Bench/fit_noise.py --folder /tmp/noise --packets /tmp/packets        # numpy; espeak-ng
"""
import argparse
import concurrent.futures
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATE, SECONDS, INPUTS, NODES, HEADER = 8000, 9, 42, 10, 6
VOICES, SOUNDS = 72, 64
TEXTS = [
    "Good morning, this is the front desk, how may I help you today? I would like to change my booking from Tuesday to Friday, if "
    "that is possible. Certainly, let me look that up. One moment please.",
    "The quick brown fox jumps over the lazy dog. She sells sea shells by the sea shore. Peter Piper picked a peck of pickled "
    "peppers. How much wood would a woodchuck chuck?",
    "Hello? Yes, yes. No. Okay then. Please call me back at five five five, zero one two three, extension forty seven. Thanks!",
    "It was a bright cold day in April, and the clocks were striking thirteen. He had won the victory over himself, they said; "
    "stop, think, and take a breath.",
    "Der Zug nach Hamburg faehrt heute von Gleis sieben. Bitte steigen Sie schnell ein. Vorsicht bei der Abfahrt! Danke schoen.",
    "Bonjour madame, je voudrais parler avec le service client, s'il vous plait. Attendez un instant. Tres bien, merci beaucoup.",
]
LANGUAGES = ["en", "en-us", "en-gb-scotland", "de", "fr", "es", "it", "nl", "sv", "pl", "pt", "ru", "tr"]
VARIANTS = ["", "+f1", "+f2", "+f3", "+f4", "+m1", "+m2", "+m3", "+m4", "+m5", "+m6", "+m7", "+croak", "+whisper", "+klatt"]
# Bit rate in percent, expected loss, complexity of libopus; a browser's, and what it becomes on a bad network or a weak machine.
ENCODERS = ["100,0,9", "100,0,9", "75,10,9", "150,0,5", "100,20,9", "125,5,10"]
DAMAGES = "randomSame,keepFirst,keepFirstLength,flip,flips,manyFlips,otherCodec,truncated,tail,swapped"
PATTERNS = "single,dense,runs,never"
# By SoundSource.
KINDS = ["g711", "g722", "silk", "hybrid", "celt"]
# Shares of right rows above 0 and above -1, at most: of voices by eSpeak NG that were left out, and of people's.
LEFT_OUT, PEOPLE = (.003, .03), (.001, .015)


def decibels(value):
    return 10 ** (value / 20) * 32768


def resample(samples, rate):
    count = int(len(samples) * RATE / rate)
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return np.fft.irfft(spectrum, count) * count / len(samples)


def voice(number):
    """A talker on a line of its own: band, level, noise, and for three in six digital silence between words, as a muted or gated
    microphone makes it."""
    random = np.random.RandomState(number)
    name = random.choice(LANGUAGES) + random.choice(VARIANTS)
    command = ["espeak-ng", "-v", name, "-s", str(random.choice([120, 150, 175, 210])), "-p", str(random.randint(25, 80))]
    wave = subprocess.run([*command, "--stdout", TEXTS[number % len(TEXTS)]], capture_output=True, check=True).stdout
    samples = resample(np.frombuffer(wave[44 : len(wave) // 2 * 2], np.int16).astype(float), 22050)
    spectrum, tones = np.fft.rfft(samples), np.fft.rfftfreq(len(samples), 1 / RATE)
    spectrum[tones < random.choice([50, 200, 300])] = 0
    spectrum[tones > 3600] *= 0.1
    samples = np.fft.irfft(spectrum, len(samples))[: SECONDS * RATE]
    samples *= decibels(random.uniform(-46 if number % 3 == 0 else -38, -20)) / np.sqrt((samples**2).mean())
    samples += random.randn(len(samples)) * decibels(random.uniform(-85, -58))
    if number % 2 == 1:
        place = random.randint(4000)
        while place < len(samples):
            length = random.randint(1600, 8000)
            samples[place : place + length] = 0
            place += length + random.randint(2400, 12000)
    return samples


def sound(number):
    """Digits, call progress tones, chords, sweeps, claps and hiss, one after the other."""
    random = np.random.RandomState(1000 + number)
    samples = random.randn(SECONDS * RATE) * decibels(random.uniform(-85, -62)) * (number % 3 > 0)
    place = 4000 + random.randint(160)
    while place < len(samples) - 100:
        part = SOUND[random.randint(len(SOUND))](random) * decibels(random.uniform(-32, -9))
        part = part[: len(samples) - place]
        samples[place : place + len(part)] += part
        place += len(part) + int(RATE * random.uniform(0.05, 0.5))
    return samples


def tone(random, tones, seconds):
    times = np.arange(int(RATE * seconds)) / RATE
    return sum(np.sin(2 * np.pi * (hertz * times + random.rand())) for hertz in tones) / len(tones)


def digit(random):
    return tone(random, [random.choice([697, 770, 852, 941]), random.choice([1209, 1336, 1477, 1633])], random.uniform(0.05, 0.25))


def progress(random):
    all_tones = [[440, 480], [350, 440], [480, 620], [425], [400, 450], [1100], [2100], [950], [1400], [1800], [440], [1004]]
    return tone(random, all_tones[random.randint(len(all_tones))], random.uniform(0.1, 0.6))


def chord(random):
    root, times, samples = 110 * 2 ** (random.randint(36) / 12), np.arange(int(RATE * random.uniform(0.15, 0.8))) / RATE, 0
    for ratio in [1, 1.26, 1.5][: random.randint(1, 4)]:
        for partial in range(1, 7):
            hertz = root * ratio * partial
            if hertz < 3500:
                samples = samples + np.sin(2 * np.pi * (hertz * times + random.rand())) / partial ** random.uniform(0.7, 2)
    return samples / 3 * np.exp(-times * random.uniform(0, 6)) * np.minimum(1, times / random.choice([0.001, 0.01, 0.03]))


def sweep(random):
    times = np.arange(3200) / RATE
    return np.sin(2 * np.pi * (300 * times + random.uniform(500, 3000) * times**2))


def clap(random):
    times = np.arange(1600) / RATE
    noise = np.convolve(random.randn(1600), random.uniform(-0.2, 0.9) ** np.arange(12))[:1600]
    return noise / np.abs(noise).max() * np.exp(-times * random.uniform(10, 120))


def hiss(random):
    noise = random.randn(int(RATE * random.uniform(0.05, 0.8)))
    noise = np.convolve(noise, random.uniform(-0.2, 0.9) ** np.arange(12))
    return noise / np.abs(noise).max()


def data(random):
    """Bits by two tones, or by four phases."""
    count, length = random.randint(10, 300), random.choice([3, 7, 13, 27])
    times, symbols = np.arange(count * length) / RATE, np.repeat(random.randint(4, size=count), length)
    if random.rand() < 0.5:
        return np.sin(2 * np.pi * np.cumsum(random.uniform(900, 1700) + random.uniform(100, 600) * (symbols % 2)) / RATE)
    return np.sin(2 * np.pi * random.uniform(1200, 1900) * times + np.pi / 2 * symbols)


def beat(random):
    both = chord(random)
    drum = (clap if random.rand() < 0.5 else hiss)(random)[: min(len(both), random.randint(300, 1600))] * random.uniform(0.2, 1)
    both[: len(drum)] += drum
    return both


SOUND = [digit, progress, chord, sweep, chord, clap, hiss, data, beat, beat, beat, clap]


def collect(arguments):
    """Rows of one speech file: written once, taken from the folder after that."""
    number, folder, binary = arguments
    speech, rows = folder / f"{number}.raw", folder / f"{number}.rows"
    if not rows.exists():
        samples = sound(number - 100) if number >= 100 else voice(number)
        np.clip(np.round(samples), -32768, 32767).astype("<i2").tofile(speech)
        command = [binary, "--seeds", "1", "--speech", speech, "--rows", rows.with_suffix(".part"), "--damages", DAMAGES]
        command += ["--patterns", PATTERNS, "--encoder", ENCODERS[number % len(ENCODERS)]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows.with_suffix(".part").rename(rows)
    table = np.fromfile(rows, np.float32).reshape(-1, HEADER + INPUTS).astype(float)
    return np.c_[np.full(len(table), number), table]


def collect_packets(arguments):
    """Rows of one file of packets by an encoder that is not ours, without those that say nothing new."""
    packets, folder, binary = arguments
    rows = folder / f"{packets.stem}.rows"
    if not rows.exists():
        command = [binary, "--seeds", "1", "--packets", packets, "--rows", rows.with_suffix(".part"), "--damages", DAMAGES]
        command += ["--patterns", "dense,runs,never"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows.with_suffix(".part").rename(rows)
    table = np.fromfile(rows, np.float32).reshape(-1, HEADER + INPUTS).astype(float)
    table = table[table[:, 0] < 2]
    _, places = np.unique(np.round(table[:, [0, *range(HEADER, HEADER + 14)]], 2), axis=0, return_index=True)
    return np.c_[np.full(len(places), int(packets.stem.split("_")[0])), table[places]]


def thinned(table):
    """All that was right on a stream that is trusted, and as much of the rest as a fit of a minute takes; of each kind of codec."""
    random, keep = np.random.RandomState(1), []
    for source in range(len(KINDS)):
        right, trusted, real = table[:, 1] == 0, table[:, 5] == 0, table[:, 0] >= 200
        parts = [(right & trusted, len(table)), (right & ~trusted & ~real, 60000), (right & ~trusted & real, 40000)]
        for part, most in [*parts, (~right & ~real, 35000), (~right & real, 25000)]:
            keep.append(random.permutation(np.flatnonzero(part & (table[:, 4] == source)))[:most])
    return table[np.sort(np.concatenate(keep))]


def train(inputs, labels, weights, epochs):
    """Adam on the logistic loss of one layer of max(0, x)."""
    random = np.random.RandomState(0)
    width = inputs.shape[1]
    weight = [random.randn(width, NODES) / np.sqrt(width), np.zeros(NODES), random.randn(NODES) / np.sqrt(NODES), np.zeros(1)]
    first, second, step = [0 * part for part in weight], [0 * part for part in weight], 0
    for epoch in range(epochs):
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs)) + 1e-5
        for batch in np.array_split(random.permutation(len(inputs)), max(1, len(inputs) // 256)):
            part = inputs[batch]
            sums = part @ weight[0] + weight[1]
            nodes = np.maximum(sums, 0)
            guess = 1 / (1 + np.exp(-np.clip(nodes @ weight[2] + weight[3], -30, 30)))
            error = (guess - labels[batch]) * weights[batch] / len(batch)
            back = np.outer(error, weight[2]) * (sums > 0)
            slopes = [part.T @ back + 3e-4 * weight[0], back.sum(0), nodes.T @ error + 3e-4 * weight[2], error.sum(keepdims=True)]
            step += 1
            for index, slope in enumerate(slopes):
                first[index] = 0.9 * first[index] + 0.1 * slope
                second[index] = 0.999 * second[index] + 0.001 * slope**2
                mean, square = first[index] / (1 - 0.9**step), second[index] / (1 - 0.999**step)
                weight[index] = weight[index] - rate * mean / (np.sqrt(square) + 1e-8)
    return weight


def fit(kind, table):
    """The numbers of one kind of codec, as the Swift table has them; a quarter of the voices and sounds is left out and measured."""
    number, label, _, excess, source, distrusted = table[:, :HEADER].T
    inputs = table[:, HEADER + 1 :]
    chosen = (source == KINDS.index(kind)) & (label < 2) & (inputs[:, 4] < 0.97)
    _, places = np.unique(np.round(np.c_[inputs, label][chosen], 3), axis=0, return_index=True)
    keep = np.flatnonzero(chosen)[places]
    number, label, excess, distrusted, inputs = (part[keep] for part in (number, label, excess, distrusted, inputs))
    wrong, is_real, left_out = label == 1, number >= 200, number % 100 % 4 == 3
    is_sound = (number >= 100) & ~is_real
    weights = np.where(wrong, 0.5 * (~wrong & ~left_out).sum() / max(1, (wrong & ~left_out).sum()), 0.5)
    weights *= np.where(wrong & (excess > 6), 2, 1) * np.where(wrong & (distrusted == 0), 1.5, 1)
    # A stream that is trusted is to stay so: one wrong verdict makes more.
    weights *= np.where(~wrong & (distrusted == 0), 3, 1)
    weights *= np.where(~wrong & is_sound, 3 if kind[0] == "g" else 12, 1)
    # Few, and what matters most.
    weights *= np.where(~wrong & is_real, 4, 1)
    mean, spread = inputs.mean(0), inputs.std(0) + 1e-3
    inputs = (inputs - mean) / spread
    one, biases, out, bias = train(inputs[~left_out], label[~left_out], weights[~left_out], 30)
    sums = np.maximum(inputs @ one + biases, 0) @ out + bias
    good = ~wrong & ~is_sound & (distrusted == 0)
    judged = [(sums[good & is_real], PEOPLE), (sums[good & left_out & ~is_real], LEFT_OUT)]
    zero, minus = (max(np.quantile(part, 1 - shares[index]) for part, shares in judged if len(part)) for index in (0, 1))
    scale = max(0.5, zero - minus)
    sums = (sums - zero) / scale
    for title, part in [("all", left_out), ("trusted", left_out & (distrusted == 0)), ("people", is_real & (distrusted == 0))]:
        shares = [f"{100 * (sums[part & wrong] > bound).mean():.0f}/{100 * (sums[part & ~wrong] > bound).mean():.2f}" for bound in (0, -0.5, -1)]
        counts = f"{(part & wrong).sum()} wrong, {(part & ~wrong).sum()} right"
        print(f"{kind} {title}: {counts}; % of wrong/right above 0, -0.5, -1: {'  '.join(shares)}", flush=True)
    one = one / spread[:, None]
    return [*one.T.ravel(), *(biases - mean @ one), *(out / scale), (bias[0] - zero) / scale]


def write(numbers, path):
    lines, line = [], "   "
    for number in numbers:
        text = f"{number:.3g}"
        text = f" {f'{number:.6f}' if 'e' in text else text},"
        if len(line) + len(text) > 128:
            lines, line = [*lines, line], "   "
        line += text
    text = path.read_text()
    head, tail = text.index("= [\n") + 4, text.index("\n  ]\n")
    text = text[:head] + "\n".join([*lines, line]) + text[tail:]
    for name, value in [("inputs", INPUTS), ("nodes", NODES), ("count", len(numbers) // len(KINDS))]:
        start = text.index(f"static let {name} = ")
        text = text[:start] + f"static let {name} = {value}" + text[text.index("\n", start) :]
    start = text.index("InlineArray<") + 12
    path.write_text(text[:start] + str(len(numbers)) + text[text.index(",", start) :])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for speech and rows, which are kept")
    parser.add_argument("--packets", type=pathlib.Path, help="what other_encoders.py made")
    parser.add_argument("--binary", default=ROOT / "Bench/.build/release/bench-noise")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "Sources/Media/AudioCodecs/SuddenSoundWeights.swift")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    numbers = [*range(VOICES), *range(100, 100 + SOUNDS)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = list(pool.map(collect, [(number, options.folder, options.binary) for number in numbers]))
        files = sorted(options.packets.glob("*.packets")) if options.packets else []
        parts += pool.map(collect_packets, [(file, options.folder, options.binary) for file in files])
    table = thinned(np.concatenate(parts))
    print(f"{len(table)} rows", flush=True)
    write([number for kind in KINDS for number in fit(kind, table)], options.output)


if __name__ == "__main__":
    main()
