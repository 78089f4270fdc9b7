"""What outsiders write into the log and onto an operator's terminal: how much, which secrets, which octets."""
from phones import *

options, arena, chance = arguments()
# C0, DEL, C1, and what turns the direction of text or hides it (Unicode bidi controls, zero width, tags)
DIRT = "\x1b[2J\x1b]0;owned\x07\x08\r\t\x7f\u0085\u009b31m\u202e\u2066\u200f\u061c\u200b\ufeff\u2028"
figures = {"log_rate_kb": 0.0, "asked": 0, "secrets": 0, "unclean": 0, "shown": 0}


def log_size():
    return os.path.getsize(arena.log)


def unclean(text):
    """Octets that move a cursor or turn text around."""
    found = [letter for letter in text if (ord(letter) < 32 and letter != "\n") or 127 <= ord(letter) < 160 or letter in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\u2029"]
    return len(found)


def command(*words):
    done = subprocess.run([arena.binary, *words, "--config", arena.folder + "/gateway.yaml"], capture_output=True, timeout=60)
    text = done.stdout.decode("utf-8", "surrogateescape")
    count = unclean(text)
    figures["unclean"] += count
    figures["shown"] += text.count("\n")
    if count:
        print(words, count, repr(text)[:300], file=sys.stderr)


# Calls that are refused, as fast as one user's sockets take them.
begin, size = time.monotonic(), log_size()
sessions, sent = {}, {}
while time.monotonic() - begin < options.seconds:
    for number in range(4):
        try:
            if number not in sessions:
                sessions[number] = log_in(arena, "mallory", f"bad{number}", timeout=2)[:2]
                sent[number] = 0
            stream, frames = sessions[number]
            for _ in range(10):
                figures["asked"] += 1
                sent[number] += 1
                if not send(stream, start(str(uuid.uuid4()), sent[number], chance.choice(["112", "+4911" + "0" * 20, "nobody", "+15551230003"]))):
                    raise OSError("closed")
            while (got := frames.next(0.001)) is not None:
                if got == "closed" or got[0] == 8:
                    raise OSError("closed")
        except OSError:
            if number in sessions:
                sessions.pop(number)[0].close()
            time.sleep(0.02)
figures["log_rate_kb"] = round((log_size() - size) / 1000 / (time.monotonic() - begin), 1)
for stream, _ in sessions.values():
    stream.close()

# A carrier's caller name and an app's platform, in the operator's lists.
stream, frames = web_socket(arena, arena.stranger())
body = {"auth": arena.token("mallory", "dirty"), "device": {"id": "dirty", "platform": "ios" + DIRT, "model": "phone" + DIRT, "os": DIRT + "1"}, "caps": [], "state": "fg"}
send(stream, frame(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": body}).encode()))
heard(frames, 1)
trunk = Trunk(arena)
plain = trunk.request("INVITE", "+15551230003", sdp=offer("127.0.0.1", 30_010))
name = DIRT.replace("\r", "").replace("\u2028", "")
trunk.send(plain.replace("From: <sip:+15550009999@", f'From: "Ann{name}" <sip:+1555%1b%5b2J%9b%c2%9b@').encode("utf-8"))
trunk.send(trunk.request("INVITE", "+15551230003", sdp=offer("127.0.0.1", 30_012)).replace("From: <sip:+15550009999@", f'From: "Bob{name}" <sip:bob{name[:4]}@').encode("utf-8"))
time.sleep(1)
for words in (("calls", "list"), ("devices", "list"), ("devices", "list", "--user", "mallory"), ("trunks",), ("trunks", "list"), ("events",)):
    command(*words)
hang_up(arena, "mallory")
stream.close()
time.sleep(1)
log = open(arena.log, "rb").read()
figures["secrets"] = log.count(b"hush-" + arena.secret.encode()) + sum(log.count(token.encode()) for token in arena.tokens.values())
figures["unclean"] += unclean(log.decode("utf-8", "replace").replace("\t", ""))
report(**figures, crashed=0 if arena.alive() else 1)
