"""An app client of trunkline.v1 on aiortc: answers or places one call at a time, plays a WAV file, records what it hears.

Prints one JSON object a line: {"event": ..., "at": unix milliseconds, ...}. Commands come as lines on standard input:
answer, reject, end, fail (the media), mute, unmute, dtmf DIGITS, group (all its calls), leave (the newest one), say (its speech again), ask TYPE CALL JSON (any request about its call of this number, from 1;
"@2" in it is the id of its second one), call NUMBER, drop (the socket), back (--resume-when-told), vanish (no farewell), quit.

With --nodes it has calls at several nodes: a call.wake opens a further socket (docs/reference/protocol.md, Many nodes), whose events are said as the
others are. --keep-wakes says them and follows none.

With --register and --wait-for-push it plays an app that was killed: it registers its push token and leaves; a push starts it again with the
push's wake token.
"""
import argparse, asyncio, fractions, json, os, re, ssl, sys, time, uuid
import av
import numpy as np
import aioice.ice
import websockets
from aiortc.rtcconfiguration import RTCIceTransportPolicy
from aiortc import MediaStreamTrack, RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
import audio

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
parser.add_argument("--token", required=True)
parser.add_argument("--device", required=True)
parser.add_argument("--play")
parser.add_argument("--rate", type=int, default=8000, choices=[8000, 16000], help="of the WAV files that it plays and records")
parser.add_argument("--record", help="each call overwrites it; %%d is the call's number from 1")
parser.add_argument("--play-at", choices=["won", "connected"], default="connected")
parser.add_argument("--answer-after", type=float, help="seconds after the offer; without it the answer command does it")
parser.add_argument("--end-after", type=float, help="seconds after call.connected")
parser.add_argument("--no-prepare", action="store_true", help="the SDP goes with call.answer")
parser.add_argument("--no-ice", action="store_true", help="never answers with candidates that work")
parser.add_argument("--bad-fingerprint", action="store_true")
parser.add_argument("--unusable", action="store_true", help="an SDP that no gateway can use: it wants no connection at all")
parser.add_argument("--resume-after", type=float, help="seconds after its socket broke: once")
parser.add_argument("--resume-when-told", action="store_true", help="after its socket broke, by the command back: once")
parser.add_argument("--no-active", action="store_true", help="without media.active in caps")
parser.add_argument("--silent", action="store_true", help="no call.ringing")
parser.add_argument("--call", help="place a call to this number at once")
parser.add_argument("--location", help="of its call.start: PIDF-LO")
parser.add_argument("--rtt", type=float, default=0, help="milliseconds of round trip, on socket and media")
parser.add_argument("--host", help="use this address alone for ICE, also 127.0.0.1")
parser.add_argument("--insecure", action="store_true", help="takes any TLS certificate")
parser.add_argument("--seconds", type=float, default=120)
parser.add_argument("--calls", type=int, help="quit after so many calls")
parser.add_argument("--register", metavar="TOKEN", help="logs in to register this APNs token, and leaves")
parser.add_argument("--wait-for-push", metavar="HOST:PORT", help="the push sandbox's apps port; - for a line of JSON on standard input")
parser.add_argument("--start-after", type=float, default=0, help="seconds from the push to the connection")
parser.add_argument("--age", type=int, default=0, help="ageMs of call.answer: the tap was before the connection")
parser.add_argument("--trace", action="store_true", help="says every message, either way")
parser.add_argument("--nodes", action="store_true", help="caps: nodes")
parser.add_argument("--keep-wakes", action="store_true", help="follows no call.wake")
parser.add_argument("--turn", action="store_true", help="its media may go over the TURN servers of welcome")
parser.add_argument("--relay", action="store_true", help="and no other way")
parser.add_argument("--media-clock", action="store_true", help="what it records stands where the RTP timestamps say: time without packets is silence")
parser.add_argument("--call-id", help="the UUID of the call that it places")
options = parser.parse_args()
if options.host:
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [options.host]
tls = ssl._create_unverified_context() if options.insecure else None


def say(event, **more):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


