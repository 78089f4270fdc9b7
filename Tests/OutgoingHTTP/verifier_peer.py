"""A verifier of caller identities, with the standard library alone. Prints its port, then a JSON line for each question.

What it answers stands in its only argument, else in `to`: +1A, +1B: that attestation; +1no: none; +1bad: no JSON; +1500: status 500; +1big: a megabyte; +1never: nothing.
"""
import http.server, json, sys, threading, time


class Verifier(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(json.dumps({"path": self.path, "type": self.headers["Content-Type"], **asked}), flush=True)
        wish = sys.argv[1] if len(sys.argv) == 2 else asked["to"][2:]
        if wish == "never":
            time.sleep(30)
        body = json.dumps({"attest": wish}).encode()
        if wish == "no":
            body = b"{}"
        if wish == "bad":
            body = b"nonsense"
        if wish == "big":
            body = b" " * 1_000_000 + body
        self.send_response(500 if wish == "500" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Verifier)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
