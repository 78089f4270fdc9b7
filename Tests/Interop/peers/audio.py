"""WAV files and G.711 for the peers, in numpy."""
import wave
import numpy as np


def read_wav(path, rate=8000):
    with wave.open(path, "rb") as f:
        assert f.getnchannels() == 1 and f.getsampwidth() == 2 and f.getframerate() == rate, path
        return np.frombuffer(f.readframes(f.getnframes()), dtype="<i2").copy()


def write_wav(path, samples, rate=8000):
    with wave.open(path, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(np.asarray(samples, dtype="<i2").tobytes())


def _ulaw_table():
    out = np.zeros(256, dtype=np.int16)
    for code in range(256):
        value = ~code & 0xFF
        magnitude = (((value & 0x0F) << 3) + 0x84) << ((value & 0x70) >> 4)
        out[code] = 0x84 - magnitude if value & 0x80 else magnitude - 0x84
    return out


def _alaw_table():
    out = np.zeros(256, dtype=np.int16)
    for code in range(256):
        value = code ^ 0x55
        exponent, magnitude = (value & 0x70) >> 4, (value & 0x0F) << 4
        magnitude = magnitude + 8 if exponent == 0 else (magnitude + 0x108) << (exponent - 1)
        out[code] = magnitude if value & 0x80 else -magnitude
    return out


DECODE = {0: _ulaw_table(), 8: _alaw_table()}


def _encoder(table):
    order = np.argsort(table, kind="stable")
    levels = table[order].astype(np.int32)
    middles = (levels[1:] + levels[:-1]) / 2
    return lambda samples: order[np.searchsorted(middles, np.asarray(samples, dtype=np.int32))].astype(np.uint8)


ENCODE = {0: _encoder(DECODE[0]), 8: _encoder(DECODE[8])}
