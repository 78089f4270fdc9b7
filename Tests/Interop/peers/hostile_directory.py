"""A directory of users over TLS that does what no directory should: the last digits of the number that it is asked of say what.

Prints one JSON object a line: every question, and every connection that comes to --private, where no answer may lead the gateway.
"""
import argparse, json, socket, ssl, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, required=True)
options.add_argument("--private", type=int, required=True, help="a port of this machine that redirects lead to")
options.add_argument("--certificate", required=True)
options.add_argument("--key", required=True)
options = options.parse_args()
MODES = ["right", "rubbish", "large", "page", "redirect", "late", "cut", "drip", "500", "array", "depth", "other", "spaces", "headers"]


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
        number = asked.get("number", "")
        mode = MODES[int(number[-2:])] if number else "none"
        say("asked", mode=mode, **asked)
        try:
            self.misbehave(mode, json.dumps({"user": "carol", "grant": {"numbers": [number]}}).encode())
        except OSError:
            pass
        say("done", mode=mode)

    def misbehave(self, mode, right):
        send = self.connection.sendall
        if mode == "late":
            time.sleep(30)
        if mode == "none":
            return self.answer(404, b"")
        if mode == "redirect":
            return self.answer(307, b"", location=f"http://127.0.0.1:{options.private}/")
        if mode == "500":
            return self.answer(500, right)
        if mode == "cut":
            send(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n" + right)
            return self.connection.shutdown(socket.SHUT_RDWR)
        if mode in ("drip", "headers"):
            send(b"HTTP/1.1 200 OK\r\n")
            for count in range(200):
                send(b"x-%d: " % count + b"x" * (1 if mode == "drip" else 50_000) + b"\r\n")
                time.sleep(0.1 if mode == "drip" else 0)
        bodies = {
            "rubbish": bytes(range(256)) * 4, "large": right[:-1] + b"," + b'"more":"' + b"x" * 1_000_000 + b'"}',
            "page": b"<html><body>Sign in to the network</body></html>", "array": b"[" + right + b"]", "depth": b"[" * 16_000,
            "other": right.replace(b'"carol"', b"7"), "spaces": right + b" " * 1_000_000}
        self.answer(200, bodies.get(mode, right), **({"content_type": "text/html"} if mode == "page" else {}))

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def watch():
    with socket.create_server(("127.0.0.1", options.private)) as listener:
        while True:
            listener.accept()
            say("private")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # the gateway hung up
        pass


server = Server(("127.0.0.1", options.port), Handler)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(options.certificate, options.key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=watch, daemon=True).start()
say("listening")
server.serve_forever()
