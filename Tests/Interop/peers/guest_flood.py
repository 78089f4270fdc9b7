"""Strangers at a trunk that takes any peer: one that wants every TCP connection, and guests who want to be served beside it.

Prints what each was given as JSON lines: how many of the flood's connections live on, and the status codes of the others.
"""
import argparse
import hashlib
import json
import re
import signal
import socket

arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int, required=True)
arguments.add_argument("--password", required=True)
arguments = arguments.parse_args()
number = 0


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def connect(source):
    return socket.create_connection(("127.0.0.1", arguments.port), timeout=5, source_address=(source, 0))


def options(source, extra=""):
    global number
    number += 1
    return (
        f"OPTIONS sip:gw@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP {source};branch=z9hG4bK{number}\r\nFrom: <sip:a@b>;tag={number}\r\n"
        f"To: <sip:gw@127.0.0.1>\r\nCall-ID: {number}@{source}\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n{extra}Content-Length: 0\r\n\r\n"
    ).encode()


def ask(connection, message):
    """The status code and the whole answer; 0: the connection was closed."""
    answer = b""
    try:
        connection.sendall(message)
        while b"\r\n\r\n" not in answer:
            more = connection.recv(65536)
            if not more:
                return 0, ""
            answer += more
    except OSError:
        return 0, ""
    return int(answer.split()[1]), answer.decode()


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def authorization(answer):
    challenge = next(line for line in answer.splitlines() if "algorithm=MD5" in line)
    realm, nonce = (re.search(f'{name}="([^"]*)"', challenge).group(1) for name in ("realm", "nonce"))
    uri = "sip:gw@127.0.0.1"
    response = md5(f"{md5(f'u:{realm}:{arguments.password}')}:{nonce}:00000001:c:auth:{md5('OPTIONS:' + uri)}")
    return (
        f'Authorization: Digest username="u", realm="{realm}", nonce="{nonce}", uri="{uri}", response="{response}", '
        'algorithm=MD5, cnonce="c", qop=auth, nc=00000001\r\n')


flood = [connect("127.0.0.66") for _ in range(64)]
codes = [ask(connection, options("127.0.0.66"))[0] for connection in flood]
say("flood", held=codes.count(401), closed=codes.count(0))

guest = connect("127.0.0.67")
first, answer = ask(guest, options("127.0.0.67"))
second, _ = ask(guest, options("127.0.0.67", authorization(answer) if first == 401 else ""))
say("guest", codes=[first, second])

listed = connect("127.0.0.1")
say("listed", code=ask(listed, options("127.0.0.1"))[0])

hello = connect("127.0.0.1")
hello.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
try:
    closed = hello.recv(100) == b""
except ConnectionResetError:
    closed = True
say("hello", closed=closed)
signal.pause()
