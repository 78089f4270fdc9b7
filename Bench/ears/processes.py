"""Processes of a bench run: they speak JSON lines, and end with this one."""
import asyncio, ctypes, json, os, random, signal, socket, sys

HERE = os.path.dirname(os.path.abspath(__file__))


def end_with_parent(by=signal.SIGKILL):
    """Linux: whatever ends this program ends what it started (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, by)


def be_punctual(priority=10):
    """The carrier and the network come before other programs where the system lets them: they take little, and are the measure. Not so clients
    and bridges, which would keep each other from a core for as long as they like."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except (OSError, AttributeError):
        pass


def be_prompt():
    """A client whose packets are a measure too stands where Chromium puts its own audio: before the bridges, behind the carrier."""
    try:
        os.nice(-8)
    except OSError:
        pass


def be_idle():
    """Scoring takes what calls leave."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (OSError, AttributeError):
        os.nice(19)


def own_address():
    """The machine's address on its network: browsers use no 127.0.0.1 for ICE. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            end.connect(("198.51.100.1", 9))
        except OSError:
            sys.exit("ears: this machine has no network address beside 127.0.0.1, which browsers do not use for ICE")
        return end.getsockname()[0]


def free_port(kind, host="127.0.0.1"):
    """Below the ports that the kernel assigns: no other socket gets it before its owner binds it."""
    for port in random.sample(range(24_000, 31_000), 7_000):
        with socket.socket(socket.AF_INET, kind) as end:
            try:
                end.bind((host, port))
            except OSError:
                continue
            return port
    sys.exit(f"ears: no free port on {host}")


class Child:
    """A program of this folder, told by lines of JSON on standard input, telling by lines on standard output."""

    @classmethod
    async def start(cls, script, **options):
        child = cls()
        child.name = script
        child.process = await asyncio.create_subprocess_exec(
            sys.executable, os.path.join(HERE, script), json.dumps(options), stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, preexec_fn=end_with_parent, limit=1 << 20)
        return child

    def tell(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def hear(self, seconds=30):
        line = await asyncio.wait_for(self.process.stdout.readline(), seconds)
        if not line:
            raise RuntimeError(f"{self.name} ended without an answer")
        return json.loads(line)

    async def ask(self, seconds=30, **message):
        self.tell(**message)
        return await self.hear(seconds)

    async def end(self):
        if self.process.returncode is None:
            self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), 5)
            except asyncio.TimeoutError:
                self.process.kill()
                await self.process.wait()


async def stop(process, seconds=8):
    """Ends a process by its own id, by force if need be."""
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
