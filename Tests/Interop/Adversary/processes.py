"""Processes of an attack: each has its log and its core, and ends by its own id when whoever started it does."""
import ctypes, os, random, resource, signal, socket, subprocess, time

CORES = sorted(os.sched_getaffinity(0))
PORTS = range(24_000, 32_760)
# Ports that this program has named: their owners may bind them later.
given = set()


def lab(binary):
    """The program beside the gateway that stands in for carrier, app and many calls."""
    return os.path.join(os.path.dirname(os.path.abspath(binary)), "trunkline-lab")


def die_with_parent():
    """Whatever ends this program ends what it started (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Failure(Exception):
    pass


def free_ports(count):
    """Loopback ports that are free for UDP and TCP, below those that the kernel assigns: no other socket gets one before its owner binds it."""
    ports = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(ports) == count:
            break
        if port not in given and is_free(port):
            ports.append(port)
    if len(ports) < count:
        raise Failure(f"{count} free ports are wanted of {PORTS}: there are {len(ports)}")
    given.update(ports)
    return ports


def is_free(port):
    try:
        for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
            with socket.socket(socket.AF_INET, kind) as one:
                one.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


class Process:
    """Its output is in a file; gateways and attackers have cores of their own where there are two."""

    def __init__(self, command, folder, name, of_gateway=False, environment=None, descriptors=None):
        self.log = f"{folder}/{name}-{time.monotonic_ns()}.log"
        cores = set(CORES[:1] if of_gateway else CORES[1:]) if len(CORES) > 1 else set(CORES)

        def begin():
            die_with_parent()
            os.sched_setaffinity(0, cores)
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        variables = {name: value for name, value in os.environ.items() if name != "SWIFT_BACKTRACE"} | (environment or {})
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=out, preexec_fn=begin, env=variables, start_new_session=True)
        self.pid = self.process.pid

    @property
    def text(self):
        return open(self.log, errors="replace").read()

    def is_running(self):
        return self.process.poll() is None

    def wait(self, seconds):
        """The status; None if it did not end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self, number=signal.SIGTERM, seconds=5):
        """What it had written, ended by force if need be."""
        if self.is_running():
            self.process.send_signal(number)
            if self.wait(seconds) is None:
                os.killpg(self.pid, signal.SIGKILL)  # with its children
                self.process.wait()
        self.process.stdin.close()
        return self.text

    def says(self, text, seconds=10):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if text in self.text:
                return True
            if not self.is_running():
                return text in self.text
            time.sleep(0.02)
        return False


class Watch(Process):
    def end(self, *_):
        if self.is_running():
            self.process.stdin.close()
            if self.wait(10) is None:
                os.killpg(self.pid, signal.SIGKILL)  # with its children
                self.process.wait()
        return self.text
