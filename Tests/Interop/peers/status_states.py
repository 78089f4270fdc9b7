"""Brings the status page into every state over a stand-in of the admin port (fake_admin.py), without a gateway, and says what is wrong with its looks
(page_faults.js, axe-core) and what is not seen or read as it must be.

Prints {"event": "state", "state": ..., "look": ..., "faults": [...]} for each state and look, then {"event": "behaviour", "name": ..., "faults": [...]}
for each behaviour, then {"event": "done", ...}. With --shots each state is kept as a picture.
"""
import argparse, os, shutil, tempfile, time
from websockets.sync.client import connect
from axe import violations
from browser_phone import Page, debugger_url, debugging_port, end_group, say, start_browser
from fake_admin import DAY, STARTED, FakeAdmin, call, ended, status, trunk
from phone_states import look, shoot

HERE = os.path.dirname(os.path.abspath(__file__))
# name, width, height, dark
LOOKS = [("400", 400, 860, False), ("400-dark", 400, 860, True), ("1280", 1280, 860, False), ("1280-dark", 1280, 860, True)]
FAULTS = open(os.path.join(HERE, "page_faults.js"), encoding="utf-8").read()
LONG, MARKUP = "x" * 500, '<img src=x onerror="document.title=1"><script>document.title=1</script>&amp;'

DOWN = trunk("backup", up=False, why="OPTIONS not answered", calls=0, since=STARTED + DAY - 200_000, servers=[{"address": "198.51.100.7:5060", "up": False}],
             registration=None, lastRefusal={"method": "OPTIONS", "failure": "timeout", "at": STARTED + DAY - 4_000}, unanswered=[{"method": "OPTIONS", "failure": "timeout", "count": 12}])
POOR = call(2, quality="poor", fromTrunk={"mos": 2.2, "loss": 0.094}, direction="out", user="bob")
CALLS = [POOR, call(3, quality="fair", fromApp={"mos": 3.7, "loss": 0.021}), call(1), call(4, state="ringing", quality="unknown", connected=None, fromTrunk=None, fromApp=None)]
PAST = [ended(9), ended(10, reason="busy", connectedMs=0, sip=486, fromTrunk=None, fromApp=None), ended(11, reason="trunkFailed", connectedMs=0, sip=503, detail="503 from the carrier", fromTrunk=None, fromApp=None),
        ended(12, reason="mediaTimeout", connectedMs=0, by="gateway", fromTrunk=None)]
BROKEN = status(CALLS, [DOWN, trunk()], PAST, ready=False, components=[{"name": "store", "ready": False, "reason": "the disk is full: /var/lib/trunkline/calls.jsonl"}, {"name": "trunks", "ready": True, "note": "down: backup"}])
MANY = [call(number, quality="poor" if number < 40 else "good") for number in range(100)]

