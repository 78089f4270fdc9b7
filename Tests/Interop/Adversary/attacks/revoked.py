"""A phone that was revoked uses what it still has: its login token, its session, its socket, at every moment between connect and hang-up."""
from phones import *

options, arena, chance = arguments()
figures = {"tries": 0, "calls_made": 0, "welcomed": 0, "names": 0, "rejected": 0, "stolen": 0, "open_end": 0, "own": 0}


def connected(*more, device="bad", token=None, seconds=6.0):
    """`hello` and more behind it in one segment; what came."""
    stream, frames = web_socket(arena, arena.stranger())
    send(stream, frame(hello(token or arena.token("mallory", device), device)) + b"".join(more))
    messages, code = heard(frames, seconds)
    stream.close()
    figures["tries"] += 1
    return messages, code


def count(messages, code, call=None):
    """What a revoked phone must not have had."""
    kinds = [one["t"] for one in messages]
    figures["welcomed"] += kinds.count("welcome")
    figures["open_end"] += 1 if code is None else 0
    started = [one for one in messages if one["t"] == "ok" and one["d"].get("sdp")]
    figures["calls_made"] += len(started)
    if kinds != ["err"]:
        print("heard:", kinds, code, file=sys.stderr)


def offered(device):
    """A session of another device of the user's, which a call rings on, and the call's id."""
    stream, frames, _ = log_in(arena, "mallory", device, timeout=5)
    return stream, frames


# It works before, and after it was allowed again.
messages, code = connected(seconds=1)
figures["own"] += 1 if messages and messages[0]["t"] == "welcome" else 0
old = arena.token("mallory", "bad")
assert revoke(arena, "mallory", "bad") == 200

# A call in the same segment as the hello; the device's own token, a second socket for the same call.
for _ in range(10):
    call = str(uuid.uuid4())
    before = arena.metric("trunkline_calls_started_total")
    count(*connected(start(call), token=old))
    figures["calls_made"] += int(arena.metric("trunkline_calls_started_total") - before)
    other, frames = web_socket(arena, arena.stranger())
    send(other, frame(hello(arena.token("mallory", "bad2"), "bad2")))
    got, _ = heard(frames, 0.5)
    figures["stolen"] += len([1 for one in got if one["t"] == "welcome" and any(each.get("call") == call for each in one["d"].get("calls", []))])
    other.close()

# The directory by HTTP, and the reject of a call that rings elsewhere.
address = ("127.0.0.1", arena.app)
for path in ("/v1/directory", "/v1/directory?after=0&version=0"):
    answer = ask(arena, path, None, more=[f"Authorization: Bearer {old}"], address=address)
    figures["tries"] += 1
    figures["names"] += 1 if answer.status in (200, 304) else 0
stream, frames = offered("good")
trunk = Trunk(arena)
invite = trunk.request("INVITE", "+15551230003", sdp=offer("127.0.0.1", 30_004))
trunk.send(invite)
messages, _ = heard(frames, 2)
ringing = [one for one in messages if one["t"] == "call.offer"]
if ringing:
    answer = ask(arena, f"/v1/calls/{ringing[0]['call']}/reject", None, "POST", {"scope": "all", "reason": "declined"}, [f"Authorization: Bearer {old}"], address=address)
    messages, _ = heard(frames, 1.5)
    figures["rejected"] += 1 if answer.status == 200 or any(one["t"] == "call.cancel" for one in messages) else 0
    figures["tries"] += 1
    figures["rang"] = 1
    hang_up(arena, "mallory")
stream.close()
trunk.close()

# Revoked at every moment: nothing that is asked after the answer to the revocation is done.
for moment in ("upgraded", "welcomed", "resumed", "asked", "started"):
    device = f"late-{moment}"
    token = arena.token("mallory", device)
    stream, frames = web_socket(arena, arena.stranger())
    call = str(uuid.uuid4())
    if moment != "upgraded":
        send(stream, frame(hello(token, device)))
        frames.next(3)
    if moment in ("asked", "started"):
        send(stream, message("hist.list", {"limit": 1}) if moment == "asked" else start(call))
        frames.next(3)
    elif moment == "upgraded":
        # the registry knows a device that was there once
        other, _, _ = log_in(arena, "mallory", device, timeout=5)
        other.close()
    status = revoke(arena, "mallory", device)
    figures["tries"] += 1
    if status != 200:
        print("revoke:", moment, status, file=sys.stderr)
        figures["open_end"] += 1
    before = arena.metric("trunkline_calls_started_total")
    later = str(uuid.uuid4())
    send(stream, (frame(hello(token, device)) if moment == "upgraded" else b"") + start(later, 2 if moment == "started" else 1))
    messages, code = heard(frames, 6)
    made = int(arena.metric("trunkline_calls_started_total") - before)
    figures["calls_made"] += made
    if moment == "upgraded":
        figures["welcomed"] += len([1 for one in messages if one["t"] == "welcome"])
    # a call that it had goes on, and its session with it
    if moment != "started" and code is None:
        figures["open_end"] += 1
    if made or code is None:
        print(moment, [one["t"] for one in messages], code, made, file=sys.stderr)
    stream.close()
hang_up(arena, "mallory")

# In a call that is up: it goes on until somebody hangs up, and nothing comes after it.
phone = subprocess.Popen(
    [os.path.join(os.path.dirname(arena.binary), "trunkline-lab"), "phone", "--answer", "--answer-after", "0.1", "--repeat", "--device", "talks", "--insecure",
     "--url", f"ws://127.0.0.1:{arena.app}/v1/connect", "--token", arena.token("talker", "talks", iat=int(time.time()), trunkline={"numbers": ["+15560000009"]})],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    trunk, code, end = Trunk(arena), 0, time.monotonic() + 8
    while code != 200 and time.monotonic() < end:
        invite = trunk.request("INVITE", "+15560000009", sdp=offer("127.0.0.1", 30_006))
        code, answer = trunk.ask(invite, 5)
        time.sleep(0.2)
    revoke(arena, "talker", "talks")
    time.sleep(2)
    figures["talking"] = len([call for call in calls_of(arena, "talker") if call["state"] == "connected"])
    figures["hung_up"] = 1 if trunk.ask(trunk.request("BYE", call=header(invite, "Call-ID"), cseq=2, to=header(answer, "To")), 3)[0] == 200 else 0
    code, _ = trunk.ask(trunk.request("INVITE", "+15560000009", sdp=offer("127.0.0.1", 30_006)), 3)
    figures["calls_made"] += 1 if code == 200 else 0
    trunk.close()
finally:
    phone.kill()
    phone.wait()
allow(arena, "mallory", "bad")
messages, code = connected(seconds=1)
figures["own"] += 1 if messages and messages[0]["t"] == "welcome" else 0
report(**figures, crashed=0 if arena.alive() else 1)
