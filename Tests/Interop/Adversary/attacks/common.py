"""What the attacks share: the gateway under attack, connections from any address, HTTP, WebSocket and SIP by hand, and figures.

Every attack takes `--arena FILE` (JSON: ports, process, keys), `--seed N`, `--seconds S` and `--control`, which aims its floods at a port
where nobody listens. It ends by itself and prints one line of JSON: its figures.
"""
import argparse, base64, hashlib, hmac, json, os, random, re, resource, select, socket, ssl, struct, sys, time, uuid

IP_FREEBIND = 15
DEAD_PORT = 9


class Arena:
    def __init__(self, path):
        self.__dict__.update(json.load(open(path)))

    def alive(self):
        """A process that has crashed is a zombie until its parent looks."""
        try:
            return open(f"/proc/{self.pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def thread_seconds(self):
        """CPU seconds by thread name, as it was before the kernel cut it to 15 letters."""
        out, tick = {}, os.sysconf("SC_CLK_TCK")
        try:
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                text = open(f"/proc/{self.pid}/task/{thread}/stat").read()
                name, fields = text[text.index("(") + 1 : text.rindex(")")], text.rpartition(")")[2].split()
                out[name] = out.get(name, 0) + (int(fields[11]) + int(fields[12])) / tick
        except (OSError, ValueError):
            pass
        return out

    def spinning(self, seconds=1.0):
        """The busiest thread that serves strangers, as a share of a core."""
        before = self.thread_seconds()
        time.sleep(seconds)
        after = self.thread_seconds()
        shares = {name: (after[name] - before.get(name, 0)) / seconds for name in after}
        return round(max([shares[name] for name in shares if not name.startswith("media")] or [0]), 3)

    def resident(self):
        try:
            return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.pid}/status").read()).group(1)) / 1024
        except (OSError, AttributeError):
            return 0.0

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return 0

    def token(self, user="mallory", device="bad", key=None, head=None, **changes):
        key = open(self.key, "rb").read().rstrip() if key is None else key
        claims = {"sub": user, "dev": device, "aud": "trunkline", "exp": int(time.time()) + 3600, **changes}
        claims = {name: value for name, value in claims.items() if value is not None}
        signed = b64(json.dumps({"alg": "HS256", "typ": "JWT", **(head or {})}).encode()) + "." + b64(json.dumps(claims).encode())
        return signed + "." + (b64(hmac.new(key, signed.encode(), hashlib.sha256).digest()) if key else "")

    def metric(self, family, part=""):
        answer = http(connect(("127.0.0.1", self.admin)), get("/metrics", self.operator, close=True))
        total = 0.0
        for line in answer.decode("latin-1").split("\n"):
            if line.startswith((family + "{", family + " ")) and part in line:
                total += float(line.split(" ")[-1])
        return total

    def stranger(self):
        """Another address for each connection of an attack that is not about their number: the honest user's is 127.0.0.1."""
        self.strangers = getattr(self, "strangers", 0) + 1
        return f"127.0.8.{self.strangers % 200 + 1}"

    @property
    def operator(self):
        """Fields of a request at the admin port that may do everything."""
        return self.bearer("operator") if getattr(self, "tokens", None) else []

    def bearer(self, name):
        """The same of one of its tokens: those of `asked.py` are named for their scope."""
        return [f"Authorization: Bearer {self.tokens[name]}"]

    @property
    def app_address(self):
        return ("127.0.0.1", self.app)


