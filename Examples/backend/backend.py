"""A backend of a calling app, in Python's standard library. It has the users; the gateway has none, and believes what this one signs.

    python3 backend.py --key jwt.key --users users.json

    curl -d '{"user": "carol", "password": "c", "device": "phone"}' http://127.0.0.1:8090/login
        {"token": "eyJ…", "gateway": null}: what Carol's phone logs in with, for an hour
    curl -X PUT -d '{"numbers": ["+15557000002"]}' http://127.0.0.1:8090/users/carol
        what her next token grants; a number that another user has here moves to her

With --api http://127.0.0.1:7060 and --api-token, a file with a token of the scopes read and calls:

    curl -d '{"user": "carol", "password": "c", "to": "+15557654321"}' http://127.0.0.1:8090/calls
        {"call": "5f0c…"}: Carol's phones ring; when she answers, the number is called
    curl -d '{"user": "carol", "password": "c", "to": "+15557654322"}' http://127.0.0.1:8090/calls/5f0c…/transfer
        whom she talks to talks to that number now

With --directory-key, the file of users[].webhook.key_file, `POST /directory` says whose a number is and what a user has (docs/integrate/users.md).

With --events-key, the file of events.webhooks[].key_file, `POST /events` is what the gateway tells (docs/integrate/events.md): each event is printed once.

users.json:

    {"carol": {"password": "c", "grant": {"numbers": ["+15557000001"], "name": "Carol", "max_calls": 2}}}
"""

import argparse, base64, hashlib, hmac, json, pathlib, threading, time, urllib.error, urllib.request, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_LIMIT = 65536


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(key, user, device, grant, seconds=3600, audience="trunkline"):
    """RFC 7515, HS256. `iat` says which of two tokens is the later one: its fraction counts."""
    now = time.time()
    claims = {"sub": user, "dev": device, "aud": audience, "iat": round(now, 3), "exp": int(now) + seconds, "trunkline": grant}
    message = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
    return (message + b"." + encode(hmac.new(key, message, hashlib.sha256).digest())).decode()


class Users:
    """In a file, as long as there is no database."""

    def __init__(self, path):
        self.path, self.lock = pathlib.Path(path), threading.Lock()
        self.all = json.loads(self.path.read_text())

    def login(self, name, password):
        with self.lock:
            user = self.all.get(name)
            given = str(password).encode()
            return user["grant"] if user and hmac.compare_digest(user["password"].encode(), given) else None

    def find(self, question):
        """What the gateway asks: {"number": …} or {"user": …}. None: nobody."""
        with self.lock:
            for name, user in self.all.items():
                if name == question.get("user") or question.get("number") in user["grant"].get("numbers", []):
                    return {"user": name, "grant": user["grant"]}

    def grant(self, name, grant):
        with self.lock:
            if name not in self.all:
                return False
            for other, user in self.all.items():
                if other != name:
                    left = [number for number in user["grant"].get("numbers", []) if number not in grant.get("numbers", [])]
                    user["grant"]["numbers"] = left
            self.all[name]["grant"] = grant
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.all, indent=2))
            new.replace(self.path)
            return True


