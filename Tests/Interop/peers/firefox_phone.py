"""Headless Firefox on the web phone: logs in by link, answers or calls, speaks from a WAV file, records what its loudspeaker gets.

Firefox has no file in place of a microphone: a PulseAudio of this script's own has two null sinks, a mouth that paplay speaks into and whose
monitor is Firefox's microphone, and an ear that is its loudspeaker. Marionette is spoken over TCP, without geckodriver.

Prints one JSON object a line with the events of browser_phone.py, and `held`; ends when the call has ended, or after --seconds. Commands come as lines
on standard input: digits DIGITS, hold (a toggle, as its button is), mute, hangup, reload, say (its speech), meters, plug NAME (a headset), unplug NAME, loudspeaker NAME, microphone NAME
(the page chooses it), sources (that Firefox records from), play SINK [WAV] (its speech once more, or another one, there; `played` when it is over), level SINK (of what is heard there).
"""
import argparse, json, os, select, shutil, socket, subprocess, sys, tempfile, time
import audio
from browser_phone import BARE_PAGE, bare_url, end_group, end_with_parent, say

PREFERENCES = {
    "marionette.port": 0,
    "media.navigator.permission.disabled": True, "permissions.default.microphone": 1, "permissions.default.desktop-notification": 2,
    "media.autoplay.default": 0, "media.autoplay.blocking_policy": 0,
    "media.getusermedia.audio.processing.aec.enabled": False, "media.getusermedia.audio.processing.agc.enabled": False,
    "media.getusermedia.audio.processing.noise.enabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False, "network.proxy.type": 0,
    "network.dns.disablePrefetch": True, "browser.shell.checkDefaultBrowser": False, "browser.aboutwelcome.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False, "toolkit.telemetry.enabled": False, "app.normandy.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1", "browser.safebrowsing.update.enabled": False,
    "extensions.update.enabled": False, "app.update.disabledForTesting": True, "browser.startup.page": 0,
    # Without it each site has a process of its own, and a tab that changes it is lost now and then.
    "fission.autostart": False,
}

# Once a document: what is there already is told, so nothing is missed that happens before.
PAGE_HOOK = r"""
if (!window.__log) {
  const log = window.__log = [];
  // The microphone's speech is compared at the other end: nothing may clean it up on the way.
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = (wish) => open({
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false, ...(wish?.audio?.deviceId && { deviceId: wish.audio.deviceId }) } });
  const say = (event, more) => log.push({ event, at: Date.now(), ...more });
  const watch = (call) => {
    say("call", { direction: call.direction, peer: call.peer.h });
    call.addEventListener("digit", (e) => say("digit", { digit: e.digit }));
    let told = "", held = false, own = false;
    const tell = () => {
      if (held !== call.isHeldByPeer) say("held", { by: "remote", on: held = call.isHeldByPeer });
      if (own !== call.isHeld) say("held", { by: "local", on: own = call.isHeld });
      if (told === call.phase) return;
      told = call.phase;
      say("state", { state: call.phase, reason: call.endReason, codec: call.codec });
    };
    call.addEventListener("state", tell);
    tell();
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
    let fallen = "";
    line.addEventListener("devices", () => {
      const now = { loudspeaker: line.loudspeakerFallback?.code ?? null, microphone: line.microphoneFallback?.code ?? null };
      if (fallen !== JSON.stringify(now)) { fallen = JSON.stringify(now); say("devices", now); }
    });
    let last = null;
    setInterval(() => { if (window.call && window.call !== last) watch(last = window.call); }, 10);
  }, 10);
}
"""


# The device of a kind with a label, once it is there.
CHOOSE = """return (async () => {
  for (let n = 0; n < 100; n++) {
    const one = (await navigator.mediaDevices.enumerateDevices()).find((device) => device.kind === %s && device.label.includes(%s));
    if (one) { await window.trunkline.use%s(one.deviceId); return one.label; }
    await new Promise((go) => setTimeout(go, 100));
  }
  return null;
})()"""


