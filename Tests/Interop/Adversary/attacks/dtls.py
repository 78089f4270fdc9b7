"""An app whose address sends bad ClientHellos before the good one: the call connects all the same. The app is aiortc, the caller the trunk.

Every kind is one call. `--kinds other` is a true ClientHello of somebody else, which docs/operate/security.md says is not held. `--kinds flood`: thousands of ClientHellos from an address that passed its check, for 4 s, and what they cost.
"""
import subprocess
from common import *

options, arena, chance = arguments(("--kinds", {"default": "truncated,garbage,version,fragment,alert"}))
KINDS = options.kinds.split(",")
here = os.path.dirname(os.path.abspath(__file__))
figures = {"asked": 0, "failed": 0}
began = sum(arena.thread_seconds().values())
time.sleep(1)
calls = sum(arena.thread_seconds().values()) - began  # what a second of the other calls costs
for kind in KINDS:
    device = "dtls" + kind
    phone = subprocess.Popen(
        [sys.executable, "-B", here + "/early_hello.py", kind, "--url", f"{'wss' if arena.tls else 'ws'}://127.0.0.1:{arena.app}/v1/connect", "--token",
         arena.token("mallory", device), "--device", device, "--host", "127.0.0.1", "--seconds", "30", "--answer-after", "0.1", "--calls", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=arena.folder)
    try:
        for line in phone.stdout:
            if '"event": "welcome"' in line:
                break
        trunk = Trunk(arena)
        began, since = sum(arena.thread_seconds().values()), time.monotonic()
        call = f"dtls-{kind}-{uuid.uuid4().hex[:6]}@127.0.0.1"
        code, answer = trunk.ask(trunk.request("INVITE", number="+15551230003", call=call, sdp=offer("127.0.0.1", 9)), 15)
        figures["asked"] += 1
        figures["dtls_cpu"] = round((sum(arena.thread_seconds().values()) - began) / (time.monotonic() - since) - calls, 3)
        if code == 200:
            trunk.ask(trunk.request("BYE", call=call, cseq=2, to=header(answer, "To")), 3)
        else:
            figures["failed"] += 1
            print(kind, code, file=sys.stderr)
        trunk.close()
    finally:
        phone.terminate()
        heard, said = phone.communicate(timeout=10)
        for line in heard.split("\n"):
            if '"flooded"' in line:
                figures["sent"] = json.loads(line)["sent"]
        if "Traceback" in said:
            print(said[-600:], file=sys.stderr)
report(**figures)
