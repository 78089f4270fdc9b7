"""What a person does with the web phone over fake_trunkline.js, in Chromium or Firefox, without a gateway: each act is judged by what is seen, by
what a screen reader is given (live regions, names, focus) and by which tones sound.

Prints {"event": "act", "name": ..., "faults": [...]} for each, then {"event": "done", "acts": n}. The acts are in acts_*.py.
"""
import argparse, functools, http.server, json, os, shutil, tempfile, threading, time, traceback
from websockets.sync.client import connect
import acts_calls, acts_devices, acts_looks, acts_numbers, acts_people
from browser_phone import Page, debugger_url, debugging_port, end_group, say, start_browser
import firefox_phone
from phone_states import PHONE, Files

ACTS = acts_calls.ACTS + acts_people.ACTS + acts_devices.ACTS + acts_looks.ACTS + acts_numbers.ACTS

# Before the page's scripts: what live regions say, once for each batch of changes, and which tones sound.
HOOK = r"""
addEventListener("beforeunload", (event) => event.stopImmediatePropagation());
window.broken = [];
addEventListener("error", ({ message }) => broken.push(message));
addEventListener("unhandledrejection", ({ reason }) => broken.push(String(reason)));
window.spoken = [];
{
  const last = new Map();
  new MutationObserver(() => {
    for (const region of document.querySelectorAll("[aria-live], [role=alert], [role=status]")) {
      const text = region.checkVisibility() ? region.textContent.trim() : "", before = last.get(region) ?? "";
      last.set(region, text);
      if (text && text !== before && region.ariaLive !== "off") spoken.push({ id: region.id, text, isAssertive: region.ariaLive === "assertive" || region.role === "alert" });
    }
  }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
}
window.contexts = [];
{
  const Real = AudioContext;
  window.AudioContext = class extends Real {
    constructor(...all) { super(...all); this.tones = []; contexts.push(this); }
    createGain() {
      const made = super.createGain(), { setTargetAtTime } = made.gain;
      made.gain.setTargetAtTime = (value, ...all) => { this.loudest = Math.max(this.loudest ?? 0, value); return setTargetAtTime.call(made.gain, value, ...all); };
      return made;
    }
    createOscillator() { const made = super.createOscillator(); this.tones.push(made); return made; }
    get pitches() { return this.tones.map((one) => one.frequency.value); }
  };
}
window.sinks = [];
for (const kind of [AudioContext, HTMLMediaElement]) {
  const { setSinkId } = kind.prototype;
  if (setSinkId) kind.prototype.setSinkId = function (id) { sinks.push(id); return setSinkId.call(this, id); };
}
window.sounding = () => contexts.filter((one) => one.state !== "closed" && one.tones.length).map((one) => one.pitches.join("+"));
"""

KEYS = {"Enter": ("\r", 13, "\ue007"), "Tab": ("", 9, "\ue004"), "Escape": ("", 27, "\ue00c"), " ": (" ", 32, " "), "ArrowRight": ("", 39, "\ue014")}