class Marionette:
    """Its protocol 3: a length, a colon and [0, id, command, parameters], answered by [1, id, error, result]."""

    def __init__(self, port, any_certificate=False):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.data = b""
        self.number = 0
        self.receive()
        self.call("WebDriver:NewSession", pageLoadStrategy="none", acceptInsecureCerts=any_certificate)

    def receive(self):
        while b":" not in self.data:
            self.data += self.socket.recv(65536) or sys.exit("firefox has closed its connection")
        size, _, self.data = self.data.partition(b":")
        while len(self.data) < int(size):
            self.data += self.socket.recv(65536) or sys.exit("firefox has closed its connection")
        text, self.data = self.data[: int(size)], self.data[int(size) :]
        return json.loads(text)

    def call(self, command, **parameters):
        self.number += 1
        text = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        while True:
            kind, number, error, result = self.receive()
            if kind == 1 and number == self.number:
                if error:
                    raise RuntimeError(error)
                return result

    def evaluate(self, script):
        """In the page's own world."""
        return self.call("WebDriver:ExecuteScript", script=script, args=[], sandbox=None)["value"]


class Sound:
    """A PulseAudio of its own, found by its socket alone."""

    def __init__(self, folder):
        self.environment = {**os.environ, "HOME": folder, "XDG_RUNTIME_DIR": folder, "PULSE_SERVER": f"unix:{folder}/native"}
        self.children = []
        self.player = None
        self.modules = {}
        script = folder + "/sound.pa"
        with open(script, "w") as out:
            out.write(f"load-module module-native-protocol-unix socket={folder}/native auth-anonymous=1\n"
                      "load-module module-null-sink sink_name=ear rate=48000 channels=1\n"
                      "load-module module-null-sink sink_name=mouth rate=48000 channels=1\n"
                      "load-module module-remap-source master=mouth.monitor source_name=microphone\n"
                      "set-default-sink ear\nset-default-source microphone\n")
        self.start("pulseaudio", "-n", "-F", script, "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--realtime=no",
                   "--high-priority=no", "--resample-method=speex-float-5")
        deadline = time.monotonic() + 15
        while subprocess.run(["pactl", "info"], env=self.environment, capture_output=True).returncode:
            if time.monotonic() > deadline or self.children[0].poll() is not None:
                sys.exit("pulseaudio does not run")
            time.sleep(0.05)

    def start(self, *words, output=subprocess.DEVNULL):
        child = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL,
                                 start_new_session=True, preexec_fn=end_with_parent)
        self.children.append(child)
        return child

    def play(self, path, sink="mouth"):
        self.player = self.start("paplay", f"--device={sink}", "--latency-msec=100", path)
        say("playing")

    def has_played(self):
        """Once, when the file is over."""
        if self.player is None or self.player.poll() is None:
            return False
        self.player = None
        return True

    def record(self, path):
        self.file = open(path + ".raw", "wb")
        self.path = path
        self.recorder = self.start("parec", "--device=ear.monitor", "--latency-msec=50", "--rate=8000", "--channels=1",
                                   "--format=s16le", "--raw", output=self.file)
        deadline = time.monotonic() + 15
        while not os.path.getsize(path + ".raw"):
            if time.monotonic() > deadline:
                sys.exit("parec does not record")
            time.sleep(0.02)

    def finish_record(self):
        self.recorder.terminate()
        self.recorder.wait()
        self.file.close()
        samples = audio.np.fromfile(self.path + ".raw", dtype="<i2")
        os.unlink(self.path + ".raw")
        audio.write_wav(self.path, samples)

    def plug(self, name):
        """A headset: a loudspeaker, and a microphone that hears what is played to it."""
        self.modules[name] = [
            self.load("module-null-sink", f"sink_name={name}", "rate=48000", "channels=1", f"sink_properties=device.description={name}"),
            self.load("module-null-sink", f"sink_name={name}-mouth", "rate=48000", "channels=1", f"sink_properties=device.description={name}-mouth"),
            self.load("module-remap-source", f"master={name}-mouth.monitor", f"source_name={name}-microphone",
                      f"source_properties=device.description={name}-microphone")]

    def load(self, *words):
        return subprocess.run(["pactl", "load-module", *words], env=self.environment, capture_output=True, check=True, text=True).stdout.strip()

    def unplug(self, name):
        for module in reversed(self.modules.pop(name)):
            subprocess.run(["pactl", "unload-module", module], env=self.environment, check=True)

    def sources(self):
        """The names of those that are recorded from, monitors of sinks apart."""
        def rows(kind):
            text = subprocess.run(["pactl", "list", "short", kind], env=self.environment, capture_output=True, check=True, text=True).stdout
            return [line.split("\t") for line in text.splitlines()]
        names = {row[0]: row[1] for row in rows("sources")}
        taken = {names.get(row[1], "") for row in rows("source-outputs")}
        return sorted(name for name in taken if name and not name.endswith(".monitor"))

    def level(self, sink):
        """Of what half a second of it sounds like."""
        words = ["parec", f"--device={sink}.monitor", "--latency-msec=50", "--rate=8000", "--channels=1", "--format=s16le", "--raw"]
        recorder = subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        samples = audio.np.frombuffer(recorder.stdout.read(8000), dtype="<i2").astype(float)
        recorder.kill()
        recorder.wait()
        return float(audio.np.sqrt((samples ** 2).mean())) if len(samples) else 0

    def close(self):
        for child in reversed(self.children):
            end_group(child)


