"""Tokens of another kind, of another user, of another time: none logs in, and no session is another's."""
from common import *

options, arena, chance = arguments()
good = arena.token("mallory", "bad")
key = open(arena.key, "rb").read().strip()
public = open(arena.folder + "/own.pem", "rb").read()
head, body, signature = good.split(".")


def tampered(text, at=-3):
    other = "A" if text[at] != "A" else "B"
    return text[:at] + other + text[at + 1 :]


BAD = {
    "alg none": arena.token(key=b"", head={"alg": "none"}), "alg NONE signed": arena.token(head={"alg": "NONE"}), "alg list": arena.token(head={"alg": ["HS256"]}),
    "HS384": arena.token(head={"alg": "HS384"}), "RS256 with the secret": arena.token(head={"alg": "RS256"}), "ES256 with the secret": arena.token(head={"alg": "ES256"}),
    "HS256 with the public key": arena.token(key=public), "HS256 with the public key, trimmed": arena.token(key=public.strip()), "empty secret": arena.token(key=b"\x00"),
    "kid climbs": arena.token(key=b"\x00", head={"kid": "../../../../dev/null"}), "kid is SQL": arena.token(key=b"x", head={"kid": "' OR 1=1 --"}),
    "jwk brought along": arena.token(key=b"mine" * 8, head={"jwk": {"kty": "oct", "k": b64(b"mine" * 8)}}), "jku": arena.token(key=b"mine" * 8, head={"jku": "http://127.0.0.1:9/k"}),
    "critical": arena.token(head={"crit": ["exp"]}), "audience": arena.token(aud="other"), "no audience": arena.token(aud=None), "expired": arena.token(exp=int(time.time()) - 900),
    "no end": arena.token(exp=None), "end is text": arena.token(exp="9999999999"), "end is infinite": arena.token(exp=1e400), "not yet": arena.token(nbf=int(time.time()) + 3600),
    "nobody": arena.token("root"), "no user": arena.token(None), "another device": arena.token("mallory", "desk"), "truncated": good[:-10], "no signature": head + "." + body + ".",
    "two parts": head + "." + body, "four parts": good + "." + signature, "signature changed": tampered(good), "body of alice": head + "." + arena.token("alice", "bad").split(".")[1] + "." + signature,
    "padded": head + "=." + body + "." + signature, "white space": good + " ", "line end": good + "\n", "standard base64": good.replace("-", "+").replace("_", "/") + "=",
    "doubled claims": head + "." + b64(b'{"sub":"mallory","sub":"alice","dev":"bad","aud":"trunkline","exp":9999999999}') + "." + signature,
}
figures = {"tokens": 0, "let_in": 0, "unreached": 0, "own": 0, "stolen": 0, "late": 0}


def try_hello(text):
    """`welcome` or what came in its place."""
    stream, frames = web_socket(arena, arena.stranger())
    began = time.monotonic()
    send(stream, frame(text))
    got = frames.next(4.0)
    message = json.loads(got[1]) if isinstance(got, tuple) and got[0] == 1 else {}
    if message.get("t") != "welcome" and frames.close_code(3.0) is None:
        figures["late"] += 1
    stream.close()
    return message


for name, token in BAD.items():
    if token == good:
        continue
    try:
        answer = try_hello(hello(token))
    except (OSError, ValueError):
        figures["unreached"] += 1
        continue
    figures["tokens"] += 1
    if answer.get("t") == "welcome":
        figures["let_in"] += 1
        print("let in:", name, file=sys.stderr)
stream, frames, welcome = log_in(arena)
figures["own"] = 1
# Another's session: its sid without its token, with one's own token, with half of it, for another device.
other, _, theirs = log_in(arena, "honest", "victim")
for name, sid, token, device in (
    ("own token", theirs["sid"], welcome["resumeToken"], "bad"), ("no token", theirs["sid"], "", "victim"), ("half", theirs["sid"], theirs["resumeToken"][:-4], "victim"),
    ("other sid", welcome["sid"], theirs["resumeToken"], "bad"), ("as a login", None, theirs["resumeToken"], "victim"), ("as a wake", None, theirs["resumeToken"], "wake"),
    ("login as a wake", None, good, "wake")):
    proof = {"resume": {"sid": sid, "token": token, "lastSeq": 0}} if sid else {"wake": token} if device == "wake" else {"auth": token}
    answer = try_hello(hello("", "bad" if device == "wake" else device, proof))
    figures["tokens"] += 1
    if answer.get("t") == "welcome":
        figures["stolen"] += 1
        print("stolen:", name, file=sys.stderr)
stream.close()
other.close()
report(**figures)
