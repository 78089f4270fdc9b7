"""A server of JSON Web Key Sets with keys that PyJWT and cryptography make. Prints its port; what it does next is a line of its input, and
each line is answered by one: a token signed with the key of that name, or "ok".

    answer KID[,KID…] [CACHE-CONTROL]   the public keys of these names, with 200
    status CODE | hang | slow | big | nonsense | redirect
    token KID                            prints a login token of alice's, d1
Each request prints nothing; "count" prints how many there were.
"""
import http.server, json, sys, threading, time
import jwt
from cryptography.hazmat.primitives.asymmetric import ec

keys = {}
state = {"mode": "answer", "kids": [], "cache": None, "count": 0}
gone = threading.Event()


def key(kid):
    if kid not in keys:
        keys[kid] = ec.generate_private_key(ec.SECP256R1())
    return keys[kid]


def public(kid):
    entry = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key(kid).public_key()))
    return {**entry, "kid": kid, "use": "sig", "alg": "ES256"}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        state["count"] += 1
        mode = state["mode"]
        body = json.dumps({"keys": [public(kid) for kid in state["kids"]]}).encode()
        if mode == "hang":
            return gone.wait(60)
        if mode == "nonsense":
            body = b"<html>log in</html>"
        if mode == "slow":
            # more than comes in time
            body = body.ljust(200)
        if mode == "big":
            body = body[:-1] + b" " * 10_000_000 + b"}"
        self.send_response(int(mode) if mode.isdigit() else 302 if mode == "redirect" else 200)
        if mode == "redirect":
            self.send_header("Location", "/elsewhere")
        if state["cache"]:
            self.send_header("Cache-Control", state["cache"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            if mode == "slow":
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    if gone.wait(0.2):
                        return
            else:
                self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    verb, *rest = line.split()
    reply = "ok"
    if verb == "answer":
        state.update(mode="answer", kids=[kid for kid in rest[0].split(",") if kid], cache=" ".join(rest[1:]) or None)
    elif verb == "status":
        state["mode"] = rest[0]
    elif verb == "token":
        claims = {"sub": "alice", "dev": "d1", "aud": "trunkline", "exp": int(time.time()) + 3_600}
        reply = jwt.encode(claims, key(rest[0]), algorithm="ES256", headers={"kid": rest[0]})
    elif verb == "count":
        reply = str(state["count"])
    else:
        state["mode"] = verb
    print(reply, flush=True)
gone.set()
