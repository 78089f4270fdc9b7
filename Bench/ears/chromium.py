"""Headless Chromium as a client: libwebrtc with its own jitter buffer, encoder and reports, driven over the DevTools protocol."""
import asyncio, base64, functools, http.server, json, os, re, shutil, signal, tempfile, threading, urllib.request
import numpy as np
import websockets
from processes import HERE, end_with_parent


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Browser:
    """One process with a microphone that plays one file; a page for each call. Pages are served, since media needs a secure context."""

    async def start(self, play):
        binary = shutil.which("chromium") or shutil.which("google-chrome")
        if not binary:
            raise SystemExit("ears: chromium is not installed: apt-get install chromium")
        self.profile = tempfile.mkdtemp(prefix="trunkline-ears-")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=HERE))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.process = await asyncio.create_subprocess_exec(
            binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
            "--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
            "--autoplay-policy=no-user-gesture-required", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
            # The page tells addresses without a name server for .local names.
            "--disable-features=WebRtcHideLocalIpsWithMdns",
            f"--use-file-for-fake-audio-capture={os.path.abspath(play)}%noloop", "--remote-debugging-port=0", f"--user-data-dir={self.profile}",
            "about:blank", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            start_new_session=True, preexec_fn=end_with_parent)
        while line := (await self.process.stderr.readline()).decode(errors="replace"):
            if found := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
                self.port = int(found.group(1))
                self.drained = asyncio.ensure_future(self.drain())
                return self
        raise RuntimeError("chromium ended before it listened")

    async def drain(self):
        while await self.process.stderr.read(65536):
            pass

    async def version(self):
        request = f"http://127.0.0.1:{self.port}/json/version"
        return json.load(await asyncio.to_thread(urllib.request.urlopen, request))["Browser"].split("/")[1]

    async def page(self):
        url = f"http://127.0.0.1:{self.port}/json/new?http://127.0.0.1:{self.server.server_port}/page.html"
        made = json.load(await asyncio.to_thread(urllib.request.urlopen, urllib.request.Request(url, method="PUT")))
        page = Page()
        page.socket = await websockets.connect(made["webSocketDebuggerUrl"], max_size=64 << 20)
        page.close_url = f"http://127.0.0.1:{self.port}/json/close/{made['id']}"
        while await page.evaluate("typeof prepare") != "function":
            await asyncio.sleep(0.02)
        await page.evaluate("prepare()")
        return page

    async def end(self):
        """Its helpers are of its own session: all of them end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                await asyncio.wait_for(self.process.wait(), 5)
            except ProcessLookupError:
                break
            except asyncio.TimeoutError:
                pass
        await self.drained
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """A client of one call: `offer`, `answer`, `accept` speak SDP; `finish` gives what it heard and counted."""

    number = 0

    async def command(self, method, **params):
        self.number += 1
        number = self.number
        await self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            reply = json.loads(await asyncio.wait_for(self.socket.recv(), 40))
            if reply.get("id") == number:
                return reply["result"]

    async def evaluate(self, expression):
        result = await self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "page error"))
        return result["result"].get("value")

    async def offer(self):
        return await self.evaluate("offer()")

    async def answer(self, sdp):
        return await self.evaluate(f"answer({json.dumps(sdp)})")

    async def accept(self, sdp):
        await self.evaluate(f"accept({json.dumps(sdp)})")

    async def connected(self):
        await self.evaluate("connected()")

    async def statistics(self):
        return await self.evaluate("statistics()")

    async def finish(self):
        """The remote track as (samples, rate, when each block was heard, the blocks' sizes)."""
        heard = await self.evaluate("heard()")
        await self.evaluate("close()")
        samples = np.frombuffer(base64.b64decode(heard["samples"]), "<i2")
        return samples, heard["rate"], block_times(heard["times"], heard["size"], heard["rate"]), heard["size"]

    async def close(self):
        await self.socket.close()
        try:
            await asyncio.to_thread(lambda: urllib.request.urlopen(self.close_url).read())
        except OSError:
            pass


def block_times(times, sizes, rate):
    """When each block's first sample was heard: blocks come at even distances, a page's thread is only ever late for them, so the
    earliest within a second of each says when they come."""
    times, ends = np.array(times), np.cumsum(sizes) / rate
    raw = times - ends
    window = 50
    padded = np.pad(raw, window, mode="edge")
    least = np.array([padded[index : index + 2 * window + 1].min() for index in range(len(raw))])
    return ends - np.array(sizes) / rate + least
