"""Brings the web phone into every state of fake_trunkline.js, without a gateway, and says what is wrong with its looks (page_faults.js,
axe-core).

Prints {"event": "state", "state": ..., "look": ..., "faults": [...]} for each state and look, then {"event": "done", "states": n}.
With --shots each is kept as a picture. With --texts the looks are those of the languages: every text of the page's table stands in brackets, and a
text in none of them is a fault, for it has no translation; German, French and Spanish must fit the smallest screen.
"""
import argparse, base64, functools, http.server, os, shutil, tempfile, threading
from websockets.sync.client import connect
from axe import violations
from browser_phone import Page, debugger_url, debugging_port, end_group, say, start_browser

HERE = os.path.dirname(os.path.abspath(__file__))
PHONE = os.path.join(HERE, "../../../Sources/Client/WebPhone")
# name, width, height, dark
LOOKS = [("320", 320, 640, False), ("400-dark", 400, 860, True), ("480", 480, 900, False), ("1280", 1280, 860, False)]
# what the browser asks for, whether the texts are marked, the look
TEXTS = [("en-US", True, "400-dark"), ("de-AT", False, "320"), ("fr", False, "320"), ("es", False, "320")]
# for pictures only
MORE = [("400", 400, 860, False), ("1280-dark", 1280, 860, True)]


# What is shown as it is in every language: names, numbers, times, digits, and what names a device or a codec.
UNMARKED = """[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("body *, dialog *")].filter((e) => e.checkVisibility() && !e.closest("svg, h1"))
  .flatMap((e) => [e.ariaLabel, e.getAttribute("placeholder"), ...[...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data)])
  .map((text) => (text ?? "").replace(/⟦[^⟧]*⟧/g, "").trim())
  .filter((text) => /\\p{L}{2}/u.test(text) && !/[\u2068\u0301]/.test(text) && !/^(alice|דנה|مرحبا|W+…|<img|agpj|\\+?\\d|Ada|Grace|Wilhelmina|Ren|Built-in|USB|opus|[A-Z]{2,4}$|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) )/.test(text))
  .map((text) => `not in the table: ${text}`)"""
MARKS = """
const marked = (entry) => (typeof entry === "string" ? `⟦${entry.replace(/\\{\\w+\\}/g, "⟧$&⟦")}⟧` : Object.fromEntries(Object.entries(entry).map(([name, text]) => [name, marked(text)])));
for (const key of Object.keys(TEXTS)) TEXTS[key] = marked(TEXTS[key]);
export default TEXTS;
"""


class Files(http.server.SimpleHTTPRequestHandler):
    # one connection and one load of a file for all states: a page is some fifty files
    protocol_version = "HTTP/1.1"
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript", ".webmanifest": "application/manifest+json"}

    def translate_path(self, path):
        path = path.split("?")[0]
        if path == "/trunkline/trunkline.js":
            return os.path.join(HERE, "fake_trunkline.js")
        if path == "/service-worker.js":
            return os.path.join(PHONE, "../WebClient/service-worker.js")
        return super().translate_path(path)

    is_marked = False

    def end_headers(self):
        self.send_header("Cache-Control", "no-store" if self.path == "/texts-en.js" else "max-age=600")
        super().end_headers()

    def do_GET(self):
        if not (self.is_marked and self.path == "/texts-en.js"):
            return super().do_GET()
        with open(os.path.join(PHONE, "texts-en.js"), encoding="utf-8") as file:
            body = (file.read().replace("export default", "const TEXTS =") + MARKS).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # the page went away while a file was sent


def look(page, width, height, dark):
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    page.call("Emulation.setEmulatedMedia", features=[
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}])


def shoot(page, path, width):
    height = page.evaluate("Math.max(innerHeight, document.documentElement.scrollHeight)")
    shot = page.call("Page.captureScreenshot", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
    with open(path, "wb") as file:
        file.write(base64.b64decode(shot["data"]))


def visit(page, base, state, options, looks, faults, language=None):
    # loaded once: what is wide and narrow, light and dark is the stylesheet's
    for at, (name, width, height, dark) in enumerate(looks):
        look(page, width, height, dark)
        if at == 0:
            load(page, base, state)
        # page_faults.js looks at contrast, too, and at every width; axe once for each colour scheme
        isNewScheme = all(earlier[3] != dark for earlier in looks[:at])
        found = page.evaluate(faults) + ([] if language else violations(page, contrast=isNewScheme))
        say("state", state=state, look=name, language=language, faults=found)
        if options.shots:
            shoot(page, os.path.join(options.shots, f"{state}-{name}.png"), width)
    page.evaluate("sessionStorage.clear(); localStorage.clear()")


def load(page, base, state):
    # the same page but for what is behind # would not be loaded again
    page.call("Page.navigate", url="about:blank")
    page.call("Page.navigate", url=f"{base}/?state={state}" + ("" if state == "login" else "#token=t"))
    # the page of the login runs once start.js' text, which is there before any table, has gone
    page.evaluate("new Promise((done) => { const look = setInterval(() => { if (document.readyState === 'complete' && (globalThis.shown || (location.search === '?state=login' && !/^(Loading|Wird geladen|Chargement|Cargando)/.test(document.getElementById('status').textContent)))) { clearInterval(look); done(globalThis.shown); } }, 5); })")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", metavar="FOLDER")
    parser.add_argument("--more-looks", action="store_true", help="each width in light and dark")
    parser.add_argument("--only", metavar="STATE", action="append")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--look", action="append", choices=[row[0] for row in LOOKS])
    options = parser.parse_args()
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    options.looks = [row for row in LOOKS + (MORE if options.more_looks else []) if not options.look or row[0] in options.look]
    server = Server(("127.0.0.1", 0), functools.partial(Files, directory=PHONE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    profile = tempfile.mkdtemp(prefix="trunkline-chromium-")
    browser = start_browser(argparse.Namespace(play=None, loop=False), profile)
    try:
        with connect(debugger_url(debugging_port(browser)), max_size=64 << 20) as socket:
            page = Page(socket)
            page.call("Page.enable")
            page.call("Page.navigate", url=base)
            states = ["login"] + page.evaluate("import('/trunkline/trunkline.js').then((m) => Object.keys(m.STATES))")
            faults = open(os.path.join(HERE, "page_faults.js"), encoding="utf-8").read()
            chosen = [state for state in states if not options.only or state in options.only]
            agent = page.evaluate("navigator.userAgent")
            for language, is_marked, name in TEXTS if options.texts else [("en-US", False, None)]:
                Files.is_marked = is_marked
                page.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
                looks = [row for row in options.looks if name in (None, row[0])]
                for state in chosen:
                    visit(page, base, state, options, looks, UNMARKED if is_marked else faults, language if name else None)
            say("done", states=len(chosen))
    finally:
        end_group(browser)
        shutil.rmtree(profile, ignore_errors=True)
        server.shutdown()


if __name__ == "__main__":
    main()