# state → the scenario, what is done on the page then, and what is waited for
STATES = {
    "ready": ({"status": status(CALLS[2:], [trunk()], PAST)}, None, "headline.textContent === 'Ready'"),
    "quiet": ({"status": status()}, None, "headline.textContent === 'Ready'"),
    "new": ({"status": status([], [], [], hour={"total": {"incoming": 0, "outgoing": 0, "incomingConnected": 0, "outgoingConnected": 0, "reasons": {}}, "minutes": [0] * 60})}, None, "headline.textContent === 'Ready'"),
    "trunk-down": ({"status": status(CALLS, [DOWN, trunk()], PAST)}, None, "headline.textContent.includes('1 trunk down')"),
    "not-ready": ({"status": BROKEN}, None, "headline.textContent.startsWith('Not ready: store')"),
    "details": ({"status": BROKEN}, "for (const id of ['trunks', 'calls', 'ended']) document.querySelector(`#${id} button`).click()", "document.querySelectorAll('.more:not([hidden])').length === 3"),
    "filtered": ({"status": status(CALLS, [DOWN, trunk()], PAST)}, "filter.value = 'bob'; filter.dispatchEvent(new Event('input'))", "found.textContent.includes('1 call')"),
    "found-none": ({"status": status(CALLS, [trunk()], PAST)}, "filter.value = 'nobody'; filter.dispatchEvent(new Event('input'))", "found.textContent.includes('0 calls')"),
    "busy-calls": ({"status": status(CALLS, past=PAST) | {"calls": status(CALLS)["calls"] | {"complete": False, "at": STARTED + DAY - 40_000}}}, None, "document.getElementById('as-of').textContent.includes('too busy')"),
    "many": ({"status": status(MANY, past=PAST) | {"calls": status(MANY)["calls"] | {"count": 10_000, "found": 10_000, "poor": 40}}}, None, "document.querySelectorAll('#calls tbody').length === 101"),
    "long": ({"status": status([call(1, user=LONG, **{"from": LONG, "to": LONG, "trunk": LONG})], [trunk(LONG, up=False, why="not located", lookUp=LONG)], [ended(9, detail=LONG, user=LONG, to=LONG)], node=LONG)}, "document.querySelectorAll('button.open').forEach((one) => one.click())", "document.querySelectorAll('.more:not([hidden])').length === 3"),
    "markup": ({"status": status([call(1, user=MARKUP, trunk=MARKUP)], [trunk(MARKUP, up=False, why=MARKUP)], [ended(9, detail=MARKUP, reason=MARKUP)], node=MARKUP)}, None, "board.textContent.includes('<script>')"),
    "token": ({"status": status(), "token": "right"}, None, "!login.hidden"),
    "wrong-token": ({"status": status(), "token": "right"}, "token.value = 'wrong'; show.click()", "document.getElementById('login-fault').textContent"),
    "forbidden": ({"status": status(), "code": 403, "problem": "getStatus needs the scope read"}, None, "headline.textContent.includes('scope read')"),
    "old": ({"status": BROKEN}, "SILENT", "board.classList.contains('old')"),
    "never": ({"silent": True}, None, "headline.textContent.startsWith('No answer')"),
    "overloaded": ({"code": 503, "problem": "the gateway is too busy to answer", "status": status()}, None, "headline.textContent.startsWith('Too busy')"),
    "two-nodes": ({"status": [status(), status(node="gw-b", instance="two")]}, "feed.ask()", "notice.textContent.includes('gw-a and gw-b')"),
    "upgraded": ({"status": status()}, "UPGRADE", "notice.textContent.includes('0.2.0')"),
    "runbooks": ({"status": status(), "page": "status/runbooks.html#trunk-down"}, None, "document.activeElement?.id === 'trunk-down'"),
}


class Browser:
    def __init__(self, page, admin):
        self.page, self.admin = page, admin

    def wait(self, condition, seconds=15):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.page.evaluate(f"!!({condition})"):
                return True
            time.sleep(0.03)
        return False

    def open(self, scenario):
        self.admin.scenario, self.admin.requests, self.admin.answered = scenario, [], 0
        self.page.call("Page.navigate", url="about:blank")
        self.page.call("Page.navigate", url=self.admin.base + scenario.get("page", ""))
        self.wait("location.protocol === 'http:' && document.readyState === 'complete'")
        self.page.evaluate("sessionStorage.clear()")

    def act(self, script):
        if script == "SILENT":
            self.wait("feed.status")
            self.admin.scenario = self.admin.scenario | {"silent": True}
            script = "feed.ask()"
        elif script == "UPGRADE":
            self.wait("feed.status")
            self.admin.scenario = {"status": status(version="0.2.0", instance="new")}
            script = "feed.ask()"
        elif "page" not in self.admin.scenario:
            self.wait("feed.status || feed.fault")
        self.page.evaluate(f"{{ {script} }}; true")

    def key(self, name, **more):
        code = {"Tab": 9, "Enter": 13}.get(name, 0)
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **({"text": "\r"} if name == "Enter" and kind == "keyDown" else {}), **more)


