"""A stand-in of the admin port for looking at the status page: serves the page's files and answers /v1/status and /readyz as a scenario says.

    server = FakeAdmin()
    server.scenario = {...}          what `answer` takes; see status_states.py
    server.base, server.requests     the address, and the paths that were asked for
    server.close()
"""
import copy, http.server, json, os, socket, threading, time, urllib.parse

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Sources/Client/WebStatus")
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".md": "text/markdown"}
STARTED = 1_790_000_000_000
DAY = 86_400_000


def call(number, **more):
    row = {
        "call": f"00000000-0000-4000-8000-{number:012x}", "sipCallId": f"{number:x}-a84b4c76e66710@203.0.113.9", "direction": "in", "state": "connected",
        "trunk": "carrier", "from": f"+1555777{number:04d}", "to": "+15551230001", "user": "alice", "start": STARTED + DAY - 95_000,
        "connected": STARTED + DAY - 83_000, "held": False, "quality": "good", "fromTrunk": {"mos": 4.3, "loss": 0.001}, "fromApp": {"mos": 4.1, "loss": 0.002}}
    return {key: value for key, value in (row | more).items() if value is not None}


def ended(number, **more):
    row = {
        "call": f"00000000-0000-4000-8000-{number:012x}", "sipCallId": f"{number:x}-b7@203.0.113.9", "direction": "in", "trunk": "carrier",
        "from": f"+1555777{number:04d}", "to": "+15551230001", "user": "alice", "device": "web", "start": STARTED + DAY - 400_000,
        "end": STARTED + DAY - 1_000 * number, "connectedMs": 61_000, "reason": "remoteHangup", "by": "trunk", "sip": 200,
        "fromTrunk": {"mos": 4.2, "loss": 0.0}, "fromApp": {"mos": 4.4, "loss": 0.0}}
    return {key: value for key, value in (row | more).items() if value is not None}


def trunk(name="carrier", **more):
    return {
        "trunk": name, "up": True, "breakerOpen": False, "calls": 2, "callsLimit": 30, "servers": [{"address": "203.0.113.9:5060", "up": True}],
        "registration": {"registered": True, "expires": STARTED + DAY + 240_000}, "since": STARTED + 4_000, **more}


def status(calls=(), trunks=None, past=(), **more):
    trunks = [trunk()] if trunks is None else trunks
    value = {
        "version": "0.1.0", "node": "gw-a", "instance": "one", "started": STARTED, "now": STARTED + DAY, "ready": True,
        "components": [{"name": "calls", "ready": True}, {"name": "store", "ready": True}, {"name": "trunks", "ready": True}],
        "trunks": {"count": len(trunks), "down": sum(not one["up"] for one in trunks), "rows": trunks[:100]},
        "calls": {"count": len(calls), "found": len(calls), "poor": sum(one["quality"] == "poor" for one in calls), "at": STARTED + DAY, "complete": True,
                  "rows": list(calls)[:100]},
        "ended": list(past),
        "hour": {"total": {"incoming": 40, "outgoing": 12, "incomingConnected": 31, "outgoingConnected": 9, "reasons": {"connected": 40, "busy": 7, "unanswered": 4, "trunkFailed": 1}},
                 "minutes": [(7 * at) % 5 for at in range(60)]}}
    return value | more


class FakeAdmin:
    def __init__(self):
        # `status`: a document or a list of them, one after the other; `token`: what is wanted; `code`, `problem`: a refusal; `delay`: seconds;
        # `silent`: the connection is cut
        self.scenario = {"status": status()}
        self.requests = []
        self.answered = 0
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                fake.answer(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # the page went away while it was answered

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_port}/"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        url = urllib.parse.urlsplit(request.path)
        if url.path in ("/v1/status", "/readyz"):
            self.requests.append(request.path)
            return self.api(request, url)
        path = os.path.normpath(os.path.join(ROOT, "index.html" if url.path == "/" else url.path.lstrip("/")))
        if url.path == "/status/icon.svg":
            path = os.path.join(ROOT, "../WebPhone/icon.svg")
        if url.path == "/status/runbooks.md":
            path = os.path.join(ROOT, "../../../docs/operate/runbooks.md")
        if not os.path.isfile(path):
            return self.send(request, 404, "text/plain", b"none")
        with open(path, "rb") as file:
            self.send(request, 200, KINDS[os.path.splitext(path)[1]], file.read())

    def api(self, request, url):
        scenario = self.scenario
        if scenario.get("delay"):
            time.sleep(scenario["delay"])
        if scenario.get("silent"):
            request.close_connection = True
            return request.connection.shutdown(socket.SHUT_RDWR)
        given = request.headers.get("Authorization")
        if scenario.get("token") and given != "Bearer " + scenario["token"]:
            return self.problem(request, 401, "authorization: Bearer <token>")
        if scenario.get("code"):
            return self.problem(request, scenario["code"], scenario.get("problem", "refused"))
        documents = scenario["status"] if isinstance(scenario["status"], list) else [scenario["status"]]
        document = copy.deepcopy(documents[self.answered % len(documents)])
        self.answered += 1
        find = urllib.parse.parse_qs(url.query).get("find", [None])[0]
        if find:
            rows = [row for row in scenario.get("all", document["calls"]["rows"]) if find.lower() in json.dumps(row).lower()]
            document["calls"] |= {"rows": rows[:100], "found": len(rows)}
        if url.path == "/readyz":
            document = {key: document[key] for key in ("ready", "components")}
        self.send(request, 503 if url.path == "/readyz" and not document["ready"] else 200, "application/json", json.dumps(document).encode())

    def problem(self, request, code, detail):
        self.send(request, code, "application/problem+json", json.dumps({"type": "about:blank", "title": "", "status": code, "detail": detail, "code": "x"}).encode())

    def send(self, request, code, kind, body):
        request.send_response(code)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
        request.end_headers()
        request.wfile.write(body)
