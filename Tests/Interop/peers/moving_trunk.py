"""A trunk over TCP that goes on over another connection in the middle of its call, as behind a load balancer that drains.

    moving_trunk.py --sip 5060 --by UPDATE

It calls over a first connection, sends the request --by over a second one, closes the first, and waits there to be hung up on. One JSON object a line.
"""
import argparse, json, re, socket, sys

parser = argparse.ArgumentParser()
parser.add_argument("--sip", type=int, required=True)
parser.add_argument("--number", default="+15551230001")
parser.add_argument("--by", default="OPTIONS", choices=["OPTIONS", "UPDATE", "INVITE"])
options = parser.parse_args()
SDP = "v=0\r\no=- 1 {version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"


def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", options.sip))
        self.socket.settimeout(20)
        self.port = self.socket.getsockname()[1]
        self.rest = b""

    def send(self, start, sequence, method, to, body="", branch=None):
        lines = [start, f"Via: SIP/2.0/TCP 127.0.0.1:{self.port};branch=z9hG4bKmove{branch or sequence}{method};rport", "Max-Forwards: 70",
                 f"From: <sip:15550009999@127.0.0.1>;tag=mover", f"To: {to}", f"Call-ID: move-{options.by}", f"CSeq: {sequence} {method}",
                 f"Contact: <sip:mover@127.0.0.1:{self.port};transport=tcp>", "Supported: timer"]
        if body:
            lines.append("Content-Type: application/sdp")
        self.socket.sendall(("\r\n".join(lines + [f"Content-Length: {len(body)}", "", ""]) + body).encode())

    def read(self):
        while b"\r\n\r\n" not in self.rest:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.rest += more
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?im)^content-length: *(\d+)", head).group(1))
        while len(self.rest) < length:
            self.rest += self.socket.recv(65536)
        self.rest = self.rest[length:]
        return head.decode()

    def final(self, method):
        while True:
            text = self.read()
            status = re.match(r"SIP/2.0 (\d+)", text)
            if status and int(status.group(1)) >= 200 and re.search(rf"(?im)^cseq: *\d+ {method}", text):
                return int(status.group(1)), text


def value(name, text):
    return re.search(rf"(?im)^{name}: *(.*?)\r?$", text).group(1)


first = Connection()
to = f"<sip:{options.number}@127.0.0.1:{options.sip}>"
first.send(f"INVITE sip:{options.number}@127.0.0.1:{options.sip} SIP/2.0", 1, "INVITE", to, SDP.format(version=1))
code, answer = first.final("INVITE")
say("answered", code=code)
to, target = value("to", answer), re.search(r"<(.*?)>", value("contact", answer)).group(1)
first.send(f"ACK {target} SIP/2.0", 1, "ACK", to)
if sys.stdin.readline().strip() != "move":
    sys.exit(2)
second = Connection()
second.send(f"{options.by} {target} SIP/2.0", 2, options.by, to, "" if options.by == "OPTIONS" else SDP.format(version=2))
code, _ = second.final(options.by)
if options.by == "INVITE":
    second.send(f"ACK {target} SIP/2.0", 2, "ACK", to, branch="ack")
first.socket.close()
say("moved", code=code)
try:
    while True:
        text = second.read()
        if text.startswith("BYE "):
            break
except (EOFError, socket.timeout):
    say("lost")
    sys.exit(1)
kept = [line for line in text.split("\r\n") if re.match(r"(?i)(via|from|to|call-id|cseq):", line)]
second.socket.sendall("\r\n".join(["SIP/2.0 200 OK", *kept, "Content-Length: 0", "", ""]).encode())
say("bye")