def visit(browser, name, options):
    scenario, script, condition = STATES[name]
    look(browser.page, *options.looks[0][1:])
    browser.open(scenario)
    if script:
        browser.act(script)
    never = [] if browser.wait(condition) else [f"never: {condition}: {browser.page.evaluate('document.body.innerText')[:600]}"]
    for look_name, width, height, dark in options.looks:
        look(browser.page, width, height, dark)
        faults = never + browser.page.evaluate(FAULTS) + violations(browser.page)
        say("state", state=name, look=look_name, faults=faults)
        if options.shots:
            shoot(browser.page, os.path.join(options.shots, f"status-{name}-{look_name}.png"), width)


# — what is not a look —

def focus(browser):
    return browser.page.evaluate("document.activeElement?.id || document.activeElement?.textContent || document.activeElement?.tagName")


def login_by_keyboard(browser):
    """A wrong token is said, the focus stays; the right one leads to the headline."""
    browser.open({"status": status(), "token": "right"})
    yield browser.wait("document.activeElement.id === 'token'"), "the token field has no focus"
    yield "Token required" in browser.page.evaluate("document.title"), "the title does not say that a token is wanted"
    browser.page.call("Input.insertText", text="wrong")
    browser.key("Enter")
    yield browser.wait("document.querySelector('#login-fault[role=alert]').textContent === 'This token is not valid.'"), "a wrong token is not said"
    yield focus(browser) == "token", f"the focus went to {focus(browser)}"
    yield browser.page.evaluate("sessionStorage.length") == 0, "a wrong token is kept"
    browser.page.call("Input.insertText", text="right")
    browser.key("Enter")
    yield browser.wait("login.hidden && headline.textContent === 'Ready'"), "the right token does not log in"
    yield focus(browser) == "headline", f"the focus went to {focus(browser)}"


def token_ends(browser):
    """A token that ends meanwhile: said, rows grey, the focus is not taken from who reads; no request until there is another."""
    browser.open({"status": status(CALLS), "token": "right"})
    browser.page.evaluate("feed.token = 'right'; feed.ask()")
    yield browser.wait("feed.status && login.hidden"), "the right token does not log in"
    browser.page.evaluate("document.querySelector('#calls button').focus()")
    browser.admin.scenario = browser.admin.scenario | {"token": "other"}
    browser.page.evaluate("feed.ask()")
    yield browser.wait("!login.hidden && board.classList.contains('old')"), "a token that ended is not said"
    yield browser.page.evaluate("document.getElementById('login-fault').textContent") == "The token has expired or was revoked.", "it is not said that the token ended"
    yield browser.page.evaluate("document.activeElement.className") == "open", "the focus was taken away"
    asked = len(browser.admin.requests)
    browser.page.evaluate("feed.wait")
    time.sleep(0.3)
    yield len(browser.admin.requests) == asked, "it goes on asking with a token that was refused"


def selection_stays(browser):
    """What is selected, opened or has the focus is so after rows came, went and changed places."""
    browser.open({"status": status([call(1), call(2), call(3)])})
    yield browser.wait("document.querySelectorAll('#calls tbody.none[hidden] ~ tbody').length === 3"), "no rows"
    browser.page.evaluate("""(() => { const row = document.querySelectorAll('#calls tbody:not(.none)')[1]; row.querySelector('button').click(); row.querySelector('button').focus();
      getSelection().selectAllChildren([...row.querySelectorAll('dd')].at(-1)); })()""")
    before = browser.page.evaluate("getSelection().toString()")
    browser.admin.scenario = {"status": status([call(7), call(2, fromTrunk={"mos": 3.9, "loss": 0.01}), call(3), call(8)], now=STARTED + DAY + 5_000)}
    browser.page.evaluate("feed.ask()")
    yield browser.wait("document.querySelector('#calls').textContent.includes('Good 3.9')"), "the row is not updated"
    yield before != "" and browser.page.evaluate("getSelection().toString()") == before, f"{before!r} is not selected any more"
    yield browser.page.evaluate("document.activeElement.ariaExpanded") == "true", "the opened row has lost the focus"
    yield browser.page.evaluate("[...document.querySelectorAll('#calls tbody:not(.none)')].map((one) => one.dataset.key.slice(-1)).join('')") == "7238", "the rows have another order"


