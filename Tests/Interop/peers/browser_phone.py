"""Headless Chromium on the web phone: logs in by link, answers or calls, speaks from a WAV file, records what it hears.

Prints one JSON object a line: {"event": ..., "at": unix milliseconds, ...}; ends when the call has ended or after --seconds.
"""
import argparse, base64, ctypes, json, os, re, shutil, signal, struct, subprocess, sys, tempfile, time, urllib.request, wave
from websockets.sync.client import connect

PAGE_HOOK = r"""
(() => {
  const log = window.__log = [];
  // The fake microphone's speech is compared at the other end: nothing may clean it up on the way.
  const open = navigator.mediaDevices?.getUserMedia.bind(navigator.mediaDevices);
  if (open) navigator.mediaDevices.getUserMedia = () => open({
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
  const say = (event, more) => log.push({ event, at: Date.now(), ...more });
  window.__pcm = [];
  const watch = (call) => {
    say("call", { direction: call.direction, peer: call.peer.h });
    call.addEventListener("digit", (e) => say("digit", { digit: e.digit }));
    let told = "";
    call.addEventListener("state", () => {
      // the same event tells of mute, hold and sound: said once a phase
      if (told === call.phase) return;
      told = call.phase;
      say("state", { state: call.phase, reason: call.endReason, codec: call.codec });
      if (call.phase === "connected" && !call.recorded && call.remoteStream) record(call); // muting tells the same state again
    });
  };
  const record = (call) => {
    call.recorded = true;
    const context = new AudioContext({ sampleRate: RATE });
    const tap = context.createScriptProcessor(1024, 1, 1);
    tap.onaudioprocess = (e) => {
      const input = e.inputBuffer.getChannelData(0);
      for (const x of input) window.__pcm.push(Math.max(-32768, Math.min(32767, Math.round(x * 32767))));
    };
    // Media that is made anew in a call is another stream.
    let stream = null, source = null;
    const follow = () => {
      if (stream === call.remoteStream || !call.remoteStream) return;
      source?.disconnect();
      source = context.createMediaStreamSource(stream = call.remoteStream);
      source.connect(tap);
    };
    follow();
    setInterval(follow, 20);
    tap.connect(context.destination);
    say("record", { state: context.state });
  };
  const wait = setInterval(() => {
    if (!window.trunkline) return;
    clearInterval(wait);
    const line = window.trunkline;
    const tell = () => {
      say("line", { state: line.state });
      if (line.state === "failed") say("refused", { message: line.error.message });
    };
    line.addEventListener("state", tell);
    tell();
    let last = null;
    setInterval(() => { if (window.call && window.call !== last) watch(last = window.call); }, 10);
  }, 10);
})();
"""


# A page that is nothing but a script of the gateway: no page of ours around it.
BARE_PAGE = """
import("/trunkline/trunkline.js").then(({ Phone }) => {
  const phone = window.trunkline = new Phone(`${location.protocol.replace("http", "ws")}//${location.host}/v1/connect`, {
    token: () => TOKEN, device: "web" });
  phone.addEventListener("incoming", ({ call }) => { window.call = call; });
})
"""


def bare_url(url):
    """Of a document of the gateway's that has no script of its own, and the token of a login link."""
    origin, _, proof = url.partition("/#token=")
    return origin + "/trunkline/texts.js", proof


class Page:
    def __init__(self, socket):
        self.socket = socket
        self.number = 0

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            reply = json.loads(self.socket.recv(timeout=20))
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise RuntimeError(reply["error"])
                return reply["result"]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "page error"))
        return result["result"].get("value")


def say(event, **more):
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **more}), flush=True)


def end_with_parent():
    """Linux: the browser does not outlive this script, also when it is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start_browser(options, profile, leave_out=()):
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not binary:
        sys.exit("chromium is not installed: apt-get install chromium")
    arguments = [
        binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
        "--autoplay-policy=no-user-gesture-required", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
        "--window-size=480,900", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    if options.play:
        arguments.append(f"--use-file-for-fake-audio-capture={os.path.abspath(options.play)}" + ("" if options.loop else "%noloop"))
    if getattr(options, "any_certificate", False):
        arguments.append("--ignore-certificate-errors")
    arguments = [argument for argument in arguments if argument not in leave_out]
    return subprocess.Popen(arguments + ["about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            start_new_session=True, preexec_fn=end_with_parent)


def end_group(browser):
    """Ends the browser with all its helpers and waits until none is left."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            os.killpg(browser.pid, signal.SIGTERM if deadline - time.monotonic() > 10 else signal.SIGKILL)
        except ProcessLookupError:
            return
        browser.poll()
        time.sleep(0.05)


def debugging_port(browser):
    for line in browser.stderr:
        found = re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line)
        if found:
            return int(found.group(1))
    sys.exit("chromium ended before it listened")


