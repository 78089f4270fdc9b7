"""aiortc as a client: a second stack that nobody here wrote. It keeps each media packet as it came; what a listener hears of them is made
afterwards by a player with a fixed buffer (hearing.py), so that only the gateway is judged.

One JSON object as argument: play (WAV), host. Lines: {"do": "offer"}, {"do": "answer", "sdp"}, {"do": "accept", "sdp"}, {"do": "connected"},
{"do": "speak"}, {"do": "finish", "file"}.
"""
import asyncio, fractions, gc, json, os, sys, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Tests/Interop/peers"))
import aioice.ice, av
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from aiortc.rtcrtpreceiver import RTCRtpReceiver
import audio, processes

options = json.loads(sys.argv[1])
processes.be_prompt()
# A collection of all objects takes longer than a packet may be late; a call is short.
gc.freeze()
gc.disable()
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [options["host"]]
came = []
received = RTCRtpReceiver._handle_rtp_packet


async def note(self, packet, arrival_time_ms):
    came.append((time.time(), packet.sequence_number, packet.timestamp, packet.payload_type, bytes(packet.payload)))
    await received(self, packet, arrival_time_ms)


RTCRtpReceiver._handle_rtp_packet = note


class Microphone(MediaStreamTrack):
    """48 kHz frames of 20 ms at their times: silence until told to speak, then the file, then silence."""

    kind = "audio"

    def __init__(self, samples):
        super().__init__()
        self.samples, self.at, self.begin, self.count = np.repeat(samples, 6), None, None, 0
        self.silent, self.worst = 0, 0.0

    async def recv(self):
        if self.readyState != "live":
            raise MediaStreamError
        if self.begin is None:
            self.begin = time.time()
        due = self.begin + self.count * 0.02
        await asyncio.sleep(max(0, due - time.time()))
        self.worst = max(self.worst, time.time() - due)
        block = np.zeros(960, np.int16)
        if self.at is not None:
            if self.at == 0:
                self.silent = self.count
            part = self.samples[self.at : self.at + 960]
            block[: len(part)] = part
            self.at += 960
        frame = av.AudioFrame.from_ndarray(block.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48000, self.count * 960, fractions.Fraction(1, 48000)
        self.count += 1
        return frame


async def consume(track):
    try:
        while True:
            await track.recv()
    except MediaStreamError:
        pass


def tell(**message):
    print(json.dumps(message), flush=True)


async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    microphone = Microphone(audio.read_wav(options["play"]))
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.addTrack(microphone)
    connection.on("track", lambda track: asyncio.ensure_future(consume(track)))
    connected = asyncio.Event()
    connection.on("connectionstatechange", lambda: connection.connectionState == "connected" and connected.set())
    tell(ready=True)
    while line := await reader.readline():
        message = json.loads(line)
        match message["do"]:
            case "offer":
                await connection.setLocalDescription(await connection.createOffer())
                tell(sdp=connection.localDescription.sdp)
            case "answer":
                await connection.setRemoteDescription(RTCSessionDescription(message["sdp"], "offer"))
                await connection.setLocalDescription(await connection.createAnswer())
                tell(sdp=connection.localDescription.sdp)
            case "accept":
                await connection.setRemoteDescription(RTCSessionDescription(message["sdp"], "answer"))
                tell(ok=True)
            case "connected":
                await asyncio.wait_for(connected.wait(), 15)
                tell(ok=True)
            case "speak":
                microphone.at = 0
                tell(ok=True)
            case "finish":
                packets = list(came)
                joined = b"".join(payload for *_, payload in packets)
                np.savez(
                    message["file"], at=np.array([p[0] for p in packets]), sequence=np.array([p[1] for p in packets], int),
                    stamp=np.array([p[2] for p in packets], np.int64), type=np.array([p[3] for p in packets], int),
                    length=np.array([len(p[4]) for p in packets], int), octets=np.frombuffer(joined, np.uint8))
                await connection.close()
                tell(silentFrames=microphone.silent, worst_ms=round(microphone.worst * 1000, 2))
                return


asyncio.run(main())
