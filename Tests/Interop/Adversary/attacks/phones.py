"""What attacks in an app's name share: its offer, its requests, and what its sessions are told."""
from api import *

OFFER = "\r\n".join([
    "v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111 101", "c=IN IP4 0.0.0.0",
    "a=rtcp:9 IN IP4 0.0.0.0", "a=ice-ufrag:Adv1", "a=ice-pwd:adversaryadversaryadversary", "a=fingerprint:sha-256 " + ":".join(["AB"] * 32),
    "a=setup:actpass", "a=mid:0", "a=sendrecv", "a=rtcp-mux", "a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1",
    "a=rtpmap:101 telephone-event/48000", "a=candidate:1 1 udp 2130706431 127.0.0.1 50001 typ host", ""])


def message(kind, body=None, call=None, seq=None):
    """One message of an app, with an id, framed; `seq` of those that are numbered."""
    value = {"t": kind, "id": str(uuid.uuid4()), "d": body or {}}
    if seq:
        value["seq"] = seq
    if call:
        value["call"] = call
    return frame(json.dumps(value).encode())


def start(call, seq=1, to="+15559990001"):
    return message("call.start", {"to": {"k": "phone", "h": to}, "sdp": OFFER, "gen": 1, "video": False, "acct": "default"}, call, seq)


def heard(frames, seconds):
    """All messages until the socket is closed or the time is over, and the close code: None if it stays open."""
    out, end = [], time.monotonic() + seconds
    while True:
        got = frames.next(max(0.01, end - time.monotonic()))
        if got is None:
            return out, None
        if got == "closed":
            return out, 1006
        if got[0] == 8:
            return out, struct.unpack("!H", got[1][:2])[0] if len(got[1]) >= 2 else 1005
        if got[0] == 1:
            out.append(json.loads(got[1]))


def calls_of(arena, user):
    return [call for call in (ask(arena, "/v1/calls", "read").json or {}).get("calls", []) if call["user"] == user]


def hang_up(arena, user):
    """All calls of the user."""
    for call in calls_of(arena, user):
        ask(arena, f"/v1/calls/{call['call']}/hangup", "calls", "POST", {"reason": "localEnd"}, source=arena.stranger())


def revoke(arena, user, device):
    return ask(arena, f"/v1/devices/revoke?user={user}&device={device}", "users", "POST").status


def allow(arena, user, device):
    return ask(arena, f"/v1/devices/allow?user={user}&device={device}", "users", "POST").status
