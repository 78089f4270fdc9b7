"""A bot at the other end of a media stream, on the websockets library: Twilio's format, or 16-bit PCM in binary messages.

    stream_bot.py --port 9000 --format mulaw --play bot.wav --record heard.wav --do speak

What it does once `start` has come:
    speak     sends all of --play at once, with the mark "end" behind it
    live      the same, in real time
    pipecat   the same through Pipecat's TwilioFrameSerializer, which also reads what it hears
    echo      sends back what it hears, as it comes
    clear     sends ten seconds of a tone with the mark "tone"; after the first second `clear`, then --play with the mark "end"
    flood     sends five minutes of a tone at once, and 3000 marks
    junk      sends what no peer should, then --play
    deaf      reads nothing any more
    silent    only listens
    close     closes after a second
    drop      ends the process after a second, without a close
Events come as lines of JSON.
"""
import argparse
import asyncio
import base64
import json
import os
import ssl
import sys
import time

import numpy as np
import websockets

from audio import DECODE, ENCODE, read_wav, write_wav

# at once: it takes seconds, in which a call would go by
if "pipecat" in sys.argv:
    from pipecat.frames.frames import OutputAudioRawFrame, StartFrame
    from pipecat.serializers.twilio import TwilioFrameSerializer

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, required=True)
options.add_argument("--format", default="mulaw")
options.add_argument("--play")
options.add_argument("--record")
options.add_argument("--do", default="speak")
options.add_argument("--refuse", type=int, help="answer the handshake with this status")
options.add_argument("--stall", action="store_true", help="never answer the handshake")
options.add_argument("--certificate")
options.add_argument("--key")
args = options.parse_args()
RATE = 16000 if args.format == "pcm16" else 8000
FRAME = RATE // 50
began = time.monotonic()


def tell(event, **more):
    print(json.dumps({"event": event, "at": round(time.monotonic() - began, 3), **more}), flush=True)


def frames(samples):
    return [samples[k:k + FRAME] for k in range(0, len(samples), FRAME)]


def tone(seconds):
    return (8000 * np.sin(2 * np.pi * 1000 * np.arange(int(seconds * RATE)) / RATE)).astype(np.int16)


class Bot:
    def __init__(self, socket):
        self.socket, self.sid, self.heard, self.counts = socket, None, [], {}
        self.serializer = None

    async def say(self, samples):
        if args.format == "mulaw":
            payload = base64.b64encode(ENCODE[0](samples).tobytes()).decode()
            await self.socket.send(json.dumps({"event": "media", "streamSid": self.sid, "media": {"payload": payload}}))
        else:
            await self.socket.send(np.asarray(samples, dtype="<i2").tobytes())

    async def send(self, event, **more):
        await self.socket.send(json.dumps({"event": event, "streamSid": self.sid, **more}))

    def mark(self, name):
        return self.send("mark", mark={"name": name})

    async def act(self):
        speech = read_wav(args.play, RATE) if args.play else np.zeros(0, dtype=np.int16)
        if args.do in ("speak", "junk"):
            if args.do == "junk":
                for text in ("nonsense", "[]", "{}", '{"event":"media"}', '{"event":"media","media":{"payload":"***"}}',
                             '{"event":"mark","mark":{"name":"%s"}}' % ("x" * 300), '{"event":"unknown"}'):
                    await self.socket.send(text)
                await self.socket.send(b"\x01\x02\x03")
            for frame in frames(speech):
                await self.say(frame)
            await self.mark("end")
            tell("said")
        elif args.do == "live":
            start = time.monotonic()
            for index, frame in enumerate(frames(speech)):
                await asyncio.sleep(max(0, start + index / 50 - time.monotonic()))
                await self.say(frame)
            await self.mark("end")
            tell("said")
        elif args.do == "pipecat":
            for frame in frames(speech):
                out = await self.serializer.serialize(OutputAudioRawFrame(audio=frame.astype("<i2").tobytes(), sample_rate=RATE, num_channels=1))
                if out:
                    await self.socket.send(out)
            await self.mark("end")
            tell("said")
        elif args.do == "clear":
            await self.say(tone(10))
            await self.mark("tone")
            await asyncio.sleep(1)
            tell("clearing")
            await self.send("clear")
            for frame in frames(speech):
                await self.say(frame)
            await self.mark("end")
        elif args.do == "flood":
            for _ in range(300):
                await self.say(tone(1))
            for number in range(3000):
                await self.mark(f"m{number}")
            tell("said")
        elif args.do == "close":
            await asyncio.sleep(1)
            await self.socket.close(1000)
        elif args.do == "drop":
            await asyncio.sleep(1)
            os._exit(0)

    async def hear(self, message):
        if isinstance(message, bytes):
            self.counts["binary"] = self.counts.get("binary", 0) + 1
            samples = np.frombuffer(message, dtype="<i2")
        else:
            data = json.loads(message)
            event = data["event"]
            self.counts[event] = self.counts.get(event, 0) + 1
            if event == "start":
                self.sid = data["streamSid"]
                tell("start", start=data["start"], authorization=self.socket.request.headers.get("Authorization"), path=self.socket.request.path)
                if args.do == "pipecat":
                    params = TwilioFrameSerializer.InputParams(auto_hang_up=False)
                    self.serializer = TwilioFrameSerializer(stream_sid=self.sid, params=params)
                    await self.serializer.setup(StartFrame(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE))
                return True
            if event == "mark":
                tell("mark", name=data["mark"]["name"])
            elif event == "dtmf":
                tell("dtmf", digit=data["dtmf"]["digit"])
            elif event == "stop":
                tell("stop")
            if event != "media":
                return False
            if self.serializer:
                frame = await self.serializer.deserialize(message)
                samples = np.frombuffer(frame.audio, dtype="<i2")
            else:
                samples = DECODE[0][np.frombuffer(base64.b64decode(data["media"]["payload"]), dtype=np.uint8)]
        self.heard.append(samples)
        if args.do == "echo":
            await self.say(samples)
        if not self.counts.get("told") and np.abs(samples.astype(np.int32)).max(initial=0) > 500:
            self.counts["told"] = 1
            tell("first_sound")
        return False


async def serve(socket):
    bot, acting = Bot(socket), None
    tell("connected")
    try:
        async for message in socket:
            if await bot.hear(message):
                acting = asyncio.create_task(bot.act())
                if args.do == "deaf":
                    socket.transport.pause_reading()
                    await asyncio.sleep(3600)
    except websockets.ConnectionClosed:
        pass
    if acting:
        acting.cancel()
    if args.record and bot.heard:
        write_wav(args.record, np.concatenate(bot.heard), RATE)
    tell("closed", code=socket.close_code, counts=bot.counts)


def answer(connection, request):
    if args.refuse:
        return connection.respond(args.refuse, "no\n")


async def main():
    if args.stall:
        server = await asyncio.start_server(lambda reader, writer: asyncio.sleep(3600), "127.0.0.1", args.port)
        tell("listening")
        await server.serve_forever()
    context = None
    if args.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(args.certificate, args.key)
    async with websockets.serve(serve, "127.0.0.1", args.port, ssl=context, process_request=answer, compression=None, max_size=2**24):
        tell("listening")
        await asyncio.Future()


asyncio.run(main())
