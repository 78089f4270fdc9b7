"""Reads a recording with FFmpeg's demuxers and decoders and writes each channel as a WAV file of 8 kHz.

    recording_reader.py FILE LEFT.wav RIGHT.wav
"""
import json
import sys

import av
import numpy as np

from audio import write_wav


def main(path, left, right):
    with av.open(path) as file:
        stream = file.streams.audio[0]
        to_8k = av.AudioResampler(format="s16", layout="stereo", rate=8000)
        pieces, faults = [], 0
        for packet in file.demux(stream):
            try:
                frames = packet.decode()
            except av.error.FFmpegError:
                faults += 1
                continue
            pieces += [p.to_ndarray() for f in frames for p in to_8k.resample(f)]
        pieces += [p.to_ndarray() for p in to_8k.resample(None)]
        told = {
            "event": "read", "format": file.format.name, "codec": stream.codec_context.name, "rate": stream.codec_context.sample_rate,
            "channels": stream.codec_context.channels, "faults": faults,
        }
    samples = np.concatenate(pieces, axis=1).reshape(-1, 2) if pieces else np.zeros((0, 2), dtype=np.int16)
    told["seconds"] = round(len(samples) / 8000, 2)
    write_wav(left, samples[:, 0])
    write_wav(right, samples[:, 1])
    print(json.dumps(told), flush=True)


main(*sys.argv[1:4])
