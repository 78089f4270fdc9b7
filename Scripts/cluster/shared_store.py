"""What is done to a shared store, and seen of it: a path that is slow or half open, RESP by hand, and the commands that nodes send. Python's own library."""
import collections, queue, socket, threading, time

BLOCK = 65_536


class Path:
    """A TCP path to a port of this machine. It may take its time, or swallow everything and tell nobody."""

    def __init__(self, port, target, host="127.0.0.1"):
        self.port, self.target, self.delay, self.swallows, self.pairs = port, (host, target), 0.0, False, []
        self.listener = socket.create_server((host, port), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target, 1)
                far.settimeout(None)
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                near.close()
                continue
            pair = Pair(self, near, far)
            self.pairs = [other for other in self.pairs if not other.is_over] + [pair]

    def half_open(self, lasts):
        """True: from now on nothing comes through, and nobody is told. False: new connections are good; those of before stay dead for ever."""
        if not lasts:
            for pair in self.pairs:
                pair.is_dead = True
        self.swallows = lasts

    def end(self):
        self.listener.close()
        for pair in self.pairs:
            pair.close()


class Pair:
    """Two sockets; for each direction a thread that reads and one that writes, `delay` later."""

    def __init__(self, path, near, far):
        self.path, self.sockets, self.is_dead, self.is_over = path, (near, far), False, False
        for source, sink in ((near, far), (far, near)):
            waiting = queue.SimpleQueue()
            threading.Thread(target=self.read, args=(source, waiting), daemon=True).start()
            threading.Thread(target=self.write, args=(sink, waiting), daemon=True).start()

    def read(self, source, waiting):
        while True:
            try:
                data = source.recv(BLOCK)
            except OSError:
                data = b""
            waiting.put((time.monotonic() + self.path.delay, data))
            if not data:
                return

    def write(self, sink, waiting):
        while True:
            due, data = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if self.is_dead or self.path.swallows:
                if not data:
                    return
                continue
            try:
                if data:
                    sink.sendall(data)
                    continue
            except OSError:
                pass
            return self.close()

    def close(self):
        self.is_over = True
        for end in self.sockets:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class Redis:
    """RESP2 by hand: whatever a program could write, a node of another version among them."""

    def __init__(self, port, host="127.0.0.1", timeout=5):
        self.socket = socket.create_connection((host, port), timeout)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(encoded(*words))

    def say(self, *words):
        """The answer: bytes, a number, a list, None, or an Exception."""
        self.send(*words)
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RuntimeError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        length = int(rest)
        if length < 0:
            return None
        if kind == b"*":
            return [self.read() for _ in range(length)]
        return self.file.read(length + 2)[:-2]

    def keys(self, pattern):
        return sorted(key.decode() for key in self.say("KEYS", pattern))

    def hash(self, key):
        parts = self.say("HGETALL", key)
        return dict(zip(parts[::2], parts[1::2]))

    def close(self):
        self.file.close()
        self.socket.close()


def encoded(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Watch:
    """What each node asks of a Redis, by MONITOR: commands a second. Goes on when the Redis has been away."""

    def __init__(self, port, host="127.0.0.1"):
        self.port, self.host, self.names, self.is_over = port, host, {}, False
        # node → second → commands
        self.counts = collections.defaultdict(collections.Counter)
        self.monitor = None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not self.is_over:
            try:
                self.monitor = Redis(self.port, self.host)
                if self.monitor.say("MONITOR") != b"OK":
                    raise OSError("not now")
                self.monitor.socket.settimeout(None)
                for line in self.monitor.file:
                    self.take(line.decode(errors="replace"))
            except (OSError, ValueError):
                pass
            time.sleep(0.1)

    def take(self, line):
        # +1700000000.123456 [0 127.0.0.1:50000] "HSET" "key" …
        parts = line[1:].split(" ", 3)
        if len(parts) < 4 or parts[2] in ("lua]",) or parts[2].startswith("unix:"):
            return
        address, command = parts[2].rstrip("]"), parts[3].split(" ", 2)
        if command[0].lower() == '"client"' and len(command) > 2 and command[1].lower() == '"setname"':
            self.names[address] = command[2].strip().strip('"').removeprefix("trunkline-")
        node = self.names.get(address)
        if node is None:
            for known in self.clients():
                self.names.update(known)
            node = self.names.setdefault(address, "")
        if node and command[0].lower() not in ('"ping"', '"client"', '"info"', '"script"', '"eval"', '"subscribe"', '"auth"'):
            self.counts[node][int(float(parts[0]))] += 1

    def clients(self):
        try:
            asked = Redis(self.port, self.host)
            for line in asked.say("CLIENT", "LIST").decode().splitlines():
                fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
                if fields.get("name", "").startswith("trunkline-"):
                    yield {fields["addr"]: fields["name"].removeprefix("trunkline-")}
            asked.close()
        except OSError:
            pass

    def busiest(self, since):
        """The most commands that one node has sent in one second since then (seconds since 1970)."""
        return max((count for counts in self.counts.values() for at, count in list(counts.items()) if at >= since), default=0)

    def first(self, node, since, more_than):
        """The first second in which a node has sent more than that; None: none."""
        return min((at for at, count in list(self.counts[node].items()) if at >= since and count > more_than), default=None)

    def end(self):
        self.is_over = True
        if self.monitor:
            self.monitor.socket.close()
