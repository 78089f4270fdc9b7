"""An app client of trunkline.v1 on GStreamer's webrtcbin, with libnice's ICE and its own DTLS: answers or places one call at a time, plays a WAV
file, records what it hears.

Debian's Python runs it, which has GStreamer's bindings. WAV files are 8 kHz, mono. Prints one JSON object a line with the events of app_phone.py.
Commands come as lines on standard input: answer, end, dtmf DIGITS, call NUMBER, say (its speech again), quit.

What it records stands where the RTP timestamps say: time without packets is silence in the file. webrtcbin restarts no ICE: asked by the gateway for a
new offer (media.restart) it says so, and goes on with what it has.
"""
import argparse, array, asyncio, json, re, ssl, sys, threading, time, uuid, wave
import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import Gst, GstSdp, GstWebRTC  # noqa: E402
import websockets  # noqa: E402

RATE, FRAME, LOUD = 8000, 160, 500

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
parser.add_argument("--token", required=True)
parser.add_argument("--device", required=True)
parser.add_argument("--play", metavar="WAV")
parser.add_argument("--record", metavar="WAV", help="each call overwrites it; %%d is the call's number from 1")
parser.add_argument("--call", metavar="NUMBER", help="place a call at once")
parser.add_argument("--answer-after", type=float, metavar="SECONDS", help="after the offer; without it the answer command does it")
parser.add_argument("--end-after", type=float, metavar="SECONDS", help="after call.connected")
parser.add_argument("--no-prepare", action="store_true", help="the SDP goes with call.answer")
parser.add_argument("--insecure", action="store_true", help="takes any TLS certificate")
parser.add_argument("--calls", type=int, help="quit after so many")
parser.add_argument("--seconds", type=float, default=120)
options = parser.parse_args()
output = threading.Lock()


def say(event, **more):
    with output:
        print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


def read_wav(path):
    with wave.open(path, "rb") as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2), path
        return array.array("h", file.readframes(file.getnframes()))


def write_wav(path, samples):
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


def setup_of(sdp):
    return re.search(r"a=setup:(\w+)", sdp).group(1)