def trace(way, m):
    if options.trace and m["t"] not in ("ack", "ping", "pong"):
        d = m.get("d", {})
        proof = [key for key in ("auth", "wake", "resume") if m["t"] == "hello" and key in d]
        more = proof + [str(d[key]) for key in ("code", "reason", "stage") if key in d] + (["won"] if d.get("won") else [])
        say("wire", line=" ".join([way, m["t"]] + more))


def widened(samples):
    """At 48 kHz. Of 16 by a filter, so that a browser's ear finds nothing above 8 kHz that was not said."""
    if options.rate == 8000:
        return np.repeat(samples, 6)
    taps = np.sinc(np.arange(-48, 49) / 3) * np.hanning(97)
    spread = np.zeros(len(samples) * 3)
    spread[::3] = samples
    return np.clip(np.convolve(spread, taps, "same"), -32768, 32767).astype(np.int16)


def narrowed(samples):
    """What was heard, at the rate of the file."""
    if options.rate == 8000:
        return samples
    taps = np.sinc(np.arange(-48, 49) / 3) * np.hanning(97) / 3
    return np.convolve(samples, taps, "same")[::3]


class Speech(MediaStreamTrack):
    """48 kHz frames of 20 ms: silence until `start`, then the speech once, then silence."""

    kind = "audio"

    def __init__(self, samples):
        super().__init__()
        self.samples = widened(samples)
        self.at = None
        self.begin = None
        self.count = 0
        self.muted = False

    def start(self):
        if self.at is None:
            self.at = 0
            say("playing")

    async def recv(self):
        if self.readyState != "live":
            raise MediaStreamError
        if self.begin is None:
            self.begin = time.monotonic()
        wait = self.begin + self.count * 0.02 - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        block = np.zeros(960, dtype=np.int16)
        if self.at is not None:
            part = self.samples[self.at : self.at + 960]
            block[: len(part)] = part
            self.at += 960
            if 0 <= self.at - len(self.samples) < 960:
                say("played")
        frame = av.AudioFrame.from_ndarray(block.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = 48000
        frame.pts = self.count * 960
        frame.time_base = fractions.Fraction(1, 48000)
        self.count += 1
        return frame


class DelayLine(asyncio.DatagramProtocol):
    """One direction's socket of a path with delay between app and gateway."""

    def __init__(self, delay):
        self.delay = delay
        self.other = None
        self.target = None
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        if self.other.target is None or self.is_outer:
            self.target = address if self.is_outer else self.target
        asyncio.get_running_loop().call_later(self.delay, self.other.send, data)

    def send(self, data):
        if self.target and not self.transport.is_closing():
            self.transport.sendto(data, self.target)


async def delayed_path(host, port, delay):
    loop = asyncio.get_running_loop()
    _, outer = await loop.create_datagram_endpoint(lambda: DelayLine(delay), local_addr=(options.host or "127.0.0.1", 0))
    _, inner = await loop.create_datagram_endpoint(lambda: DelayLine(delay), local_addr=(options.host or "127.0.0.1", 0))
    outer.is_outer, inner.is_outer = True, False
    outer.other, inner.other = inner, outer
    inner.target = (host, port)
    return outer.transport.get_extra_info("sockname")


class Call:
    number = 0

    def __init__(self, phone, identifier):
        Call.number += 1
        self.phone, self.id, self.index = phone, identifier, Call.number
        self.gen = 1
        self.heard = []
        self.won = self.connected = self.ended = False
        self.ready_sent = False
        self.speech = Speech(audio.read_wav(options.play, options.rate) if options.play else np.zeros(0, dtype=np.int16))
        self.pc = RTCPeerConnection(self.configuration())
        self.pc.addTrack(self.speech)
        self.pc.on("track", self.on_track)
        self.pc.on("connectionstatechange", self.on_state)
        self.task = None

    def configuration(self):
        if not options.relay and not options.turn:
            return RTCConfiguration(iceServers=[])
        servers = [RTCIceServer(urls=s["urls"], username=s.get("username"), credential=s.get("credential")) for s in self.phone.ice]
        return RTCConfiguration(iceServers=servers, iceTransportPolicy=RTCIceTransportPolicy.RELAY if options.relay else RTCIceTransportPolicy.ALL)

    def on_track(self, track):
        async def pull():
            while True:
                try:
                    frame = await track.recv()
                except MediaStreamError:
                    return
                block = frame.to_ndarray().reshape(-1, len(frame.layout.channels)).mean(axis=1)
                # Of 16 kHz it is decimated at the end, by a filter that is flat in the band.
                step = frame.sample_rate // (48000 if options.rate == 16000 else 8000)
                if options.media_clock:
                    missing = (frame.pts - getattr(self, "next_pts", frame.pts)) // step
                    self.next_pts = frame.pts + len(block)
                    if 0 < missing < 60 * 48000:
                        self.heard.append(np.zeros(missing))
                block = block[: len(block) // step * step].reshape(-1, step).mean(axis=1)
                if not self.heard:
                    say("first_frame", call=self.id)
                if not getattr(self, "loud", False) and np.abs(block).max() > 500:
                    self.loud = True
                    say("first_sound", call=self.id)
                self.heard.append(block)

        self.task = asyncio.ensure_future(pull())

    async def on_state(self):
        say("media", call=self.id, state=self.pc.connectionState)
        if self.pc.connectionState == "connected" and not self.ready_sent:
            self.ready_sent = True
            await self.phone.send("media.ready", {"gen": self.gen, "pair": {"local": "host", "remote": "host"}, "rttMs": 1, "dtls": "aiortc"}, self.id)
        elif self.pc.connectionState == "failed" and not self.ended:
            await self.phone.send("media.fail", {"gen": self.gen, "stage": "ice", "detail": "aiortc failed"}, self.id)

    async def remote(self, sdp):
        if options.rtt:
            found = re.search(r"a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host", sdp, re.I)
            host, port = await delayed_path(found.group(1), int(found.group(2)), options.rtt / 2000)
            sdp = re.sub(r"(a=candidate:\S+ 1 udp \d+) \S+ \d+ typ host", rf"\1 {host} {port} typ host", sdp, flags=re.I)
        if options.no_ice:
            sdp = re.sub(r"(a=candidate:\S+ 1 udp \d+) (\S+) \d+ typ host", r"\1 \2 9 typ host", sdp, flags=re.I)
        return sdp

    def local(self):
        sdp = self.pc.localDescription.sdp
        if options.unusable:
            sdp = sdp.replace("a=setup:active", "a=setup:holdconn")
        if options.bad_fingerprint:
            sdp = re.sub(r"(a=fingerprint:\S+ )..", r"\g<1>00", sdp)
        return sdp

    async def answer_sdp(self, offer):
        await self.pc.setRemoteDescription(RTCSessionDescription(sdp=await self.remote(offer), type="offer"))
        await self.pc.setLocalDescription(await self.pc.createAnswer())
        return self.local()

    async def close(self, why):
        if self.ended:
            return
        self.ended = True
        if options.record and self.heard:
            path = options.record % self.index if "%d" in options.record else options.record
            audio.write_wav(path, np.clip(narrowed(np.concatenate(self.heard)), -32768, 32767), options.rate)
        reports = (await self.pc.getStats()).values()
        lost = sum(report.packetsLost for report in reports if report.type == "inbound-rtp")
        level = float(np.sqrt(np.mean(np.concatenate(self.heard) ** 2))) if self.heard else 0
        say("ended", call=self.id, heardMs=sum(map(len, self.heard)) // (48 if options.rate == 16000 else 8), level=round(level, 1), lost=lost, **why)
        await self.pc.close()
        if options.calls and Call.number >= options.calls:
            await Phone.main.quit()


class Phone:
    # of all sockets; the one that logs in
    calls, main = {}, None

    def __init__(self, wake=None, url=None):
        self.wake, self.url, self.is_further = wake, url or options.url, url is not None
        self.session = None
        self.ice = []
        self.requests = {}
        self.seq = 0
        self.seen = 0
        self.socket = None
        self.outbox = asyncio.Queue()
        self.done = asyncio.Event()
        self.told = asyncio.Event()

    async def raw(self, message):
        text = json.dumps(message)
        trace(">", message)
        if options.rtt:
            await self.outbox.put((time.monotonic() + options.rtt / 2000, text))
        else:
            await self.socket.send(text)

    async def deliver(self):
        while True:
            at, text = await self.outbox.get()
            await asyncio.sleep(max(0, at - time.monotonic()))
            await self.socket.send(text)

    async def send(self, kind, body=None, call=None, request=False, numbered=True):
        message = {"t": kind, "d": body or {}}
        if call:
            message["call"] = call
        if numbered:
            self.seq += 1
            message["seq"] = self.seq
            message["ack"] = self.seen
        if not request:
            return await self.raw(message)
        message["id"] = str(uuid.uuid4())
        future = asyncio.get_running_loop().create_future()
        self.requests[message["id"]] = future
        await self.raw(message)
        return await asyncio.wait_for(future, 30)

    async def run(self):
        helpers = []
        proof = {"wake": self.wake} if self.wake else {"auth": options.token}
        while True:
            async with websockets.connect(self.url, subprotocols=["trunkline.v1"], ping_interval=None, ssl=tls) as socket:
                self.socket = socket
                tasks = [self.deliver, self.heartbeat] + ([] if self.is_further else [self.commands])
                helpers = helpers or [asyncio.ensure_future(run()) for run in tasks]
                caps = ([] if options.no_active else ["media.active"]) + (["nodes"] if options.nodes else [])
                hello = {**proof, "device": {"id": options.device, "platform": "linux", "sdk": "aiortc"}, "caps": caps, "state": "fg"}
                await self.raw({"t": "hello", "id": str(uuid.uuid4()), "d": hello})
                try:
                    async for text in socket:
                        asyncio.ensure_future(self.later(text)) if options.rtt else await self.receive(json.loads(text))
                except websockets.ConnectionClosed:
                    pass
                say("closed", code=socket.close_code, reason=socket.close_reason)
            if (options.resume_after is None and not options.resume_when_told) or not self.session or self.is_further:
                break
            if options.resume_when_told:
                await self.told.wait()
            else:
                await asyncio.sleep(options.resume_after)
            options.resume_after, options.resume_when_told = None, False
            proof = {"resume": {**self.session, "lastSeq": self.seen}}
        for helper in helpers:
            helper.cancel()
        for call in list(self.calls.values()):
            if call.phone is self or not self.is_further:
                await call.close({"reason": "socket"})
        self.done.set()

    async def later(self, text):
        await asyncio.sleep(options.rtt / 2000)
        await self.receive(json.loads(text))

    async def heartbeat(self):
        while True:
            await asyncio.sleep(10)
            await self.raw({"t": "ping"})

    async def commands(self):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := (await reader.readline()).decode().split():
            await self.command(line[0], line[1:])

    async def command(self, word, rest):
        live = [call for call in self.calls.values() if not call.ended]
        call = live[-1] if live else None
        if word == "call":
            asyncio.ensure_future(self.place(rest[0]))
        elif word == "refresh":
            asyncio.ensure_future(self.refresh())
        elif word == "ask":
            asyncio.ensure_future(self.ask(rest[0], int(rest[1]), " ".join(rest[2:])))
        elif word == "quit":
            await self.quit()
        elif word == "back":
            self.told.set()
        elif word == "drop":
            self.socket.transport.abort()
        elif word == "vanish":
            os._exit(0)
        elif call is None:
            say("nocall", command=word)
        elif word == "answer":
            asyncio.ensure_future(call.phone.answer(call))
        elif word == "reject":
            reply = await call.phone.send("call.reject", {"scope": "all", "reason": rest[0] if rest else "declined"}, call.id, request=True)
            await call.close({"reason": "rejected", "ok": reply["t"] == "ok"})
        elif word == "fail":
            asyncio.ensure_future(call.phone.send("media.fail", {"gen": call.gen, "stage": "ice", "detail": "as told"}, call.id))
        elif word == "end":
            asyncio.ensure_future(call.phone.send("call.end", {"reason": "localEnd"}, call.id, request=True))
        elif word in ("mute", "unmute"):
            asyncio.ensure_future(call.phone.send("call.mute", {"on": word == "mute", "mode": "track"}, call.id, request=True))
        elif word in ("hold", "resume"):
            asyncio.ensure_future(call.phone.send("call.hold", {"on": word == "hold"}, call.id, request=True))
        elif word == "transfer":
            target = {"k": "phone", "h": rest[0]}
            asyncio.ensure_future(call.phone.send("call.transfer", {"target": target, "mode": "blind"}, call.id, request=True))
        elif word == "join":
            first = live[0]
            asyncio.ensure_future(first.phone.send("call.transfer", {"withCall": call.id, "mode": "attended"}, first.id, request=True))
        elif word == "group":
            for other in live[1:]:
                reply = await other.phone.send("call.group", {"with": live[0].id}, other.id, request=True)
                say("grouped", call=other.id, ok=reply["t"] == "ok")
        elif word == "leave":
            reply = await call.phone.send("call.group", {"with": None}, call.id, request=True)
            say("left", call=call.id, ok=reply["t"] == "ok")
        elif word == "say":
            for one in live:
                one.speech.at = 0
        elif word == "dtmf":
            asyncio.ensure_future(call.phone.send("call.dtmf", {"digits": rest[0], "kind": "tone"}, call.id, request=True))

    async def refresh(self):
        """From here on what `welcome` said of TURN servers counts no more."""
        self.ice = []
        reply = await self.send("auth.refresh", {"auth": options.token}, request=True, numbered=False)
        self.ice = reply["d"].get("ice", [])
        say("refreshed", users=[server.get("username") for server in self.ice])

    async def ask(self, kind, index, text):
        """Of a call that is over too: a request that should be refused."""
        ids = {"@%d" % call.index: identifier for identifier, call in self.calls.items()}
        body = {key: ids.get(value, value) if isinstance(value, str) else value for key, value in json.loads(text or "{}").items()}
        reply = await self.send(kind, body, ids["@%d" % index], request=True)
        say("reply", to=kind, index=index, ok=reply["t"] == "ok", code=reply.get("d", {}).get("code"), msg=reply.get("d", {}).get("msg"))

    async def quit(self):
        options.resume_after, options.resume_when_told = None, False
        await self.socket.close()

    async def receive(self, m):
        trace("<", m)
        kind, body = m["t"], m.get("d", {})
        if "seq" in m:
            if m["seq"] <= self.seen:
                return
            self.seen = m["seq"]
            await self.raw({"t": "ack", "ack": self.seen})
        if kind in ("ok", "err") and m.get("re") in self.requests:
            if kind == "err":
                say("err", **body)
            self.requests.pop(m["re"]).set_result(m)
            return
        # `at` of a message is the gateway's
        came = {"receivedAt": int(time.time() * 1000)} if kind == "call.connected" else {}
        say(kind, call=m.get("call"), **came, **{k: v for k, v in body.items() if k not in ("sdp", "ice", "resumeToken", "call")})
        if kind == "welcome":
            self.session = {"sid": body["sid"], "token": body["resumeToken"]}
            self.ice = body["ice"]
            for entry in body.get("calls", []):
                if entry.get("state") == "ringing":
                    asyncio.ensure_future(self.offered(entry["call"], entry))
            if options.call:
                asyncio.ensure_future(self.place(options.call))
        elif kind == "call.wake" and options.nodes and not options.keep_wakes:
            if m["call"] not in self.calls:
                asyncio.ensure_future(Phone(body["wake"], body["gw"]).run())
        elif kind == "call.offer":
            asyncio.ensure_future(self.offered(m["call"], body))
        elif kind == "call.connected":
            call = self.calls[m["call"]]
            call.connected = True
            call.speech.start()
            if not options.no_active:
                await self.send("media.active", {"capture": True, "playout": True}, call.id)
            if options.end_after is not None:
                asyncio.get_running_loop().call_later(options.end_after, lambda: asyncio.ensure_future(self.command("end", [])))
        elif kind in ("call.ended", "call.cancel", "call.gone"):
            if m["call"] in self.calls:
                await self.calls[m["call"]].close({"kind": kind, "reason": body.get("reason"), "by": body.get("by")})
            if self.is_further and all(call.ended for call in self.calls.values() if call.phone is self):
                await self.socket.close()

    async def offered(self, identifier, body):
        call = self.calls[identifier] = Call(self, identifier)
        call.gen = body.get("gen", 1)
        call.offer = body["sdp"]
        if not options.silent:
            await self.send("call.ringing", {}, identifier)
        if not options.no_prepare:
            reply = await self.send("call.prepare", {"sdp": await call.answer_sdp(call.offer), "gen": call.gen}, identifier, request=True)
            say("prepared", ok=reply["t"] == "ok")
        if options.answer_after is not None:
            await asyncio.sleep(options.answer_after)
            await self.answer(call)

    async def answer(self, call):
        if call.ended:
            return
        body = {"ageMs": options.age, "gen": call.gen}
        if options.no_prepare:
            body["sdp"] = await call.answer_sdp(call.offer)
        say("answering", call=call.id)
        reply = await self.send("call.answer", body, call.id, request=True)
        call.won = reply["t"] == "ok"
        say("answered", call=call.id, won=call.won, code=reply.get("d", {}).get("code"))
        if call.won and options.play_at == "won":
            call.speech.start()
        if not call.won and reply["d"].get("code") == "answeredElsewhere":
            await call.close({"kind": "err", "reason": "answeredElsewhere"})

    async def place(self, number):
        identifier = options.call_id or str(uuid.uuid4())
        call = self.calls[identifier] = Call(self, identifier)
        await call.pc.setLocalDescription(await call.pc.createOffer())
        say("starting", call=identifier)
        reply = await self.send("call.start", {"to": {"k": "generic" if any(letter.isalpha() for letter in number) else "phone", "h": number}, "sdp": call.local(), "gen": 1, "video": False} | ({"location": options.location} if options.location else {}), identifier, request=True)
        if reply["t"] != "ok":
            return await call.close({"reason": "refused", "code": reply["d"].get("code")})
        say("started", call=identifier)
        await call.pc.setRemoteDescription(RTCSessionDescription(sdp=await call.remote(reply["d"]["sdp"]), type="answer"))


async def register():
    """Logs in once, registers the token, and is killed."""
    async with websockets.connect(options.url, subprotocols=["trunkline.v1"], ping_interval=None, ssl=tls) as socket:
        device = {"id": options.device, "platform": "linux", "sdk": "aiortc"}
        await socket.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": {"auth": options.token, "device": device, "caps": [], "state": "fg"}}))
        push = {"kind": "apns-voip", "token": options.register, "env": "production", "topic": "org.example.phone.voip"}
        request = str(uuid.uuid4())
        while json.loads(await socket.recv())["t"] != "welcome":
            pass
        await socket.send(json.dumps({"t": "device.put", "id": request, "d": {"push": push}}))
        while True:
            answer = json.loads(await socket.recv())
            if answer.get("re") == request:
                break
        if answer["t"] != "ok":
            sys.exit("device.put: " + json.dumps(answer))


async def pushed():
    """The payload of the push that starts the app."""
    loop = asyncio.get_running_loop()
    if options.wait_for_push == "-":
        say("waiting")
        return json.loads(await loop.run_in_executor(None, line_of_standard_input))
    host, _, port = options.wait_for_push.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(json.dumps({"token": options.register}).encode() + b"\n")
    await writer.drain()
    say("waiting")
    return json.loads(await reader.readline())["payload"]


def line_of_standard_input():
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1) or sys.exit("no push")
    return line


async def main():
    phone = Phone.main = Phone()
    if options.register:
        await register()
    if options.wait_for_push:
        push = await pushed()
        say("pushed", call=push["call"], acct=push.get("acct"), **{"from": push.get("from", {}).get("h", "")})
        phone.wake = push["wake"]
        await asyncio.sleep(options.start_after)
    try:
        await asyncio.wait_for(phone.run(), options.seconds)
    except (asyncio.TimeoutError, OSError, websockets.WebSocketException) as error:
        say("failed", why=type(error).__name__ + ": " + str(error))
        sys.exit(1)


asyncio.run(main())
