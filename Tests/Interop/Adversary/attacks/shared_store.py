"""What attacks on a cluster's shared store share: Redis by hand."""
from phones import *


class Redis:
    def __init__(self, port):
        self.stream = connect(("127.0.0.1", port), timeout=20)
        self.data = b""

    def line(self):
        while b"\r\n" not in self.data:
            part = self.stream.recv(65_536)
            if not part:
                raise ConnectionError("the shared store closed")
            self.data += part
        out, _, self.data = self.data.partition(b"\r\n")
        return out

    def value(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise ValueError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            while len(self.data) < int(rest) + 2:
                self.data += self.stream.recv(65_536)
            out, self.data = self.data[: int(rest)], self.data[int(rest) + 2 :]
            return out
        if kind == b"*":
            return [self.value() for _ in range(int(rest))]
        return rest

    def __call__(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.stream.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.value()

    def hash(self, key):
        flat = self("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2]))
