"""What attacks on the admin port share: one request and what it was answered, many at once, and SIP measured beside."""
from common import *
import subprocess, threading


class Answer:
    def __init__(self, data, closed, seconds):
        head, _, self.body = data.partition(b"\r\n\r\n")
        match = re.match(rb"HTTP/1\.[01] (\d{3})", head)
        self.status, self.head, self.closed, self.seconds = int(match.group(1)) if match else 0, head.decode("latin-1"), closed, seconds
        try:
            self.json = json.loads(self.body)
        except ValueError:
            self.json = None

    @property
    def is_problem(self):
        """The one shape of refusals (RFC 9457, with our code)."""
        value = self.json
        return (isinstance(value, dict) and set(value) == {"type", "title", "status", "detail", "code"} and value["status"] == self.status
                and "application/problem+json" in self.head)


def whole(data):
    head, found, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(found) and (len(body) >= int(length.group(1)) if length else False)


def ask(arena, path, scope="read", method="GET", body=None, more=(), seconds=20.0, source=None, address=None, stream=None):
    """One request. Status 0: there was no answer. `body` is text, octets or what becomes JSON; `stream`: a connection that is kept."""
    fields = [*more, *(arena.bearer(scope) if scope else [])]
    if body is not None and not isinstance(body, bytes):
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
    began = time.monotonic()
    try:
        out = stream or connect(address or ("127.0.0.1", arena.admin), source, timeout=seconds)
    except OSError:
        return Answer(b"", True, time.monotonic() - began)
    try:
        out.settimeout(seconds)
        # what is refused before its end may have its answer all the same
        send(out, get(path, fields, method=method, close=stream is None, body=body))
        data, closed = read(out, seconds, whole)
    finally:
        if stream is None:
            out.close()
    return Answer(data, closed, time.monotonic() - began)


def at_once(count, one):
    """`one(index)` on as many threads; what each gave, in order."""
    out = [None] * count

    def run(index):
        out[index] = one(index)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def quantile(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(len(values) * share))], 1) if values else 9999.0


class Beside:
    """OPTIONS and new calls of a trunk while something else goes on, in a process of its own (`beside.py`)."""

    def __init__(self, arena_file, arena):
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "beside.py"), "--arena", arena_file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def end(self):
        """Its figures."""
        return json.loads(self.process.communicate(timeout=30)[0].strip().split("\n")[-1])


def beside(arena, options, attack):
    """Runs `attack()` with a trunk beside it, after as long without: how much later OPTIONS are answered, and what became of new calls."""
    quiet = Beside(options.arena, arena)
    time.sleep(options.seconds)
    before = quiet.end()
    asked = Beside(options.arena, arena)
    figures = attack() or {}
    during = asked.end()
    above = round(during["options_p99_ms"] - before["options_p99_ms"], 1)
    return {**figures, "options_above_ms": max(0.0, above), "options_p99_ms": during["options_p99_ms"], "unanswered": during["unanswered"],
            "callers": during["callers"], "overloaded": during["overloaded"], "slowest_ms": during["slowest_ms"]}