def old_rows(browser):
    """When the gateway does not answer: grey rows with their age, title and icon of an unknown state, later requests, and all is well again by itself."""
    browser.open({"status": BROKEN})
    yield browser.wait("feed.status"), "no answer"
    yield browser.page.evaluate("document.title") == "NOT READY: store · gw-a · Trunkline", f"the title is {browser.page.evaluate('document.title')}"
    bad = browser.page.evaluate("document.querySelector('link[rel=icon]').href")
    browser.act("SILENT")
    yield browser.wait("/Out of date: the state of \\d+ s ago/.test(document.getElementById('as-of').textContent)"), "the age is not said"
    yield browser.wait("document.title.startsWith('No answer for ')"), f"the title is {browser.page.evaluate('document.title')}"
    yield browser.page.evaluate("document.querySelector('link[rel=icon]').href") not in (bad, ""), "the icon is still that of before"
    yield browser.page.evaluate("getComputedStyle(document.querySelector('#trunks')).filter") == "grayscale(1)", "the rows are not grey"
    yield browser.page.evaluate("document.querySelector('[aria-live=assertive]').textContent.startsWith('No answer')"), "it is not spoken at once"
    waits = []
    for _ in range(5):
        browser.page.evaluate("feed.ask()")
        waits.append(browser.page.evaluate("feed.wait"))
    yield waits == sorted(waits) and waits[-1] == 60_000, f"it does not ask more and more seldom: {waits}"
    browser.admin.scenario = {"status": status()}
    browser.page.evaluate("feed.ask()")
    yield browser.wait("!board.classList.contains('old') && document.title === 'Ready · gw-a · Trunkline'"), "it is not well again"


def seldom(browser):
    """One request at a time, each 5 s; a slow gateway is asked more seldom; a hidden page asks for readiness alone."""
    browser.open({"status": status(), "delay": 1})
    yield browser.wait("feed.status"), "no answer"
    yield browser.page.evaluate("feed.wait") >= 9_500, f"a gateway that takes 1 s is asked each {browser.page.evaluate('feed.wait')} ms"
    browser.admin.scenario = {"status": status()}
    browser.page.evaluate("feed.ask()")
    yield browser.page.evaluate("feed.wait") == 5_000, "it does not ask each 5 s"
    asked = len(browser.admin.requests)
    browser.page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))")
    yield browser.page.evaluate("feed.wait") == 60_000, "a hidden page asks as often as one that is seen"
    browser.admin.scenario = {"status": BROKEN}
    browser.page.evaluate("feed.ask()")
    yield browser.wait("document.title.startsWith('NOT READY: store')"), "a hidden page does not say that the gateway is not ready"
    yield browser.admin.requests[asked:] == ["/readyz"], f"a hidden page asked for {browser.admin.requests[asked:]}"
    browser.page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    yield browser.wait("headline.textContent.startsWith('Not ready') && document.querySelectorAll('#trunks tbody').length === 3"), "a page that is seen again is not updated at once"


def two_nodes(browser):
    """Two nodes behind one address: said, the rows are one node's, and no longer said when one answers alone."""
    browser.open({"status": [status([call(1)]), status([call(2)], node="gw-b", instance="two")]})
    yield browser.wait("feed.status"), "no answer"
    for _ in range(6):
        browser.page.evaluate("feed.ask()")
        yield browser.page.evaluate("document.querySelectorAll('#calls tbody:not(.none)').length === 1 && feed.status.node") == "gw-a", "rows of another node are shown"
    yield browser.page.evaluate("notice.textContent").startswith("This address leads to nodes gw-a and gw-b"), "two nodes are not said"
    browser.admin.scenario = {"status": status([call(1)])}
    for _ in range(13):
        browser.page.evaluate("feed.ask()")
    yield browser.page.evaluate("notice.hidden"), "two nodes are said of one"
    browser.admin.scenario = {"status": status([call(1)], instance="restarted", started=STARTED + DAY)}
    browser.page.evaluate("feed.ask()")
    yield browser.page.evaluate("notice.hidden && document.getElementById('about').textContent").startswith("gw-a · 0.1.0 · up 0 s"), "a restart is not shown"


