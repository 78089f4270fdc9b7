"""A node behind an edge that dies in the middle of a call, and another one that speaks for it, from another address.

It answers OPTIONS, and the first INVITE with 180 (--then refuse) or 200 (--then bye, late). With --then redirect it lives, and sends every INVITE to --to by a
302, marked as a node marks it. Else its sockets close as those of a killed process do, and
--from sends what closes the call: the 503 of the ringing INVITE, or a BYE through the recorded route;
late: the 503 and then the BYE, though the call was answered."""
import argparse, json, re, socket, time

parser = argparse.ArgumentParser()
parser.add_argument("--listen", required=True, help="address:port")
parser.add_argument("--edge", required=True, help="address:port")
parser.add_argument("--transport", choices=["udp", "tcp"], required=True)
parser.add_argument("--from", dest="reaper", required=True, help="address:port")
parser.add_argument("--then", choices=["refuse", "bye", "late", "redirect"], required=True)
parser.add_argument("--to", help="address:port of the 302")
options = parser.parse_args()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


class Wire:
    """Messages of one listener, and of the connections to it."""

    def __init__(self, own):
        self.own, self.connections, self.rest = own, [], {}
        kind = socket.SOCK_DGRAM if options.transport == "udp" else socket.SOCK_STREAM
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(own)
        self.socket.settimeout(0.02)
        if options.transport == "tcp":
            self.socket.listen()

    def read(self):
        """Messages as (text, where an answer goes)."""
        if options.transport == "udp":
            try:
                data, source = self.socket.recvfrom(65536)
                return [(data.decode(), source)]
            except TimeoutError:
                return []
        try:
            connection, _ = self.socket.accept()
            connection.settimeout(0.02)
            self.connections.append(connection)
        except TimeoutError:
            pass
        return [(text, connection) for connection in self.connections for text in self.framed(connection)]

    def framed(self, connection):
        try:
            data = self.rest.get(connection, b"") + connection.recv(65536)
        except TimeoutError:
            return
        while b"\r\n\r\n" in data:
            head, _, rest = data.partition(b"\r\n\r\n")
            length = int(re.search(rb"(?mi)^content-length: *(\d+)", head).group(1))
            if len(rest) < length:
                break
            yield (head + b"\r\n\r\n" + rest[:length]).decode()
            data = rest[length:]
        self.rest[connection] = data

    def send(self, text, to):
        if options.transport == "udp":
            self.socket.sendto(text.encode(), to)
        else:
            to.sendall(text.encode())

    def close(self):
        for one in [self.socket, *self.connections]:
            one.close()


def fields(text, *names):
    lines = text.split("\r\n\r\n")[0].split("\r\n")[1:]
    return [line for line in lines if line.split(":")[0].lower() in names]


def response(request, status, body="", contact=None, user="node", mark=""):
    lines = [f"SIP/2.0 {status}", *fields(request, "via", "from", "call-id", "cseq", "record-route")]
    to = fields(request, "to")[0]
    lines.append(to if ";tag=" in to else to + ";tag=node")
    if contact:
        lines.append(f"Contact: <sip:{user}@{contact}{parameter}{mark}>")
    if body:
        lines.append("Content-Type: application/sdp")
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body])


parameter = ";transport=tcp" if options.transport == "tcp" else ""
node = Wire(address(options.listen))
say("listening")
invite = source = None
answered = False
while not (invite and (options.then == "refuse" or answered)) or options.then == "redirect":
    for text, where in node.read():
        if text.startswith("OPTIONS "):
            node.send(response(text, "200 OK"), where)
        elif text.startswith("INVITE ") and options.then == "redirect":
            user = re.match(r"INVITE sip:([^@]+)@", text).group(1)
            node.send(response(text, "302 Moved Temporarily", contact=options.to, user=user, mark=";x-steered"), where)
            say("redirected")
        elif text.startswith("INVITE ") and invite is None:
            invite, source = text, where
            say("invite", trunks=[line.split(":")[1].strip() for line in fields(text, "x-trunkline-trunk")])
            if options.then in ("bye", "late"):
                host = options.listen.rsplit(":", 1)[0]
                sdp = f"v=0\r\no=- 1 1 IN IP4 {host}\r\ns=-\r\nc=IN IP4 {host}\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"
                node.send(response(text, "200 OK", sdp, options.listen), where)
            else:
                node.send(response(text, "180 Ringing", contact=options.listen), where)
        elif text.startswith("ACK "):
            answered = True
node.close()
say("dead")

edge = address(options.edge)
kind = socket.SOCK_DGRAM if options.transport == "udp" else socket.SOCK_STREAM
reaper = socket.socket(socket.AF_INET, kind)
reaper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
# from the port that the edge knows over UDP, from any over TCP, as a node does
host, port = address(options.reaper)
reaper.bind((host, port if options.transport == "udp" else 0))
reaper.connect(edge)
if options.then == "refuse":
    reaper.sendall(response(invite, "503 Service Unavailable").encode())
    say("refused")
else:
    if options.then == "late":
        reaper.sendall(response(invite, "503 Service Unavailable").encode())
        say("refused")
    target = re.search(r"<([^>]+)>", fields(invite, "contact")[0]).group(1)
    swapped = ["From:" + fields(invite, "to")[0].split(":", 1)[1] + ";tag=node", "To:" + fields(invite, "from")[0].split(":", 1)[1]]
    routes = ["Route:" + line.split(":", 1)[1] for line in fields(invite, "record-route")]
    lines = [f"BYE {target} SIP/2.0", f"Via: SIP/2.0/{options.transport.upper()} {options.reaper};branch=z9hG4bKreap;rport", *routes]
    lines += [*swapped, *fields(invite, "call-id"), "CSeq: 1001 BYE", "Max-Forwards: 70", "Content-Length: 0", "", ""]
    reaper.sendall("\r\n".join(lines).encode())
    reaper.settimeout(10)
    say("bye answered", code=int(reaper.recv(65536).decode().split(" ")[1]))
time.sleep(1)  # an edge that closes this connection would take what it has read from it along
