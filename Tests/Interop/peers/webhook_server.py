#!/usr/bin/env python3
"""A webhook that answers rightly, with nonsense, slowly or never; says what it was asked and whether the signature is right."""
import argparse, hashlib, hmac, json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, required=True)
options.add_argument("--mode", required=True)
options.add_argument("--key", required=True)
options = options.parse_args()


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        parts = dict(part.split("=", 1) for part in self.headers.get("trunkline-signature", "").split(",") if "=" in part)
        expected = hmac.new(options.key.encode(), parts.get("t", "").encode() + b"." + body, hashlib.sha256).hexdigest()
        fresh = abs(time.time() - float(parts.get("t", "0"))) < 30
        asked = json.loads(body)
        say("asked", signed=fresh and hmac.compare_digest(expected, parts.get("v1", "")), **{"from": asked.get("from"), "to": asked.get("to")})
        if options.mode == "never":
            time.sleep(30)
        if options.mode == "slow":
            time.sleep(2)
        answer = b"<html>" if options.mode == "nonsense" else json.dumps({"users": ["bob"], "name": "Carol of Accounts"}).encode()
        try:
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            pass

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
server.daemon_threads = True
say("listening")
server.serve_forever()
