"""What `serve --check` says of a configuration that lets strangers in."""
from api import *
import shutil, tempfile

options, arena, chance = arguments()
# where every user of the machine comes: in a folder of its owner's alone no file is open
kept = tempfile.TemporaryDirectory(dir="/var/tmp")
folder = kept.name
os.chmod(folder, 0o755)
for name in os.listdir(arena.folder):
    if name.endswith((".key", ".token", ".pem", ".secret")) or name == "password":
        shutil.copy(f"{arena.folder}/{name}", folder)
config = open(arena.folder + "/gateway.yaml").read()
figures = {"asked": 0, "passed": 0, "own": 0, "silent": 0}


def check(text):
    path = folder + "/checked.yaml"
    open(path, "w").write(text)
    done = subprocess.run([arena.binary, "serve", "--check", "--config", path], capture_output=True, text=True, timeout=60, errors="replace")
    return done.returncode, done.stdout + done.stderr


figures["own"] = 1 if check(config)[0] == 0 else 0
for peers in ("[0.0.0.0/0]", "[0.0.0.0/1, 128.0.0.0/1]", '["::/0"]', "[127.0.0.1, 0.0.0.0/0]", '["::/1", "8000::/1"]', "any"):
    figures["asked"] += 1
    status, text = check(config.replace("name: carrier, peers: [127.0.0.1]", f"name: carrier, peers: {peers}"))
    if status == 0:
        figures["passed"] += 1
        print("passed:", peers, file=sys.stderr)
for name in ("jwt.key", "operator.token", "read.token", "turn.secret", "own.key"):
    figures["asked"] += 1
    os.chmod(f"{folder}/{name}", 0o644)
    status, text = check(config)
    os.chmod(f"{folder}/{name}", 0o600)
    # it is a warning: the gateway starts, and says which file
    if status != 0 or name not in text:
        figures["silent"] += 1
        print("silent:", name, status, text[-200:], file=sys.stderr)
report(**figures, crashed=0 if arena.alive() else 1)
