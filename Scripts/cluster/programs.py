"""Child processes, ports and HTTP for the cluster on this machine. Python's own library, nothing else."""
import json, os, random, shutil, signal, socket, ssl, subprocess, threading, time, urllib.request

# Certificates of the cluster's own nodes, for the moment.
UNVERIFIED = ssl._create_unverified_context()


class Failure(Exception):
    """What did not happen, for people."""


def until(seconds, what, condition):
    """Waits until `condition` says something true, and returns it; Failure(what) after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {seconds} s")
        time.sleep(0.05)


class Ports:
    """Free ones of loopback, each given once: below the range of what the kernel gives out by itself."""

    def __init__(self):
        self.given = set()

    @staticmethod
    def is_free(port, host):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as probe:
                try:
                    probe.bind((host, port))
                except OSError:
                    return False
        return True

    def row(self, count, host="127.0.0.1"):
        """The first of `count` free ports in a row; an even number."""
        for _ in range(1_000):
            first = random.randrange(10_000, 32_000 - count) & ~1
            row = range(first, first + count)
            if self.given.isdisjoint(row) and all(self.is_free(port, host) for port in row):
                self.given.update(row)
                return first
        raise Failure(f"no {count} free ports in a row at {host}")

    def one(self, host="127.0.0.1"):
        return self.row(1, host)


class Program:
    """A child in a session of its own, so that Ctrl-C is ours alone; ended by its pid."""

    def __init__(self, name, arguments, folder, reads_events=False, hears=None, takes_orders=False):
        """`hears` gets each event in place of the list `events`."""
        self.name, self.events, self.log_path = name, [], os.path.join(folder, name + ".log")
        self.hears = hears or self.events.append
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            arguments, cwd=folder, stdin=subprocess.PIPE if takes_orders else subprocess.DEVNULL,
            stdout=subprocess.PIPE if reads_events or hears else self.log, stderr=self.log, start_new_session=True)
        if reads_events or hears:
            threading.Thread(target=self.read, daemon=True).start()

    def order(self, line):
        """One line on its standard input; a program that is gone takes none."""
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def read(self):
        with open(self.log_path, "ab", buffering=0) as log:
            for line in self.process.stdout:
                log.write(line)
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                self.hears(event)

    @property
    def is_running(self):
        return self.process.poll() is None

    def all(self, *names):
        return [event for event in list(self.events) if event["event"] in names]

    def first(self, *names):
        return next(iter(self.all(*names)), None)

    def kill(self):
        """SIGKILL; when that was, in milliseconds since 1970."""
        self.process.send_signal(signal.SIGKILL)
        at = time.time() * 1_000
        self.process.wait()
        return at

    def end(self, repeats=False):
        """SIGTERM, once more after 0.5 s if it `repeats` (a gateway then does not wait for calls), SIGKILL after 8 s."""
        for seconds, number in ((0.5, signal.SIGTERM), (7.5, signal.SIGTERM if repeats else 0), (5, signal.SIGKILL)):
            if not self.is_running:
                break
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)  # with its children, which it cannot end any more
            elif number:
                self.process.send_signal(number)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
        self.log.close()

    def tail(self, lines=8):
        with open(self.log_path, errors="replace") as file:
            return "".join(file.readlines()[-lines:])


def require(*names):
    """Paths of programs, also of those that Debian has in sbin; Failure names what is missing."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name in names if not found[name]]
    if missing:
        raise Failure("not installed: " + ", ".join(missing) + " (Scripts/install cluster)")
    return found


def get(url, token=None):
    """The answer's text; None if nobody answers, or not with 200."""
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=2, context=UNVERIFIED) as answer:
            return answer.read().decode()
    except OSError:
        return None


def accepts(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 0.5).close()
        return True
    except OSError:
        return False
