"""Makes the packets beside it: speech of eSpeak NG by encoders that are not this project's, which the receive path is to let through.

ffmpeg 5.1 of Debian 12 has an encoder of Opus of its own (CELT alone), libopus and an encoder of G.722. A file is the encoding's name,
a line end, and for each packet its length in two octets, the higher first, and its octets.

    python3 make.py        # espeak-ng, ffmpeg
"""
import pathlib
import subprocess

TEXT = "Good morning, this is the front desk. I would like to change my booking. Six fish swim past the ship."
OPUS = ["-ar", "48000", "-f", "ogg", "-strict", "-2", "-c:a"]
ENCODERS = {
    "ffmpegCELT": [*OPUS, "opus", "-b:a", "48000", "-opus_delay", "20"],
    "ffmpegStereo": [*OPUS, "opus", "-b:a", "64000", "-opus_delay", "20", "-ac", "2"],
    "libopusAudio": [*OPUS, "libopus", "-b:a", "64000", "-application", "audio", "-frame_duration", "20"],
    "libopusHybrid40": [*OPUS, "libopus", "-b:a", "24000", "-application", "voip", "-frame_duration", "40"],
    "ffmpegG722": ["-ar", "16000", "-f", "g722", "-c:a", "g722"],
}


def ogg_packets(octets):
    """Of one logical stream, less the two packets of its heading (RFC 7845)."""
    packets, place, packet = [], 0, b""
    while place < len(octets):
        count = octets[place + 26]
        lengths, place = octets[place + 27 : place + 27 + count], place + 27 + count
        for length in lengths:
            packet, place = packet + octets[place : place + length], place + length
            if length < 255:
                packets, packet = [*packets, packet], b""
    return packets[2:]


def main():
    speech = subprocess.run(["espeak-ng", "-v", "en-gb-scotland+m1", "--stdout", TEXT], capture_output=True, check=True).stdout
    for name, options in ENCODERS.items():
        command = ["ffmpeg", "-loglevel", "error", "-i", "-", "-af", "volume=-6dB", *options, "-"]
        octets = subprocess.run(command, input=speech, capture_output=True, check=True).stdout
        is_opus = "ogg" in options
        packets = ogg_packets(octets) if is_opus else [octets[at : at + 160] for at in range(0, len(octets) - 159, 160)]
        parts = [len(packet).to_bytes(2, "big") + packet for packet in packets]
        heading = b"opus\n" if is_opus else b"g722\n"
        pathlib.Path(__file__).with_name(f"{name}.packets").write_bytes(heading + b"".join(parts))


if __name__ == "__main__":
    main()