class Chromium:
    """A tab, by DevTools."""

    def __init__(self, base):
        self.base = base
        self.profile = tempfile.mkdtemp(prefix="trunkline-chromium-")
        self.browser = start_browser(argparse.Namespace(play=None, loop=False), self.profile)
        self.socket = connect(debugger_url(debugging_port(self.browser)), max_size=64 << 20)
        self.page = Page(self.socket)
        self.page.call("Page.enable")
        self.page.call("Page.addScriptToEvaluateOnNewDocument", source=HOOK)

    def resize(self, width, height):
        self.page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def go(self, path, width=400, height=860):
        self.resize(width, height)
        self.page.call("Page.navigate", url="about:blank")
        self.page.call("Page.navigate", url=self.base + path)

    def js(self, script):
        return self.page.evaluate(script)

    def key(self, name, modifiers=0):
        text, code, _ = KEYS.get(name, (name, ord(name[0].upper()), name))
        down = {"type": "keyDown" if text and not modifiers else "rawKeyDown", "key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.page.call("Input.dispatchKeyEvent", **down, **({"text": text} if text and not modifiers else {}))
        self.page.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code, modifiers=modifiers)

    def mouse(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def media(self, **features):
        self.page.call("Emulation.setEmulatedMedia", features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def tree(self):
        """What a screen reader walks through: "role name" in its order, without what is left out."""
        self.page.call("Accessibility.enable")
        nodes = {node["nodeId"]: node for node in self.page.call("Accessibility.getFullAXTree")["nodes"]}
        found = []

        def walk(node):
            role, name = node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")
            if not node.get("ignored") and role not in ("InlineTextBox", "none", "generic", "LineBreak"):
                found.append(f"{role} {name}".strip())
            for child in node.get("childIds", []):
                if child in nodes:
                    walk(nodes[child])

        walk(next(node for node in nodes.values() if "parentId" not in node))
        return found

    def close(self):
        self.socket.close()
        end_group(self.browser)
        shutil.rmtree(self.profile, ignore_errors=True)


class Firefox:
    """A tab, by Marionette."""

    def __init__(self, base):
        self.base = base
        self.profile = tempfile.mkdtemp(prefix="trunkline-firefox-")
        firefox_phone.PREFERENCES["media.navigator.streams.fake"] = True
        self.browser = firefox_phone.start_browser(self.profile, {**os.environ, "HOME": self.profile})
        self.marionette = firefox_phone.Marionette(firefox_phone.marionette_port(self.browser, self.profile))

    def go(self, path, width=400, height=860):
        self.marionette.call("WebDriver:SetWindowRect", width=max(450, width), height=height + 90)
        self.marionette.call("WebDriver:Navigate", url="about:blank")
        self.marionette.call("WebDriver:Navigate", url=self.base + "/hooked" + path.removeprefix("/"))

    def js(self, script):
        made = self.marionette.call("WebDriver:ExecuteAsyncScript", args=[], sandbox=None, script=(
            "const done = arguments[arguments.length - 1]; (async () => window.eval(" + json.dumps(script) + "))()"
            ".then((value) => done({ value: value === undefined ? null : value }), (error) => done({ error: String(error) }));"))["value"]
        if not made or made.get("error"):
            raise RuntimeError(made["error"] if made else "the page was left meanwhile")
        return made.get("value")

    def key(self, name, modifiers=0):
        value, held = KEYS.get(name, (None, None, name))[2], {2: "\ue009", 1: "\ue00a"}.get(modifiers)
        strokes = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        if held:
            strokes = [{"type": "keyDown", "value": held}, *strokes, {"type": "keyUp", "value": held}]
        self.marionette.call("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": strokes}])

    def mouse(self, x, y):
        self.marionette.call("WebDriver:PerformActions", actions=[{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}])

    def close(self):
        end_group(self.browser)
        shutil.rmtree(self.profile, ignore_errors=True)