def debugger_url(port):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
    return json.load(urllib.request.urlopen(request, timeout=20))["webSocketDebuggerUrl"]


def open_page(socket, options):
    page = Page(socket)
    page.call("Page.enable")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=PAGE_HOOK.replace("RATE", str(options.rate)))
    if options.bare:
        url, token = bare_url(options.url)
        # Chromium gives up what it loads when an interface appears (ERR_NETWORK_CHANGED), as the suites' namespaces make them: one reload.
        for may_reload in (True, False):
            page.call("Page.navigate", url=url)
            deadline = time.monotonic() + 20
            while not page.evaluate("location.protocol.startsWith('http') && document.readyState === 'complete'"):
                if time.monotonic() > deadline:
                    sys.exit("the page did not load")
                time.sleep(0.02)
            try:
                page.evaluate(BARE_PAGE.replace("TOKEN", json.dumps(token)))
                break
            except RuntimeError as error:
                if not may_reload or "dynamically imported module" not in str(error):
                    raise
    else:
        page.call("Page.navigate", url=options.url)
    return page


def follow(page, options):
    deadline = time.monotonic() + options.seconds
    seen, dialled, answered, connected = 0, False, False, None
    while time.monotonic() < deadline:
        if options.preflight and (result := page.evaluate("window.__preflight ?? null")):
            say("preflight", **json.loads(result))
            return
        for entry in page.evaluate(f"(window.__log ?? []).slice({seen})") or []:
            seen += 1
            print(json.dumps(entry), flush=True)
            if entry["event"] == "line" and entry["state"] == "online" and options.call and not dialled:
                dialled = True
                page.evaluate(f"document.getElementById('number').value = {json.dumps(options.call)};"
                              "document.getElementById('dial').click()")
            if entry["event"] == "line" and entry["state"] == "online" and options.preflight:
                page.evaluate("trunkline.preflight().then((result) => { window.__preflight = JSON.stringify(result); }), null")
            if entry["event"] == "call" and entry["direction"] == "incoming" and options.answer and not answered:
                answered = True
                page.evaluate("call.answer()" if options.bare else "document.getElementById('answer').click()")
            if entry["event"] == "state" and entry["state"] == "connected":
                connected = time.monotonic()
                if options.screenshot:
                    time.sleep(1)
                    shot = page.call("Page.captureScreenshot")["data"]
                    open(options.screenshot, "wb").write(base64.b64decode(shot))
                for digit in options.digits:
                    page.evaluate(f"[...document.querySelectorAll('#keypad button')].find(b => b.textContent === '{digit}').click()")
            if entry["event"] == "state" and entry["state"] == "ended":
                return
            if entry["event"] == "refused":
                return
        if connected and options.mute_after and time.monotonic() - connected > options.mute_after:
            say("mute")
            page.evaluate("document.getElementById('mute').click()")
            options.mute_after = None
        if connected and options.hangup_after and time.monotonic() - connected > options.hangup_after:
            say("hangup")
            page.evaluate("document.getElementById('hangup').click()")
            options.hangup_after = None
        time.sleep(0.03)
    say("timeout")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="login link of the web phone")
    parser.add_argument("--bare", action="store_true", help="the token of the link, in a page without any of ours")
    parser.add_argument("--answer", action="store_true")
    parser.add_argument("--preflight", action="store_true", help="makes the preflight test, prints it and ends")
    parser.add_argument("--call", metavar="NUMBER")
    parser.add_argument("--play", metavar="WAV")
    parser.add_argument("--loop", action="store_true", help="speaks over and over")
    parser.add_argument("--record", metavar="WAV")
    parser.add_argument("--rate", type=int, default=8000, help="of the recording")
    parser.add_argument("--digits", default="")
    parser.add_argument("--screenshot", metavar="PNG")
    parser.add_argument("--mute-after", type=float, metavar="SECONDS")
    parser.add_argument("--hangup-after", type=float, metavar="SECONDS")
    parser.add_argument("--any-certificate", action="store_true", help="of TLS, TURN's among it")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    profile = tempfile.mkdtemp(prefix="trunkline-chromium-")
    browser = start_browser(options, profile)
    try:
        with connect(debugger_url(debugging_port(browser)), max_size=64 << 20) as socket:
            page = open_page(socket, options)
            follow(page, options)
            if options.record:
                samples = page.evaluate("window.__pcm") or []
                with wave.open(options.record, "wb") as out:
                    out.setnchannels(1)
                    out.setsampwidth(2)
                    out.setframerate(options.rate)
                    out.writeframes(struct.pack(f"<{len(samples)}h", *samples))
            say("done", meters=page.evaluate("window.meters?.peaks ?? null"))
    finally:
        end_group(browser)
        shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    main()
