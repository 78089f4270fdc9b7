#!/usr/bin/env python3
"""A webhook that answers rightly, with nonsense, slowly, never, elsewhere, with an HTTP error or too much; says what it was asked and
whether the signature is right. --mode is a list: one for each question, the last for all that follow."""
import argparse, hashlib, hmac, json, ssl, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, required=True)
options.add_argument("--mode", required=True)
options.add_argument("--key", required=True)
options.add_argument("--keep", action="store_true", help="keeps connections open (HTTP/1.1)")
options.add_argument("--tls", metavar="CERTIFICATE,KEY")
options = options.parse_args()
modes = options.mode.split(",")


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1" if options.keep else "HTTP/1.0"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        parts = dict(part.split("=", 1) for part in self.headers.get("trunkline-signature", "").split(",") if "=" in part)
        expected = hmac.new(options.key.encode(), parts.get("t", "").encode() + b"." + body, hashlib.sha256).hexdigest()
        fresh = abs(time.time() - float(parts.get("t", "0"))) < 30
        asked = json.loads(body)
        mode = modes.pop(0) if len(modes) > 1 else modes[0]
        say("asked", mode=mode, path=self.path, signed=fresh and hmac.compare_digest(expected, parts.get("v1", "")), **{"from": asked.get("from"), "to": asked.get("to")})
        if mode == "never":
            time.sleep(30)
        if mode == "slow":
            time.sleep(2)
        route = {"users": ["bob"], "name": "Carol of Accounts"}
        if mode == "everybody":
            route["users"] = ["alice", "bob", "carol"]
        if mode == "large":
            route["more"] = "x" * 100_000
        answer = b"<html>" if mode == "nonsense" else json.dumps(route).encode()
        try:
            self.send_response(302 if mode == "redirect" else int(mode) if mode.isdigit() else 200)
            if mode == "redirect":
                self.send_header("location", f"http://127.0.0.1:{options.port}/elsewhere")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            pass

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
server.daemon_threads = True
if options.tls:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*options.tls.split(","))
    server.socket = context.wrap_socket(server.socket, server_side=True)
say("listening")
server.serve_forever()