class Hooked(Files):
    """Firefox has no script before a page's own but what the page is served with."""

    def do_GET(self):
        if not self.path.startswith("/hooked"):
            return super().do_GET()
        with open(os.path.join(PHONE, "index.html"), encoding="utf-8") as file:
            data = file.read().replace("<head>", f"<head><base href='/'><script>{HOOK}</script>", 1).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Person:
    """Who uses the page: looks, clicks, presses keys, and notes what is wrong."""

    def __init__(self, driver):
        self.driver = driver
        self.faults = []
        self.js, self.key = driver.js, driver.key

    def opens(self, state="idle", width=400, height=860):
        self.driver.go(f"/?state={state}" + ("" if state == "login" else "#token=t"), width, height)
        deadline = time.monotonic() + 20
        while True:
            self.until("document.readyState === 'complete' && (globalThis.shown || location.search === '?state=login')", 20)
            try:
                return self.js("globalThis.shown")
            except RuntimeError:
                # a page that could not load one of its parts loads again by itself
                if time.monotonic() > deadline:
                    raise

    def until(self, condition, seconds=5):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.js(f"!!({condition})"):
                    return True
            except RuntimeError:
                pass
            if time.monotonic() > deadline:
                return False
            time.sleep(0.03)

    def sees(self, condition, why, seconds=5):
        if not self.until(condition, seconds):
            self.faults.append(f"{why}: not {condition}")

    def reads(self, id, words):
        at = f"document.getElementById('{id}')"
        if not self.until(f"{at}?.checkVisibility() && {at}.textContent.includes({json.dumps(words)})"):
            self.faults.append(f"{id} does not say {words!r} but {self.js(at + '?.textContent')!r}")

    def shown(self, *ids, isShown=True):
        for id in ids:
            if not self.until(f"!!document.getElementById('{id}')?.checkVisibility() === {json.dumps(isShown)}"):
                self.faults.append(f"{id} is {'not ' if isShown else ''}shown")

    def hidden(self, *ids):
        self.shown(*ids, isShown=False)

    def hears(self, words, isAssertive=False):
        """Of a live region."""
        found = f"spoken.some((one) => one.text.includes({json.dumps(words)}) && one.isAssertive === {json.dumps(isAssertive)})"
        if not self.until(found):
            self.faults.append(f"{'assertive' if isAssertive else 'polite'} live regions do not say {words!r}: {self.js('spoken')}")

    def sounds(self, tones, seconds=5):
        if not self.until(f"sounding().join() === '{tones}'", seconds):
            self.faults.append(f"sounds {self.js('sounding()')}, not {tones or 'nothing'}")

    def focus(self):
        return self.js("document.activeElement?.id || document.activeElement?.tagName")

    def stays(self, where):
        """Where the keyboard is."""
        if not self.until(f"(document.activeElement?.id || document.activeElement?.tagName) === '{where}'"):
            self.faults.append(f"the keyboard is at {self.focus()}, not at {where}")

    def not_lost(self, when):
        """Two frames later: a browser moves the focus from what is hidden at the next one."""
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if self.js("document.activeElement === document.body || !document.activeElement?.checkVisibility()"):
            self.faults.append(f"the keyboard is at {self.focus()} {when}")

    def clicks(self, id):
        self.shown(id)
        self.driver.mouse(*self.js(f"(() => {{ const at = document.getElementById('{id}'); at.scrollIntoView({{ block: 'center' }}); const b = at.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"))

    def types(self, text):
        for letter in text:
            self.key(letter)

    def expects(self, isSo, why):
        if not isSo:
            self.faults.append(why)


def played(act, driver):
    person = Person(driver)
    try:
        act(person)
        person.faults += person.js("broken")
        person.js("sessionStorage.clear(); localStorage.clear()")
    except (Exception, SystemExit):
        person.faults.append(traceback.format_exc(limit=3))
    return person


def is_lost(driver):
    """Its tab has no page of ours any more: the browser has lost the tab's process, or itself."""
    try:
        return driver.js("document.getElementById('status') !== null") is not True
    except (Exception, SystemExit):
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--firefox", action="store_true")
    parser.add_argument("--only", metavar="NAME", action="append")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Hooked, directory=PHONE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    start = functools.partial(Firefox if options.firefox else Chromium, f"http://127.0.0.1:{server.server_port}")
    chosen = [act for act in ACTS if (not options.only or act.__name__ in options.only) and not (options.firefox and getattr(act, "isChromiumOnly", False))]
    driver = start()
    try:
        for act in chosen:
            person = played(act, driver)
            # Firefox ESR loses the process of its tab now and then: no fault of the page's, unless a new browser loses it, too.
            if person.faults and options.firefox and is_lost(driver):
                driver.close()
                driver = start()
                person = played(act, driver)
            say("act", name=act.__name__, faults=person.faults)
        say("done", acts=len(chosen))
    finally:
        driver.close()
        server.shutdown()


if __name__ == "__main__":
    main()