def arguments(*more):
    """`more`: (flag, keywords of add_argument)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--arena", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--control", action="store_true")
    for flag, keywords in more:
        parser.add_argument(flag, **keywords)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return options, Arena(options.arena), random.Random(options.seed)


def report(**figures):
    print(json.dumps(figures), flush=True)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# MARK: streams


def client_context(alpn=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


def connect(address, source=None, tls=False, timeout=2.0, alpn=None):
    host = address[0]
    stream = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.settimeout(timeout)
    try:
        if source:
            stream.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
            stream.bind((source, 0))
        stream.connect(address)
        return client_context(alpn).wrap_socket(stream) if tls else stream
    except OSError:
        stream.close()
        raise


def read(stream, seconds=2.0, enough=None):
    """What comes until the peer closes, `enough(bytes)` holds or the time is over. (bytes, closed)"""
    data, end = b"", time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return data, False
        stream.settimeout(left)
        try:
            part = stream.recv(65536)
        except (TimeoutError, ssl.SSLWantReadError):
            return data, False
        except OSError:
            return data, True
        if not part:
            return data, True
        data += part
        if enough and enough(data):
            return data, False


def send(stream, data):
    """False if the peer has closed."""
    try:
        stream.sendall(data)
        return True
    except OSError:
        return False


def get(path, more=(), method="GET", close=False, host="127.0.0.1", body=None):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *more]
    if close:
        lines.append("Connection: close")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def answers(data, methods=None):
    """Status codes of the HTTP responses in `data`, one after the other; -1 for what is none."""
    out = []
    while data:
        head, found, rest = data.partition(b"\r\n\r\n")
        match = re.match(rb"HTTP/1\.[01] (\d{3})", head)
        if not found or not match:
            return out + [-1]
        status = int(match.group(1))
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        has_body = not (methods and len(out) < len(methods) and methods[len(out)] == "HEAD") and status != 101
        data = rest[int(length.group(1)) if length and has_body else 0 :]
        out.append(status)
    return out


def http(stream, request, seconds=2.0):
    with stream:
        return read(stream, seconds)[0] if send(stream, request) else b""


def quick_status(address, path="/healthz", tls=False, more=()):
    """0 if there is no answer."""
    try:
        return (answers(http(connect(address, tls=tls), get(path, more, close=True))) or [0])[0]
    except OSError:
        return 0


# MARK: WebSockets


def upgrade_request(host="127.0.0.1", more=()):
    key = base64.b64encode(os.urandom(16)).decode()
    fields = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
    return get("/v1/connect", [*fields, "Sec-WebSocket-Protocol: trunkline.v1", *more], host=host)


def frame(payload=b"", opcode=1, fin=True, masked=True, reserved=0, length=None):
    """One frame of RFC 6455 §5.2; `length` lies about the payload's."""
    size = len(payload) if length is None else length
    first = (0x80 if fin else 0) | reserved << 4 | opcode
    mark = 0x80 if masked else 0
    if size < 126:
        head = struct.pack("!BB", first, mark | size)
    elif size < 65536:
        head = struct.pack("!BBH", first, mark | 126, size)
    else:
        head = struct.pack("!BBQ", first, mark | 127, size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return head + mask + (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(payload), "big")


class Frames:
    """Frames of the gateway, taken one after the other from a stream."""

    def __init__(self, stream, left=b""):
        self.stream, self.data = stream, left

    def next(self, seconds=2.0):
        """(opcode, payload); None when the time is over; "closed" when the socket is."""
        end = time.monotonic() + seconds
        while True:
            if len(self.data) >= 2:
                size, at = self.data[1] & 127, 2
                if size == 126 and len(self.data) >= 4:
                    size, at = struct.unpack("!H", self.data[2:4])[0], 4
                elif size == 127 and len(self.data) >= 10:
                    size, at = struct.unpack("!Q", self.data[2:10])[0], 10
                elif size > 125:
                    size = 1 << 40
                if len(self.data) >= at + size:
                    opcode, payload = self.data[0] & 15, self.data[at : at + size]
                    self.data = self.data[at + size :]
                    return opcode, payload
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.stream.settimeout(left)
            try:
                part = self.stream.recv(65536)
            except (TimeoutError, ssl.SSLWantReadError):
                return None
            except OSError:
                return "closed"
            if not part:
                return "closed"
            self.data += part

    def close_code(self, seconds=2.0):
        """The code of a close frame; 1006 if the socket was only closed; None if it stays open."""
        end = time.monotonic() + seconds
        while True:
            got = self.next(max(0.01, end - time.monotonic()))
            if got == "closed":
                return 1006
            if got is None:
                return None
            if got[0] == 8:
                return struct.unpack("!H", got[1][:2])[0] if len(got[1]) >= 2 else 1005


def web_socket(arena, source=None, timeout=2.0, more=()):
    """An upgraded connection; raises OSError if it was refused."""
    stream = connect(arena.app_address, source, arena.tls, timeout)
    data = b""
    if send(stream, upgrade_request(more=more)):
        data, _ = read(stream, timeout, lambda data: b"\r\n\r\n" in data)
    if not data.startswith(b"HTTP/1.1 101"):
        stream.close()
        raise ConnectionRefusedError(data[:60])
    return stream, Frames(stream, data.partition(b"\r\n\r\n")[2])


def hello(auth, device="bad", proof=None):
    """`proof`: `resume` or `wake` in place of `auth`."""
    body = {**(proof or {"auth": auth}), "device": {"id": device, "platform": "linux"}, "caps": [], "state": "fg"}
    return json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": body}).encode()


def log_in(arena, user="mallory", device="bad", source=None, timeout=2.0):
    """A session: its stream, frames and `welcome`."""
    stream, frames = web_socket(arena, source, timeout)
    send(stream, frame(hello(arena.token(user, device), device)))
    got = frames.next(timeout)
    message = json.loads(got[1]) if isinstance(got, tuple) and got[0] == 1 else {}
    if message.get("t") != "welcome":
        stream.close()
        raise ConnectionRefusedError(str(got)[:80])
    return stream, frames, message["d"]


# MARK: SIP


class Trunk:
    """A trunk of one UDP or TCP socket, on any loopback address."""

    def __init__(self, arena, ip="127.0.0.1", tcp=False, timeout=2.0):
        self.arena, self.ip, self.tcp, self.count, self.rest = arena, ip, tcp, 0, b""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
        self.socket.settimeout(timeout)
        self.socket.bind((ip, 0))
        if tcp:
            self.socket.connect(("127.0.0.1", arena.sip))
        self.port = self.socket.getsockname()[1]
        self.tag = uuid.uuid4().hex[:8]

    def request(self, method, number="+15551230001", call=None, cseq=1, more=(), sdp="", to=None, branch=None):
        self.count += 1
        call = call or f"adv-{uuid.uuid4().hex[:12]}@{self.ip}"
        way = "TCP" if self.tcp else "UDP"
        uri = f"sip:{number}@127.0.0.1:{self.arena.sip}"
        lines = [
            f"{method} {uri} SIP/2.0", f"Via: SIP/2.0/{way} {self.ip}:{self.port};branch={branch or 'z9hG4bK' + uuid.uuid4().hex[:12]};rport",
            f"From: <sip:+15550009999@{self.ip}>;tag={self.tag}", f"To: {to or '<' + uri + '>'}", f"Call-ID: {call}", f"CSeq: {cseq} {method}",
            f"Contact: <sip:adv@{self.ip}:{self.port}{';transport=tcp' if self.tcp else ''}>", "Max-Forwards: 70", *more]
        if sdp:
            lines.append("Content-Type: application/sdp")
        return "\r\n".join(lines + [f"Content-Length: {len(sdp)}", "", sdp])

    def send(self, text):
        data = text.encode() if isinstance(text, str) else text
        if self.tcp:
            return send(self.socket, data)
        self.socket.sendto(data, ("127.0.0.1", self.arena.sip))
        return True

    def receive(self, seconds):
        """One message as text; empty if none came."""
        self.socket.settimeout(max(0.01, seconds))
        try:
            if not self.tcp:
                return self.socket.recv(65536).decode("utf-8", "replace")
            while b"\r\n\r\n" not in self.rest:
                part = self.socket.recv(65536)
                if not part:
                    return ""
                self.rest += part
            head, _, rest = self.rest.partition(b"\r\n\r\n")
            size = int(re.search(rb"(?i)\r\n(?:content-length|l): *(\d+)", head).group(1))
            while len(rest) < size:
                rest += self.socket.recv(65536)
            self.rest = rest[size:]
            return (head + b"\r\n\r\n" + rest[:size]).decode("utf-8", "replace")
        except (OSError, AttributeError):
            return ""

    def ask(self, request, seconds=3.0):
        """The final response, acknowledged if it is one of an INVITE. (code, text); code 0 for silence."""
        if not self.send(request):
            return 0, ""
        end = time.monotonic() + seconds
        sequence = header(request, "CSeq")
        while time.monotonic() < end:
            text = self.receive(end - time.monotonic())
            if text.startswith("SIP/2.0 ") and header(text, "CSeq") == sequence and int(text[8:11]) >= 200:
                if sequence.endswith("INVITE"):
                    self.send(self.acknowledgement(request, text))
                return int(text[8:11]), text
        return 0, ""

    def acknowledgement(self, request, answer):
        same = [line for line in request.split("\r\n") if line.split(":")[0] in ("From", "Call-ID", "Max-Forwards")]
        via = [line for line in request.split("\r\n") if line.startswith("Via:")][0]
        if answer[8] == "2":
            via = re.sub(r"branch=\w+", "branch=z9hG4bK" + uuid.uuid4().hex[:12], via)
        number = header(request, "CSeq").split()[0]
        target = request.split()[1]
        return "\r\n".join([f"ACK {target} SIP/2.0", via, *same, f"To: {header(answer, 'To')}", f"CSeq: {number} ACK", "Content-Length: 0", "", ""])

    def close(self):
        self.socket.close()


def header(text, name):
    match = re.search(rf"(?im)^{name}: *(.*?)\r?$", text)
    return match.group(1) if match else ""


def offer(ip, port, more=(), profile="RTP/AVP"):
    lines = ["v=0", f"o=adv 1 1 IN IP4 {ip}", "s=-", f"c=IN IP4 {ip}", "t=0 0", f"m=audio {port} {profile} 0", "a=rtpmap:0 PCMU/8000", *more]
    return "\r\n".join(lines) + "\r\n"


def media_target(answer):
    """Where the gateway takes the RTP of this call."""
    return re.search(r"c=IN IP4 (\S+)", answer).group(1), int(re.search(r"m=audio (\d+)", answer).group(1))


def digest(answer, username, password, method, uri, count=1):
    """The Authorization line for a challenge (RFC 7616)."""
    challenge = header(answer, "WWW-Authenticate")
    value = {name: quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', challenge)}
    name = value.get("algorithm", "MD5")
    make = hashlib.sha256 if name.upper().startswith("SHA-256") else hashlib.md5
    h = lambda text: make(text.encode()).hexdigest()
    cnonce, nc = uuid.uuid4().hex[:16], f"{count:08x}"
    response = h(":".join([h(f"{username}:{value['realm']}:{password}"), value["nonce"], nc, cnonce, "auth", h(f"{method}:{uri}")]))
    return (f'Authorization: Digest username="{username}", realm="{value["realm"]}", nonce="{value["nonce"]}", uri="{uri}", '
            f'response="{response}", algorithm={name}, cnonce="{cnonce}", qop=auth, nc={nc}' + (f', opaque="{value["opaque"]}"' if "opaque" in value else ""))


def rtp(ssrc, sequence, timestamp=None, payload=b"\xff" * 160, kind=0):
    stamp = sequence * 160 if timestamp is None else timestamp
    return struct.pack("!BBHII", 0x80, kind, sequence & 0xFFFF, stamp & 0xFFFFFFFF, ssrc) + payload


def tone(count):
    """20 ms of a loud square wave in µ-law."""
    return bytes((0x20 if (index // 10 + count) % 2 else 0xA0) for index in range(160))


def udp(ip="127.0.0.1", port=0):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
    out.bind((ip, port))
    return out


def paced(rate, seconds, one):
    """Calls `one(index)` `rate` times a second; gives how many."""
    begin, count = time.monotonic(), 0
    while (now := time.monotonic() - begin) < seconds:
        due = int(now * rate)
        for index in range(count, min(due, count + 1000)):
            one(index)
        count = max(count, min(due, count + 1000))
        time.sleep(0.0005)
    return count
