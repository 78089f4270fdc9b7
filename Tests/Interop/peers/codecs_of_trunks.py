"""Codecs of a trunk for the peers: each takes and gives speech at its own rate, 20 ms or more of it, and counts RTP in its own clock.

G.711 and L16 in numpy; G.722 and Opus by ffmpeg's (PyAV), which is not ours.
"""
import numpy as np
import audio


def resample(samples, source, target):
    """Band-limited, of a whole recording; equal rates give it back."""
    if source == target or not len(samples):
        return np.asarray(samples, dtype=np.int16)
    count = len(samples) * target // source
    spectrum = np.fft.rfft(np.asarray(samples, dtype=np.float64))
    wide = np.zeros(count // 2 + 1, dtype=complex)
    common = min(len(spectrum), len(wide))
    wide[:common] = spectrum[:common]
    return np.clip(np.fft.irfft(wide, count) * target / source, -32768, 32767).astype(np.int16)


class G711:
    rate = clock = 8000

    def __init__(self, payload_type):
        self.payload_type = payload_type

    def encode(self, samples):
        return audio.ENCODE[self.payload_type](samples).tobytes()

    def decode(self, payload):
        return audio.DECODE[self.payload_type][np.frombuffer(payload, dtype=np.uint8)]


class L16:
    rate = clock = 8000

    def encode(self, samples):
        return np.asarray(samples).astype(">i2").tobytes()

    def decode(self, payload):
        return np.frombuffer(payload[: len(payload) // 2 * 2], dtype=">i2").astype(np.int16)


class FFmpeg:
    def __init__(self, encoder, decoder, rate, clock):
        import av

        self.av, self.rate, self.clock = av, rate, clock
        self.encoder, self.decoder = av.CodecContext.create(encoder, "w"), av.CodecContext.create(decoder, "r")
        for codec in (self.encoder, self.decoder):
            codec.sample_rate, codec.layout, codec.format = rate, "mono", "s16"
        if encoder == "libopus":
            self.encoder.bit_rate = 24000
        self.resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)

    def encode(self, samples):
        frame = self.av.AudioFrame.from_ndarray(np.asarray(samples, dtype=np.int16).reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = self.rate
        return b"".join(bytes(packet) for packet in self.encoder.encode(frame))

    def decode(self, payload):
        frames = self.decoder.decode(self.av.Packet(payload))
        parts = [out.to_ndarray().reshape(-1) for frame in frames for out in self.resampler.resample(frame)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int16)


def codec(payload_type):
    """By the payload types of the scenarios: 0 PCMU, 8 PCMA, 9 G.722, 96 Opus, 98 L16."""
    if payload_type == 9:
        return FFmpeg("g722", "g722", 16000, 8000)
    if payload_type == 96:
        return FFmpeg("libopus", "libopus", 48000, 48000)
    if payload_type == 98:
        return L16()
    return G711(payload_type)
