#!/usr/bin/env python3
"""A receiver of events: the signature is checked by the library of Standard Webhooks, the event by docs/reference/schemas/events.json. --mode is a list:
one for each request, the last for all that follow: ok, a status, slow, close (half an answer), redirect, never."""
import argparse, json, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import jsonschema
from standardwebhooks.webhooks import Webhook

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, required=True)
options.add_argument("--mode", default="ok")
options.add_argument("--secret", required=True)
options.add_argument("--schema", required=True)
options = options.parse_args()
modes = options.mode.split(",")
lock = threading.Lock()
validator = jsonschema.Draft202012Validator(json.load(open(options.schema)))


def say(event, **fields):
    with lock:
        print(json.dumps({"event": event, **fields}), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        with lock:
            mode = modes.pop(0) if len(modes) > 1 else modes[0]
        try:
            Webhook(options.secret).verify(body, {k.lower(): v for k, v in self.headers.items()})
            genuine = True
        except Exception as error:
            genuine = str(error)
        event = json.loads(body)
        problem = next((e.message for e in validator.iter_errors(event)), None)
        if event["id"] != self.headers.get("webhook-id") or self.headers.get("content-type") != "application/cloudevents+json":
            problem = "headers"
        say("told", mode=mode, path=self.path, genuine=genuine, problem=problem, id=event["id"], type=event["type"], subject=event["subject"], data=event["data"])
        if mode == "never":
            time.sleep(60)
        if mode == "slow":
            time.sleep(3)
        try:
            if mode == "close":
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
                self.wfile.flush()
                self.close_connection = True
                return
            status = 302 if mode == "redirect" else int(mode) if mode.isdigit() else 200
            self.send_response(status)
            if mode == "redirect":
                self.send_header("location", f"http://127.0.0.1:{options.port}/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()
        except OSError:
            pass

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


say("listening") if (server := Server(("127.0.0.1", options.port), Handler)) else None
server.serve_forever()