def start_browser(profile, environment):
    binary = shutil.which("firefox-esr") or shutil.which("firefox") or sys.exit("firefox is not installed: apt-get install firefox-esr")
    with open(profile + "/user.js", "w") as out:
        for name, value in PREFERENCES.items():
            out.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
    return subprocess.Popen([binary, "--headless", "--marionette", "--no-remote", "--profile", profile, "about:blank"],
                            env={**environment, "MOZ_CRASHREPORTER_DISABLE": "1", "PULSE_LATENCY_MSEC": "60"}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_parent)


def marionette_port(browser, profile):
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline and browser.poll() is None:
        try:
            text = open(profile + "/MarionetteActivePort").read()
            if text:
                return int(text)
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    sys.exit("firefox does not listen")


class Commands:
    """Lines of standard input, without waiting for them."""

    def __init__(self):
        self.data = b""
        self.isOpen = True

    def next(self):
        while self.isOpen and select.select([0], [], [], 0)[0]:
            more = os.read(0, 4096)
            self.isOpen = bool(more)
            self.data += more
        line, found, rest = self.data.partition(b"\n")
        if not found:
            return None
        self.data = rest
        return line.decode().split() or None


def click(page, name):
    page.evaluate(f"document.getElementById('{name}').click()")


def run(page, sound, words, options):
    say("command", words=words)
    if words[0] == "digits":
        for digit in words[1]:
            page.evaluate(f"[...document.querySelectorAll('#keypad button')].find(b => b.textContent === '{digit}').click()")
    elif words[0] in ("hold", "mute", "hangup"):
        click(page, words[0])
    elif words[0] == "say":
        sound.play(options.play)
    elif words[0] == "plug":
        sound.plug(words[1])
    elif words[0] == "unplug":
        sound.unplug(words[1])
    elif words[0] == "play":
        sound.play(words[2] if words[2:] else options.play, words[1])
    elif words[0] == "sources":
        say("sources", names=sound.sources())
    elif words[0] == "level":
        say("level", sink=words[1], level=sound.level(words[1]))
    elif words[0] in ("loudspeaker", "microphone"):
        say("chosen", device=page.evaluate(CHOOSE % (json.dumps("audiooutput" if words[0] == "loudspeaker" else "audioinput"),
                                                     json.dumps(words[1]), words[0].capitalize())))
    elif words[0] == "meters":
        say("meters", peaks=page.evaluate("return window.meters?.peaks ?? null"))
    elif words[0] == "reload":
        # A busy machine's Firefox answers while the old document is still there, whose log would be read again.
        page.evaluate("window.__left = true; return true")
        page.call("WebDriver:Refresh")
        until = time.monotonic() + 15
        while time.monotonic() < until and is_left(page):
            time.sleep(0.02)
        options.answer, options.call = False, None
        return True
    return False


