"""A guest with a password that is challenged at one address and answers at the next: what a proxy that sends each request to another node makes of it.

Its digest is its own (RFC 7616, MD5). Prints, for each call, the final codes in their order.
"""
import argparse
import hashlib
import json
import re
import socket

arguments = argparse.ArgumentParser()
arguments.add_argument("--source", required=True)
arguments.add_argument("--password", required=True)
arguments.add_argument("--number", required=True)
arguments.add_argument("--calls", type=int, default=1)
arguments.add_argument("targets", nargs="+", help="host:port; each request goes to the next one, over TCP")
arguments = arguments.parse_args()


class Connection:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10, source_address=(arguments.source, 0))
        self.rest = b""

    def message(self):
        while True:
            head, end, body = self.rest.partition(b"\r\n\r\n")
            length = re.search(rb"(?im)^content-length:\s*(\d+)", head)
            if end and len(body) >= int(length.group(1) if length else 0):
                self.rest = body[int(length.group(1) if length else 0):]
                return head.decode()
            more = self.socket.recv(65536)
            if not more:
                raise SystemExit("closed")
            self.rest += more

    def final(self, branch):
        while True:
            head = self.message()
            code = re.match(r"SIP/2\.0 (\d+)", head)
            if code and branch in head and int(code.group(1)) >= 200:
                return int(code.group(1)), head


connections = [Connection(target) for target in arguments.targets]
requests = 0


def text(method, call, sequence, extra="", to_tag=""):
    return (
        f"{method} {uri} SIP/2.0\r\nVia: SIP/2.0/TCP {arguments.source};branch=z9hG4bKg{call}x{sequence}\r\nMax-Forwards: 70\r\n"
        f"From: <sip:+15557654321@{arguments.source}>;tag={call}\r\nTo: <{uri}>{to_tag}\r\nCall-ID: guest-{call}\r\nCSeq: {sequence} {method}\r\n"
        f"Contact: <sip:guest@{arguments.source};transport=tcp>\r\n{extra}Content-Length: 0\r\n\r\n").encode()


def invite(call, sequence, extra=""):
    """Its final response, acknowledged."""
    global requests
    connection = connections[requests % len(connections)]
    requests += 1
    connection.socket.sendall(text("INVITE", call, sequence, extra))
    code, head = connection.final(f"z9hG4bKg{call}x{sequence}")
    tag = re.search(r"(?im)^to:.*(;tag=[^;\s]+)", head)
    connection.socket.sendall(text("ACK", call, sequence, to_tag=tag.group(1) if tag else ""))
    return code, head


def md5(words):
    return hashlib.md5(words.encode()).hexdigest()


def authorization(head):
    challenge = next(line for line in head.splitlines() if "algorithm=MD5" in line)
    realm, nonce = (re.search(f'{name}="([^"]*)"', challenge).group(1) for name in ("realm", "nonce"))
    response = md5(f"{md5(f'u:{realm}:{arguments.password}')}:{nonce}:00000001:c:auth:{md5('INVITE:' + uri)}")
    return (
        f'Authorization: Digest username="u", realm="{realm}", nonce="{nonce}", uri="{uri}", response="{response}", '
        'algorithm=MD5, cnonce="c", qop=auth, nc=00000001\r\n')


uri = f"sip:{arguments.number}@gateway.example"
for call in range(arguments.calls):
    first, head = invite(call, 1)
    codes = [first]
    if first == 401:
        codes.append(invite(call, 2, authorization(head))[0])
    print(json.dumps({"event": "call", "codes": codes}), flush=True)