class Call:
    number = 0

    def __init__(self, phone, identifier, payload_type):
        Call.number += 1
        self.phone, self.id, self.index, self.loop = phone, identifier, Call.number, asyncio.get_running_loop()
        self.ended = self.ready = self.is_described = False
        self.said = read_wav(options.play) if options.play else array.array("h")
        self.next = None
        self.heard, self.first_time, self.is_loud = array.array("h"), None, False
        self.lock = threading.Lock()
        self.gathered, self.state = asyncio.Event(), "new"
        self.pipeline = Gst.parse_launch(
            "webrtcbin name=rtc bundle-policy=max-bundle latency=60 "
            f"appsrc name=mouth is-live=true format=time caps=audio/x-raw,format=S16LE,rate={RATE},channels=1,layout=interleaved ! "
            "audioresample ! audioconvert ! opusenc ! rtpopuspay ! "
            f"application/x-rtp,media=audio,encoding-name=OPUS,clock-rate=48000,encoding-params=(string)2,payload={payload_type} ! rtc.sink_0")
        self.rtc, self.mouth = self.pipeline.get_by_name("rtc"), self.pipeline.get_by_name("mouth")
        self.rtc.connect("pad-added", self.on_pad)
        for name in ("connection-state", "ice-gathering-state"):
            self.rtc.connect("notify::" + name, lambda *_: self.loop.call_soon_threadsafe(self.changed))
        self.pipeline.set_state(Gst.State.PLAYING)
        self.done = threading.Event()
        threading.Thread(target=self.speak, daemon=True).start()

    # What it says: 20 ms at a time by its own clock, silence before and after.

    def speak(self):
        start, count = time.monotonic(), 0
        while not self.done.wait(max(0, start + count * 0.02 - time.monotonic())):
            with self.lock:
                block = array.array("h")
                if self.next is not None:
                    block = self.said[self.next : self.next + FRAME]
                    self.next += FRAME
                    if 0 <= self.next - len(self.said) < FRAME:
                        say("played")
            block.extend([0] * (FRAME - len(block)))
            buffer = Gst.Buffer.new_wrapped(block.tobytes())
            buffer.pts, buffer.duration = count * 20 * Gst.MSECOND, 20 * Gst.MSECOND
            self.mouth.emit("push-buffer", buffer)
            count += 1

    def start(self):
        with self.lock:
            self.next = 0
        say("playing")

    # What it hears

    def on_pad(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        ear = Gst.parse_bin_from_description(
            "rtpopusdepay ! opusdec plc=false ! audioconvert ! audioresample ! "
            f"audio/x-raw,format=S16LE,rate={RATE},channels=1 ! appsink name=sink emit-signals=true sync=false", True)
        ear.get_by_name("sink").connect("new-sample", self.on_sample)
        self.pipeline.add(ear)
        ear.sync_state_with_parent()
        pad.link(ear.get_static_pad("sink"))

    def on_sample(self, sink):
        buffer = sink.emit("pull-sample").get_buffer()
        block = array.array("h", buffer.extract_dup(0, buffer.get_size()))
        with self.lock:
            if self.first_time is None:
                self.first_time = buffer.pts
                say("first_frame", call=self.id)
            missing = (buffer.pts - self.first_time) * RATE // Gst.SECOND - len(self.heard)
            if missing > FRAME:
                self.heard.extend([0] * missing)
            self.heard.extend(block)
            if not self.is_loud and max(map(abs, block), default=0) > LOUD:
                self.is_loud = True
                say("first_sound", call=self.id)
        return Gst.FlowReturn.OK

    # Negotiation

    def changed(self):
        if self.ended:
            return
        if self.rtc.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            self.gathered.set()
        state = self.rtc.get_property("connection-state").value_nick
        if state != self.state:
            self.state = state
            say("media", call=self.id, state=state)
        # It may be connected while it still gathers candidates, before the gateway has its answer.
        if state == "connected" and self.is_described and not self.ready:
            self.ready = True
            body = {"gen": 1, "pair": {"local": "host", "remote": "host"}, "rttMs": 1, "dtls": "gstreamer"}
            asyncio.ensure_future(self.phone.notify("media.ready", body, self.id))
        elif state == "failed":
            asyncio.ensure_future(self.phone.notify("media.fail", {"gen": 1, "stage": "ice", "detail": "webrtcbin failed"}, self.id))

    def described(self):
        """The gateway has its description: media.ready counts from here on."""
        self.is_described = True
        self.changed()

    async def ask(self, signal, *arguments):
        """A signal of webrtcbin's that answers by a promise."""
        future = self.loop.create_future()
        promise = Gst.Promise.new_with_change_func(lambda one: self.loop.call_soon_threadsafe(future.set_result, one.get_reply()))
        self.rtc.emit(signal, *arguments, promise)
        reply = await future
        if reply is not None and reply.has_field("error"):
            raise RuntimeError(f"{signal}: {reply.to_string()}")
        return reply

    async def set_remote(self, kind, text):
        _, message = GstSdp.SDPMessage.new_from_text(text)
        await self.ask("set-remote-description", GstWebRTC.WebRTCSessionDescription.new(kind, message))

    async def local(self, signal, name):
        reply = await self.ask(signal, None)
        await self.ask("set-local-description", reply.get_value(name))
        self.changed()
        await asyncio.wait_for(self.gathered.wait(), 10)
        return self.rtc.get_property("local-description").sdp.as_text()

    async def answer_sdp(self, offer):
        await self.set_remote(GstWebRTC.WebRTCSDPType.OFFER, offer)
        sdp = await self.local("create-answer", "answer")
        say("setup", call=self.id, gen=1, own=setup_of(sdp), gateway=setup_of(offer))
        return sdp

    async def close(self, **why):
        if self.ended:
            return
        self.ended = True
        self.done.set()
        with self.lock:
            heard = self.heard
        if options.record and heard:
            write_wav(options.record % self.index if "%d" in options.record else options.record, heard)
        say("ended", call=self.id, heardMs=len(heard) * 1000 // RATE, **why)
        await self.loop.run_in_executor(None, self.pipeline.set_state, Gst.State.NULL)
        if options.calls and Call.number >= options.calls:
            await self.phone.socket.close()


class Phone:
    def __init__(self):
        self.calls, self.requests, self.sent, self.seen = {}, {}, 0, 0

    async def run(self):
        context = ssl._create_unverified_context() if options.insecure else None
        async with websockets.connect(options.url, subprotocols=["trunkline.v1"], ping_interval=None, ssl=context) as self.socket:
            device = {"id": options.device, "platform": "linux", "sdk": "gstreamer"}
            hello = {"auth": options.token, "device": device, "caps": ["media.active"], "state": "fg"}
            await self.socket.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": hello}))
            helpers = [asyncio.ensure_future(one) for one in (self.heartbeat(), self.commands())]
            try:
                async for text in self.socket:
                    await self.receive(json.loads(text))
            except websockets.ConnectionClosed:
                pass
            for helper in helpers:
                helper.cancel()
            say("closed", code=self.socket.close_code)
        for call in list(self.calls.values()):
            await call.close(reason="socket")

    async def heartbeat(self):
        while True:
            await asyncio.sleep(10)
            await self.socket.send(json.dumps({"t": "ping"}))

    async def notify(self, kind, body, call, **more):
        self.sent += 1
        await self.socket.send(json.dumps({"t": kind, "seq": self.sent, "ack": self.seen, "call": call, "d": body, **more}))

    async def request(self, kind, body, call):
        identifier = str(uuid.uuid4())
        future = self.requests[identifier] = asyncio.get_running_loop().create_future()
        await self.notify(kind, body, call, id=identifier)
        return await asyncio.wait_for(future, 30)

    async def receive(self, message):
        kind, body, identifier = message["t"], message.get("d", {}), message.get("call")
        if "seq" in message:
            if message["seq"] <= self.seen:
                return
            self.seen = message["seq"]
            await self.socket.send(json.dumps({"t": "ack", "ack": self.seen}))
        if message.get("re") in self.requests:
            if kind == "err":
                say("err", **body)
            return self.requests.pop(message["re"]).set_result(message)
        came = {"receivedAt": int(time.time() * 1000)} if kind == "call.connected" else {}
        say(kind, call=identifier, **came, **{k: v for k, v in body.items() if k not in ("sdp", "ice", "resumeToken", "call")})
        call = self.calls.get(identifier)
        if kind == "welcome" and options.call:
            asyncio.ensure_future(self.place(options.call))
        elif kind == "call.offer":
            asyncio.ensure_future(self.offered(identifier, body["sdp"]))
        elif call and kind == "call.connected":
            call.start()
            await self.notify("media.active", {"capture": True, "playout": True}, identifier)
            if options.end_after is not None:
                call.loop.call_later(options.end_after, lambda: asyncio.ensure_future(self.command(["end"])))
        elif call and kind in ("call.ended", "call.cancel", "call.gone"):
            await call.close(kind=kind, reason=body.get("reason"), by=body.get("by"))

    async def offered(self, identifier, offer):
        call = self.calls[identifier] = Call(self, identifier, re.search(r"a=rtpmap:(\d+) opus/48000", offer, re.I).group(1))
        call.offer = offer
        await self.notify("call.ringing", {}, identifier)
        if not options.no_prepare:
            reply = await self.request("call.prepare", {"sdp": await call.answer_sdp(offer), "gen": 1}, identifier)
            say("prepared", call=identifier, ok=reply["t"] == "ok")
            call.described()
        if options.answer_after is not None:
            await asyncio.sleep(options.answer_after)
            await self.answer(call)

    async def answer(self, call):
        sdp = {"sdp": await call.answer_sdp(call.offer)} if options.no_prepare else {}
        reply = await self.request("call.answer", {"ageMs": 0, "gen": 1, **sdp}, call.id)
        say("answered", call=call.id, won=reply["t"] == "ok", code=reply.get("d", {}).get("code"))
        call.described()

    async def place(self, number):
        identifier = str(uuid.uuid4())
        call = self.calls[identifier] = Call(self, identifier, 111)
        sdp = await call.local("create-offer", "offer")
        say("starting", call=identifier)
        reply = await self.request("call.start", {"to": {"k": "phone", "h": number}, "sdp": sdp, "gen": 1, "video": False}, identifier)
        if reply["t"] != "ok":
            return await call.close(reason="refused", code=reply["d"].get("code"))
        answer = reply["d"]["sdp"]
        say("setup", call=identifier, gen=1, own=setup_of(sdp), gateway=setup_of(answer))
        await call.set_remote(GstWebRTC.WebRTCSDPType.ANSWER, answer)
        call.described()

    async def commands(self):
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while words := (await reader.readline()).decode().split():
            await self.command(words)

    async def command(self, words):
        call = next((one for one in reversed(list(self.calls.values())) if not one.ended), None)
        if words[0] == "quit":
            await self.socket.close()
        elif words[0] == "call":
            asyncio.ensure_future(self.place(words[1]))
        elif call is None:
            say("nocall", command=words[0])
        elif words[0] == "answer":
            asyncio.ensure_future(self.answer(call))
        elif words[0] == "say":
            call.start()
        elif words[0] == "end":
            asyncio.ensure_future(self.request("call.end", {"reason": "localEnd"}, call.id))
        elif words[0] == "dtmf":
            asyncio.ensure_future(self.request("call.dtmf", {"digits": words[1], "kind": "tone"}, call.id))


async def main():
    try:
        await asyncio.wait_for(Phone().run(), options.seconds)
    except asyncio.TimeoutError:
        say("timeout")
        sys.exit(1)


Gst.init(None)
asyncio.run(main())