def is_left(page):
    try:
        return page.evaluate("return window.__left === true")
    except (RuntimeError, OSError, ValueError):
        return True


def open_page(page, options):
    if not options.bare:
        return page.call("WebDriver:Navigate", url=options.url)
    url, token = bare_url(options.url)
    page.call("WebDriver:Navigate", url=url)
    deadline = time.monotonic() + 20
    while not is_there(page):
        if time.monotonic() > deadline:
            sys.exit("the page did not load")
        time.sleep(0.05)
    page.evaluate(BARE_PAGE.replace("TOKEN", json.dumps(token)))


def is_there(page):
    try:
        return page.evaluate("return location.protocol.startsWith('http') && document.readyState === 'complete'")
    except (RuntimeError, OSError, ValueError):
        return False


def follow(page, sound, options):
    deadline = time.monotonic() + options.seconds
    commands = Commands()
    seen, spoken, connected = 0, False, None
    while time.monotonic() < deadline:
        try:
            # Of a new document too, whose log begins anew.
            entries = page.evaluate(PAGE_HOOK + f"; return window.__log.slice({seen});") or []
        except RuntimeError as error:
            say("between", why=str(error.args[0].get("error")))  # two documents
            entries = []
            if error.args[0].get("error") not in ("javascript error", "no such window", "unknown error"):
                raise
        if options.preflight and seen and (result := page.evaluate("return window.__preflight ?? null")):
            say("preflight", **json.loads(result))
            return
        for entry in entries:
            seen += 1
            print(json.dumps(entry), flush=True)
            if entry["event"] == "line" and entry["state"] == "online" and options.call:
                page.evaluate(f"document.getElementById('number').value = {json.dumps(options.call)};"
                              "document.getElementById('dial').click()")
                options.call = None
            if entry["event"] == "line" and entry["state"] == "online" and options.preflight:
                page.evaluate("trunkline.preflight().then((result) => { window.__preflight = JSON.stringify(result); }); return null")
            if entry["event"] == "call" and entry["direction"] == "incoming" and options.answer:
                options.answer = False
                page.evaluate("call.answer()") if options.bare else click(page, "answer")
            if entry["event"] == "state" and entry["state"] == "connected":
                connected = connected or time.monotonic()
                if options.play and not options.say_when_told and not spoken:
                    spoken = True
                    sound.play(options.play)
            if entry["event"] == "state" and entry["state"] == "ended" or entry["event"] == "refused":
                return
        if sound.has_played():
            say("played")
        words = commands.next()
        if words and run(page, sound, words, options):
            seen = 0
        if connected and options.hangup_after and time.monotonic() - connected > options.hangup_after:
            say("hangup")
            click(page, "hangup")
            options.hangup_after = None
        time.sleep(0.03)
    say("timeout")
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="login link of the web phone")
    parser.add_argument("--bare", action="store_true", help="the token of the link, in a page without any of ours")
    parser.add_argument("--any-certificate", action="store_true", help="of TLS")
    parser.add_argument("--answer", action="store_true")
    parser.add_argument("--preflight", action="store_true", help="makes the preflight test, prints it and ends")
    parser.add_argument("--call", metavar="NUMBER")
    parser.add_argument("--play", metavar="WAV")
    parser.add_argument("--say-when-told", action="store_true", help="by the command, not when the call is connected")
    parser.add_argument("--record", metavar="WAV", help="8 kHz, from before the login on")
    parser.add_argument("--hangup-after", type=float, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="trunkline-firefox-")
    profile = folder + "/profile"
    os.mkdir(profile)
    sound = browser = None
    try:
        sound = Sound(folder)
        browser = start_browser(profile, sound.environment)
        page = Marionette(marionette_port(browser, profile), options.any_certificate)
        if options.record:
            sound.record(options.record)
            say("record")
        open_page(page, options)
        try:
            follow(page, sound, options)
        finally:
            if options.record:
                sound.finish_record()
        say("done", meters=page.evaluate("return window.meters?.peaks ?? null"))
    finally:
        if browser:
            end_group(browser)
        if sound:
            sound.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
