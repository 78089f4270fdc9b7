"""Who stands between trunk and client: Trunkline, and Janus in its place. Both are asked for the same: a call with media both ways.

`call(client, …)` gives the carrier's media address and a way to hang up. `through(port)` is told where the bridge expects the app's media and
gives the address that the client is to use instead: the network that a row is about.
"""
import asyncio, base64, hashlib, hmac, json, os, re, shutil, socket, subprocess, tempfile, time, urllib.request, uuid
import websockets
import trunk
from trunk import HOST
from processes import end_with_parent, free_port, stop

KEY = b"0123456789abcdef0123456789abcdef"


def token(user):
    def encoded(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    claims = {"sub": user, "dev": "ears", "aud": "trunkline", "exp": int(time.time()) + 7 * 86400}
    signed = encoded(b'{"alg":"HS256","typ":"JWT"}') + "." + encoded(json.dumps(claims).encode())
    return signed + "." + encoded(hmac.new(KEY, signed.encode(), hashlib.sha256).digest())


def moved(sdp, host, port):
    """The description with this address for its UDP host candidates alone."""
    lines, seen = [], False
    for line in sdp.split("\r\n"):
        if line.startswith("a=candidate:"):
            if seen or " udp " not in line.lower() or " 1 udp" not in line.lower():
                continue
            seen = True
            line = re.sub(r"^(a=candidate:\S+ 1 udp \d+) \S+ \d+", rf"\1 {host} {port}", line, flags=re.I)
        lines.append(line)
    return "\r\n".join(lines)


def candidate(sdp):
    found = re.search(r"a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host", sdp, re.I)
    return found.group(1), int(found.group(2))


def without_candidates(sdp):
    """So that the bridge knows no way to the client but that from which its packets come."""
    return "\r\n".join(line for line in sdp.split("\r\n") if not line.startswith("a=candidate:"))


class Trunkline:
    name = "Trunkline"

    def __init__(self, binary, slots):
        self.binary, self.slots = os.path.abspath(binary), slots

    async def start(self, host):
        self.folder = tempfile.mkdtemp(prefix="trunkline-ears-")
        self.sip, self.app, self.admin = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM), free_port(socket.SOCK_STREAM)
        self.waiting, self.taken = {}, {}
        _, self.carrier = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: trunk.Carrier(self.sip, self.take), local_addr=(HOST, 0))
        users = ", ".join(f'{{ id: u{slot}, numbers: ["+1555123{slot:04d}"] }}' for slot in range(self.slots))
        with open(self.folder + "/jwt.key", "wb") as file:
            file.write(KEY + b"\n")
        with open(self.folder + "/gateway.yaml", "w") as file:
            file.write(
                f"listen: {{ sip: {{ udp: {HOST}:{self.sip} }}, app: {{ address: 127.0.0.1:{self.app} }}, admin: 127.0.0.1:{self.admin} }}\n"
                f"media: {{ addresses: [ auto ], app_port: {free_port(socket.SOCK_DGRAM, host)}, trunk_ports: 31000-31999 }}\n"
                "auth: { jwt: { key_file: jwt.key } }\nlog: { level: info }\n"
                f'trunks: [ {{ name: carrier, peers: [ {HOST} ], uri: "sip:{HOST}:{self.carrier.port}" }} ]\nusers: [ {users} ]\n'
                'routes: { inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: "+", trunk: carrier } ] }\n')
        self.log = open(self.folder + "/gateway.log", "wb", buffering=0)
        self.process = await asyncio.create_subprocess_exec(
            self.binary, "serve", "--config", "gateway.yaml", cwd=self.folder, stdout=self.log, stderr=self.log, preexec_fn=end_with_parent)
        for _ in range(100):
            await asyncio.sleep(0.1)
            try:
                await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz").read())
                break
            except OSError:
                continue
        else:
            raise RuntimeError("the gateway is not ready: " + open(self.folder + "/gateway.log").read()[-2000:])
        self.apps = [await App().connect(f"ws://127.0.0.1:{self.app}/v1/connect", f"u{slot}") for slot in range(self.slots)]
        return self

    def version(self):
        return subprocess.run([self.binary, "--version"], capture_output=True, text=True).stdout.strip() or "this commit"

    async def take(self, number, dialog):
        """A call of an app to the carrier: the number says whose it is."""
        waiting = self.waiting[number]
        waiting.set_result(dialog)
        return await self.taken[number]

    async def call(self, client, slot, is_incoming, media_port, through, delay=0):
        app = self.apps[slot]
        app.delay = delay
        if is_incoming:
            dialog = self.carrier.call(f"+1555123{slot:04d}", trunk.description(media_port))
            offer = asyncio.ensure_future(app.wait("call.offer"))
            await asyncio.wait([offer, dialog.answered], return_when=asyncio.FIRST_COMPLETED)
            if dialog.answered.done():
                offer.cancel()
                raise RuntimeError(f"the call was refused with {dialog.answered.result()[0]}")
            offered = await offer
            body = offered["d"]
            own = await client.answer(moved(body["sdp"], *await through(*candidate(body["sdp"]))))
            identifier = offered["call"]
            await app.send("call.ringing", {}, identifier)
            await app.ask("call.prepare", {"sdp": without_candidates(own), "gen": body.get("gen", 1)}, identifier)
            await client.connected()
            await app.send("media.ready", {"gen": body.get("gen", 1)}, identifier)
            await app.ask("call.answer", {"ageMs": 0, "gen": body.get("gen", 1)}, identifier)
            code, answer = await asyncio.wait_for(dialog.answered, 20)
            if code != 200:
                raise RuntimeError(f"the call was refused with {code}")
            at, remote = time.time(), answer
        else:
            number, identifier = f"+1555999{slot:04d}", str(uuid.uuid4())
            loop = asyncio.get_running_loop()
            self.waiting[number], self.taken[number] = loop.create_future(), loop.create_future()
            reply = await app.ask(
                "call.start", {"to": {"k": "phone", "h": number}, "sdp": without_candidates(await client.offer()), "gen": 1, "video": False},
                identifier)
            await client.accept(moved(reply["sdp"], *await through(*candidate(reply["sdp"]))))
            await client.connected()
            await app.send("media.ready", {"gen": 1}, identifier)
            dialog = await asyncio.wait_for(self.waiting[number], 20)
            remote = dialog.remote
            self.taken[number].set_result(trunk.description(media_port))
            at = time.time()
        await app.wait("call.connected")
        await app.send("media.active", {"capture": True, "playout": True}, identifier)

        async def hang_up():
            dialog.hang_up()
            await app.wait("call.ended")

        return trunk.media_address(remote), at, hang_up, identifier

    async def record(self, call):
        """What the gateway itself says of the call."""
        for _ in range(100):
            if os.path.exists(self.folder + "/calls.jsonl"):
                for line in open(self.folder + "/calls.jsonl"):
                    if line.endswith("\n") and (record := json.loads(line))["call"] == call:
                        return {"record": {name: record.get(name) for name in ("fromTrunk", "fromApp", "end")}}
            await asyncio.sleep(0.05)
        raise RuntimeError("the call has no record")

    async def busy(self):
        """CPU seconds so far."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def end(self):
        for app in self.apps:
            await app.end()
        await stop(self.process)
        self.carrier.transport.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class App:
    """trunkline.v1 as far as one device with one call at a time needs it."""

    async def connect(self, url, user):
        self.socket = await websockets.connect(url, subprotocols=["trunkline.v1"], ping_interval=None, compression=None)
        self.number, self.seen, self.delay, self.replies = 0, 0, 0, {}
        self.events = asyncio.Queue()
        await self.socket.send(json.dumps(
            {"t": "hello", "id": str(uuid.uuid4()), "d": {"auth": token(user), "device": {"id": "ears"}, "caps": ["media.active"], "state": "fg"}}))
        first = json.loads(await self.socket.recv())
        if first["t"] != "welcome":
            raise RuntimeError(f"not welcome: {first}")
        self.tasks = [asyncio.ensure_future(self.listen()), asyncio.ensure_future(self.beat())]
        return self

    async def beat(self):
        while True:
            await asyncio.sleep(10)
            await self.socket.send('{"t":"ping"}')

    async def listen(self):
        async for text in self.socket:
            if self.delay:
                asyncio.get_running_loop().call_later(self.delay, self.receive, json.loads(text))
            else:
                self.receive(json.loads(text))

    def receive(self, message):
        if "seq" in message:
            self.seen = message["seq"]
            asyncio.ensure_future(self.socket.send(json.dumps({"t": "ack", "ack": self.seen})))
        if message["t"] in ("ok", "err"):
            if (reply := self.replies.pop(message.get("re"), None)) and not reply.done():
                reply.set_result(message)
        else:
            self.events.put_nowait(message)

    async def wait(self, kind):
        async with asyncio.timeout(20):
            while (message := await self.events.get())["t"] != kind:
                pass
            return message

    async def send(self, kind, body, call, identifier=None):
        self.number += 1
        message = {"t": kind, "seq": self.number, "ack": self.seen, "call": call, "d": body} | ({"id": identifier} if identifier else {})
        await asyncio.sleep(self.delay)
        await self.socket.send(json.dumps(message))

    async def ask(self, kind, body, call):
        identifier = str(uuid.uuid4())
        reply = self.replies[identifier] = asyncio.get_running_loop().create_future()
        await self.send(kind, body, call, identifier)
        answer = await asyncio.wait_for(reply, 20)
        if answer["t"] != "ok":
            raise RuntimeError(f"{kind}: {answer['d']}")
        return answer.get("d", {})

    async def end(self):
        for task in self.tasks:
            task.cancel()
        await self.socket.close()


class Janus:
    """Debian's Janus with its NoSIP plug-in: WebRTC on one side, plain RTP on the other, the same codec on both."""

    name = "Janus"

    def __init__(self, slots):
        self.slots = slots

    @staticmethod
    def is_installed():
        return shutil.which("janus") is not None

    def version(self):
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "janus"], capture_output=True, text=True).stdout
        return found.split("-")[0]

    async def start(self, host):
        self.folder = tempfile.mkdtemp(prefix="trunkline-ears-janus-")
        port = free_port(socket.SOCK_STREAM)
        root = subprocess.run(["sh", "-c", "dirname $(dpkg -L janus | grep libjanus_nosip.so$)"], capture_output=True, text=True).stdout.strip()
        files = {
            "janus.jcfg": f'general: {{ configs_folder = "{self.folder}"\n plugins_folder = "{root}"\n'
                          f' transports_folder = "{os.path.dirname(root)}/transports"\n debug_level = 3\n session_timeout = 0 }}\n'
                          'nat: { ice_lite = true\n ice_enforce_list = "' + host + '" }\nmedia: { ipv6 = false }\n'
                          'plugins: { disable = "' + ",".join(
                              f"libjanus_{name}.so" for name in ("audiobridge", "duktape", "echotest", "lua", "recordplay", "sip", "streaming",
                                                                 "textroom", "videocall", "videoroom", "voicemail")) + '" }\n'
                          'transports: { disable = "libjanus_http.so,libjanus_mqtt.so,libjanus_nanomsg.so,libjanus_pfunix.so,libjanus_rabbitmq.so" }\n',
            "janus.plugin.nosip.jcfg": f'general: {{ local_ip = "{HOST}"\n rtp_port_range = "33000-33999" }}\n',
            "janus.transport.websockets.jcfg": f'general: {{ json = "compact"\n ws = true\n ws_port = {port}\n ws_ip = "127.0.0.1"\n wss = false }}\n'
                                               'admin: { admin_ws = false\n admin_wss = false }\n'}
        for name, text in files.items():
            with open(f"{self.folder}/{name}", "w") as file:
                file.write(text)
        self.log = open(self.folder + "/janus.log", "wb")
        self.process = await asyncio.create_subprocess_exec(
            "janus", "-F", self.folder, "-C", self.folder + "/janus.jcfg", stdout=self.log, stderr=self.log, preexec_fn=end_with_parent)
        for _ in range(100):
            await asyncio.sleep(0.1)
            try:
                self.socket = await websockets.connect(f"ws://127.0.0.1:{port}", subprotocols=["janus-protocol"])
                break
            except OSError:
                continue
        else:
            raise RuntimeError("Janus is not ready: " + open(self.folder + "/janus.log").read()[-2000:])
        self.replies, self.events = {}, {}
        self.tasks = [asyncio.ensure_future(self.listen()), asyncio.ensure_future(self.beat())]
        self.session = (await self.ask(janus="create"))["data"]["id"]
        return self

    async def listen(self):
        async for text in self.socket:
            message = json.loads(text)
            if message["janus"] == "event":
                self.events[message["sender"]].put_nowait(message)
            elif (reply := self.replies.pop(message.get("transaction"), None)) and not reply.done():
                reply.set_result(message)

    async def beat(self):
        while True:
            await asyncio.sleep(20)
            await self.ask(janus="keepalive", session_id=self.session)

    async def ask(self, **message):
        identifier = uuid.uuid4().hex
        reply = self.replies[identifier] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"transaction": identifier} | message))
        return await asyncio.wait_for(reply, 20)

    async def tell(self, handle, body, jsep=None):
        """A request to the plug-in, and the event that answers it."""
        message = {"janus": "message", "session_id": self.session, "handle_id": handle, "body": body}
        await self.ask(**message, **({"jsep": jsep} if jsep else {}))
        event = await asyncio.wait_for(self.events[handle].get(), 20)
        data = event["plugindata"]["data"]
        if "error" in data:
            raise RuntimeError(f"Janus: {data['error']}")
        return data.get("result", {}), event.get("jsep")

    async def call(self, client, slot, is_incoming, media_port, through, delay=0):
        handle = (await self.ask(janus="attach", session_id=self.session, plugin="janus.plugin.nosip"))["data"]["id"]
        self.events[handle] = asyncio.Queue()
        own = trunk.description(media_port)
        if is_incoming:
            _, offer = await self.tell(handle, {"request": "process", "type": "offer", "sdp": own})
            answer = await client.answer(moved(offer["sdp"], *await through(*candidate(offer["sdp"]))))
            result, _ = await self.tell(handle, {"request": "generate"}, {"type": "answer", "sdp": without_candidates(answer)})
        else:
            offer = without_candidates(await client.offer())
            result, _ = await self.tell(handle, {"request": "generate"}, {"type": "offer", "sdp": offer})
            _, answer = await self.tell(handle, {"request": "process", "type": "answer", "sdp": own})
            await client.accept(moved(answer["sdp"], *await through(*candidate(answer["sdp"]))))
        await client.connected()

        async def hang_up():
            await self.ask(janus="detach", session_id=self.session, handle_id=handle)

        return trunk.media_address(result["sdp"]), time.time(), hang_up, None

    async def record(self, _):
        return {}

    async def busy(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def end(self):
        for task in self.tasks:
            task.cancel()
        await self.socket.close()
        await stop(self.process)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