class Gateway:
    """The gateway's admin API (docs/reference/admin-api.yaml)."""

    def __init__(self, url, token_file):
        self.url, self.token_file = url, token_file

    def ask(self, method, path, body=None, tries=3):
        """(status, JSON). The key makes a repeat safe: what has been done already is not done again."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        if self.token_file:
            # read each time: the token may have been changed
            headers["Authorization"] = "Bearer " + pathlib.Path(self.token_file).read_text().split()[0]
        data = None if body is None else json.dumps(body).encode()
        for left in reversed(range(tries)):
            try:
                request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
                with urllib.request.urlopen(request, timeout=5) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as refused:
                if refused.code not in (429, 503) or not left:
                    return refused.code, json.load(refused)
            except OSError as error:
                if not left:
                    return 502, {"title": "Bad Gateway", "status": 502, "detail": str(error), "code": "unreachable"}
            time.sleep(1)

    def call(self, user, to):
        return self.ask("POST", "/v1/calls", {"user": user, "to": to})

    def transfer(self, user, call, to):
        status, found = self.ask("GET", "/v1/calls/" + call)
        if status != 200 or found["user"] != user:
            return 404, {"title": "Not Found", "status": 404, "detail": "no call of this user", "code": "unknownCall"}
        return self.ask("POST", f"/v1/calls/{call}/transfer", {"to": to})


class Events:
    """What the gateway tells, by the rules of Standard Webhooks. It comes at least once: ids that were seen are answered and left out."""

    SEEN = 10_000
    TOLERANCE = 300

    def __init__(self, key_file):
        self.keys = [self.key(line) for line in pathlib.Path(key_file).read_text().split()]
        self.seen, self.lock = {}, threading.Lock()

    @staticmethod
    def key(text):
        return base64.b64decode(text.removeprefix("whsec_")) if text.startswith("whsec_") else text.encode()

    def is_genuine(self, headers, body):
        name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not at.isdigit() or abs(time.time() - int(at)) > self.TOLERANCE:
            return False
        text = f"{name}.{at}.".encode() + body
        right = [b"v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()) for key in self.keys]
        given = headers.get("webhook-signature", "").encode().split()
        return any(hmac.compare_digest(one, other) for one in given for other in right)

    def take(self, event):
        """False: it was here before."""
        with self.lock:
            if event["id"] in self.seen:
                return False
            self.seen[event["id"]] = None
            if len(self.seen) > self.SEEN:
                del self.seen[next(iter(self.seen))]
            print(json.dumps(event), flush=True)
            return True


class Directory:
    """Questions of the gateway are signed: `trunkline-signature: t=SECONDS,v1=HEX`, HMAC-SHA256 over SECONDS.BODY."""

    TOLERANCE = 300

    def __init__(self, key_file):
        self.key = pathlib.Path(key_file).read_bytes().split(b"\n")[0].strip()

    def is_genuine(self, headers, body):
        said = dict(part.partition("=")[::2] for part in headers.get("trunkline-signature", "").split(","))
        at = said.get("t", "")
        if not at.isdigit() or abs(time.time() - int(at)) > self.TOLERANCE:
            return False
        right = hmac.new(self.key, at.encode() + b"." + body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(right, said.get("v1", ""))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def octets(self):
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= BODY_LIMIT:
            self.close_connection = True
            raise ValueError("a body of 1 to 65536 octets is expected")
        return self.rfile.read(length)

    def body(self):
        value = json.loads(self.octets())
        if not isinstance(value, dict):
            raise ValueError("a JSON object is expected")
        return value

    def told(self):
        try:
            octets = self.octets()
            if not self.server.events.is_genuine(self.headers, octets):
                return self.answer(401, {"error": "not signed with our secret"})
            self.server.events.take(json.loads(octets))
        except (ValueError, KeyError, TypeError) as error:
            return self.answer(400, {"error": str(error)})
        self.answer(200, {})

    def asked(self):
        try:
            octets = self.octets()
            if not self.server.directory.is_genuine(self.headers, octets):
                return self.answer(401, {"error": "not signed with our secret"})
            found = self.server.users.find(json.loads(octets))
        except (ValueError, AttributeError) as error:
            return self.answer(400, {"error": str(error)})
        self.answer(200 if found else 404, found or {"error": "nobody"})

    def do_POST(self):
        if self.path == "/directory" and self.server.directory:
            return self.asked()
        if self.path == "/events" and self.server.events:
            return self.told()
        try:
            wanted = self.body()
            parts = self.path.strip("/").split("/")
            name, other = str(wanted["user"]), str(wanted["device" if parts == ["login"] else "to"])
        except (ValueError, KeyError) as error:
            return self.answer(400, {"error": str(error)})
        grant = self.server.users.login(name, wanted.get("password"))
        if grant is None:
            return self.answer(403, {"error": "no such user, or another password"})
        match parts:
            case ["login"]:
                self.answer(200, {"token": token(self.server.key, name, other, grant), "gateway": self.server.gateway})
            case ["calls"] if self.server.api:
                self.answer(*self.server.api.call(name, other))
            case ["calls", call, "transfer"] if self.server.api and call.replace("-", "").isalnum():
                self.answer(*self.server.api.transfer(name, call, other))
            case _:
                self.answer(404, {"error": "no such page"})

    def do_PUT(self):
        try:
            grant = self.body()
            numbers = grant.get("numbers", [])
            if not isinstance(numbers, list) or not all(isinstance(number, str) for number in numbers):
                raise ValueError("numbers: a list of texts is expected")
        except ValueError as error:
            return self.answer(400, {"error": str(error)})
        known = self.path.startswith("/users/") and self.server.users.grant(self.path.removeprefix("/users/"), grant)
        self.answer(200 if known else 404, grant if known else {"error": "no such user"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", required=True, help="the file of auth.jwt.key_file (HS256)")
    parser.add_argument("--users", required=True)
    parser.add_argument("--gateway", help="wss://… as phones are told it")
    parser.add_argument("--api", help="the gateway's admin API, http://127.0.0.1:7060")
    parser.add_argument("--api-token", help="a file with its token")
    parser.add_argument("--events-key", help="the file of events.webhooks[].key_file")
    parser.add_argument("--directory-key", help="the file of users[].webhook.key_file")
    parser.add_argument("--port", type=int, default=8090, help="on 127.0.0.1 alone: PUT asks nobody who they are")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.key = pathlib.Path(options.key).read_bytes().strip()
    server.users, server.gateway = Users(options.users), options.gateway
    server.api = Gateway(options.api, options.api_token) if options.api else None
    server.events = Events(options.events_key) if options.events_key else None
    server.directory = Directory(options.directory_key) if options.directory_key else None
    print(json.dumps({"event": "listening", "port": server.server_port}), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