def finds_all(browser):
    """The filter looks through all calls of the gateway, not through the rows of the page alone."""
    browser.open({"status": status(MANY) | {"calls": status(MANY)["calls"] | {"count": 10_000, "found": 10_000}}, "all": MANY + [call(9_876, user="zoe")]})
    yield browser.wait("document.querySelectorAll('#calls tbody').length === 101"), "no rows"
    browser.page.evaluate("document.body.focus()")
    browser.page.call("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    yield focus(browser) == "filter", "/ does not lead to the filter"
    browser.page.call("Input.insertText", text="ZOE")
    yield browser.wait("found.textContent === 'Found: 0 trunks, 1 call, 0 ended calls'"), f"it says {browser.page.evaluate('found.textContent')}"
    yield browser.page.evaluate("document.querySelector('#calls tbody:not(.none) .main').textContent.includes('+15557779876')"), "the call is not shown"


def read_aloud(browser):
    """The accessibility tree: a table with its columns and cells, at 400 px too; a runbook's link and a state that is no colour alone."""
    look(browser.page, 400, 860, False)
    browser.open({"status": BROKEN})
    yield browser.wait("document.querySelectorAll('#trunks tbody').length === 3"), "no rows"
    nodes = browser.page.call("Accessibility.getFullAXTree")["nodes"]
    named = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")}
    cells = [name for role, name in named if role == "cell"]
    for part in ("Does not answer OPTIONS for 3 min 20 s", "Poor 2.2"):
        yield any(part in name for name in cells), f"no cell is read as {part}: {cells}"
    for wanted in [("table", "Trunks (2, 1 down)"), ("columnheader", "State"), ("button", "backup"), ("heading", "Problems now"), ("link", "Runbook"),
                   ("searchbox", "Filter")]:
        yield wanted in named, f"nothing is read as {wanted}: {sorted(one for one in named if one[0] == wanted[0])}"
    browser.page.evaluate("document.querySelector('#trunks a').click()")
    yield browser.wait("document.activeElement?.id === 'trunk-down'"), "the runbook's link does not lead to its section"


BEHAVIOURS = [login_by_keyboard, token_ends, selection_stays, old_rows, seldom, two_nodes, finds_all, read_aloud]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", metavar="FOLDER")
    parser.add_argument("--only", metavar="STATE", action="append")
    parser.add_argument("--look", action="append", choices=[row[0] for row in LOOKS])
    options = parser.parse_args()
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    options.looks = [row for row in LOOKS if not options.look or row[0] in options.look]
    admin = FakeAdmin()
    profile = tempfile.mkdtemp(prefix="trunkline-chromium-")
    browser = start_browser(argparse.Namespace(play=None, loop=False), profile)
    try:
        with connect(debugger_url(debugging_port(browser)), max_size=64 << 20) as socket:
            page = Page(socket)
            page.call("Page.enable")
            seen = Browser(page, admin)
            chosen = [name for name in STATES if not options.only or name in options.only]
            for name in chosen:
                visit(seen, name, options)
            tried = [one for one in BEHAVIOURS if not options.only or one.__name__ in options.only]
            for one in tried:
                look(page, 1280, 860, False)
                say("behaviour", name=one.__name__, faults=[fault for is_right, fault in one(seen) if not is_right])
            say("done", states=len(chosen), behaviours=len(tried))
    finally:
        end_group(browser)
        shutil.rmtree(profile, ignore_errors=True)
        admin.close()


if __name__ == "__main__":
    main()
