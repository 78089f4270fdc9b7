"""Does every operation of docs/reference/admin-api.yaml at a live gateway, and holds each answer against it.

    admin_api.py http://127.0.0.1:7060 docs/reference/admin-api.yaml alice cell

`cell` is a registered device of alice, and a call is connected; it is hung up at the end. Prints a line for each answer that is not as the
document says, and for each operation that was not done; exits with 1 if there is one."""

import sys, time
from admin_document import CLUSTER, ask, faults, finish

user, device = sys.argv[3:5]

for page in ("/", "/healthz", "/metrics", "/v1/hour", "/v1/log/levels", "/readyz"):
    ask("GET", page, 200)
for name in ("status.js", "status.css", "icon.svg", "runbooks.html", "runbooks.md"):
    ask("GET", "/status/{file}", 200, "/status/" + name)
for name in ("base.css", "brand.css", "elements.js"):
    ask("GET", "/ui/{file}", 200, "/ui/" + name)
ask("GET", "/ui/{file}", 404, "/ui/none.js")
ask("GET", "/status/{file}", 404, "/status/none.js")
ask("GET", "/v1/events", 200, "/v1/events?limit=3&kinds=call.started,device.registered")
ask("GET", "/v1/events", 400, "/v1/events?limit=none")
ask("GET", "/v1/events", 410, "/v1/events?after=00000000-1")
for _ in range(150):
    calls = ask("GET", "/v1/calls", 200)["calls"]
    if calls and "mos" in calls[0].get("fromApp", {}):
        break
    time.sleep(0.1)
else:
    sys.exit(f"no call with statistics: {calls}")
call = calls[0]["call"]
status = ask("GET", "/v1/status", 200)
found = ask("GET", "/v1/status", 200, f"/v1/status?find={call.upper()}")
if [row["call"] for row in found["calls"]["rows"]] != [call] or found["calls"]["found"] != 1:
    faults.append(f"/v1/status does not find {call}: {found['calls']}")
if ask("GET", "/v1/status", 200, "/v1/status?find=nobody")["calls"]["rows"]:
    faults.append("/v1/status finds what is not there")
ask("GET", "/v1/status", 400, "/v1/status?find=" + "x" * 257)
ask("GET", "/v1/calls/{call}", 200, f"/v1/calls/{call}")
ask("GET", "/v1/calls/{call}", 404, "/v1/calls/00000000-0000-4000-8000-000000000000")
trunk = ask("GET", "/v1/trunks", 200)["trunks"][0]["trunk"]
ask("GET", "/v1/trunks/{trunk}", 200, f"/v1/trunks/{trunk}")
ask("GET", "/v1/trunks/{trunk}", 404, "/v1/trunks/nobody")
for word in ("disable", "enable"):
    ask("POST", f"/v1/trunks/{{trunk}}/{word}", 200, f"/v1/trunks/{trunk}/{word}")
    ask("POST", f"/v1/trunks/{{trunk}}/{word}", 404, f"/v1/trunks/nobody/{word}")
devices = ask("GET", "/v1/devices", 200)["devices"]
if not any(row["push"] for row in devices):
    faults.append(f"no device with a push registration: {devices}")
ask("GET", "/v1/devices", 404, f"/v1/devices?user={user}&device=nobody")
ask("POST", "/v1/push/test", 200, f"/v1/push/test?user={user}")
ask("POST", "/v1/push/test", 404, "/v1/push/test?user=nobody")
ask("POST", "/v1/push/test", 400)
for word in ("revoke", "allow"):
    ask("POST", f"/v1/devices/{word}", 200, f"/v1/devices/{word}?user={user}&device={device}")
    ask("POST", f"/v1/devices/{word}", 400)
    ask("POST", f"/v1/devices/{word}", 404, f"/v1/devices/{word}?user={user}&device=nobody")
level = "/v1/log/levels/{module}/{level}"
for wanted, url in ((200, "sip/debug"), (400, "sip/loud"), (404, "nobody/debug")):
    ask("POST", level, wanted, "/v1/log/levels/" + url)
ask("POST", "/v1/traces", 400)
ask("POST", "/v1/traces", 404, "/v1/traces?trunk=nobody&seconds=5&bytes=1000")
trace = ask("POST", "/v1/traces", 201, f"/v1/traces?trunk={trunk}&seconds=5&bytes=100000").strip()
ask("GET", "/v1/traces/{trace}", 200, f"/v1/traces/{trace}")
ask("POST", "/v1/traces/{trace}/stop", 202, f"/v1/traces/{trace}/stop")
ask("POST", "/v1/traces/{trace}/stop", 404, "/v1/traces/99999/stop")
ask("GET", "/v1/traces/{trace}", 404, "/v1/traces/99999")
nobody = "/v1/calls/00000000-0000-4000-8000-000000000000/"
good = {"hold": {"on": False}, "mute": {"on": False}, "digits": {"digits": "12#"}, "transfer": {"to": "+15557654321"}, "play": {"file": "a.wav"}, "record": {"on": True}, "stream": {"url": "wss://127.0.0.1:9/"}}
# this trunk accepts no transfers, no file may be played, nothing is recorded, and somebody has the call
refused = {"transfer": 422, "play": 404, "record": 422, "stream": 409}
for word, body in good.items():
    action = "/v1/calls/{call}/" + word
    for wrong in (None, b"{", b"\xff\x00", {}, {"other": 1}, [body]):
        ask("POST", action, 400, f"/v1/calls/{call}/{word}", wrong)
    ask("POST", action, 404, nobody + word, body)
    ask("POST", action, refused.get(word, 202), f"/v1/calls/{call}/{word}", body, {"Idempotency-Key": word})
ask("POST", "/v1/calls/{call}/transfer", 422, f"/v1/calls/{call}/transfer", {"to": "112"})
ask("POST", "/v1/calls/{call}/play", 202, f"/v1/calls/{call}/play", {"on": False})
ask("POST", "/v1/calls/{call}/play", 400, f"/v1/calls/{call}/play", {"on": True})
# the same key: the same answer, or none for another request
ask("POST", "/v1/calls/{call}/hold", 202, f"/v1/calls/{call}/hold", good["hold"], {"Idempotency-Key": "hold"})
ask("POST", "/v1/calls/{call}/hold", 422, f"/v1/calls/{call}/hold", {"on": True}, {"Idempotency-Key": "hold"})
ask("POST", "/v1/calls/{call}/hold", 400, f"/v1/calls/{call}/hold", good["hold"], {"Idempotency-Key": "x" * 129})
for wanted, body in ((400, None), (400, {"user": user}), (400, {"user": user, "to": "+15557654321", "first": "both"}), (404, {"user": "nobody", "to": "+15557654321"}), (422, {"user": user, "to": "112"})):
    ask("POST", "/v1/calls", wanted, None, body)
made = ask("POST", "/v1/calls", 201, None, {"user": user, "to": "+15557654321", "first": "number"})["call"]
# the trunk may have refused it by now
ask("POST", "/v1/calls/{call}/hangup", (202, 404), f"/v1/calls/{made}/hangup")
made = ask("POST", "/v1/calls", 201, None, {"user": user, "to": "+15557654321"})["call"]
ask("POST", "/v1/calls/{call}/hold", 409, f"/v1/calls/{made}/hold", {"on": True})
ask("POST", "/v1/calls/{call}/hangup", 409, f"/v1/calls/{made}/hangup", {"reason": "busy"})
ask("POST", "/v1/calls/{call}/hangup", 202, f"/v1/calls/{made}/hangup", {"reason": "localEnd"})
ask("POST", "/v1/calls/{call}/hangup", 400, f"/v1/calls/{call}/hangup", {"reason": "gatewayRestart"})
ask("POST", "/v1/calls/{call}/hangup", 400, "/v1/calls/nothing/hangup")
ask("POST", "/v1/calls/{call}/hangup", 404, "/v1/calls/00000000-0000-4000-8000-000000000000/hangup")
ask("POST", "/v1/calls/{call}/hangup", 202, f"/v1/calls/{call}/hangup")

scope = "/v1/directory/{scope}"
contacts = b"number,label,kind\n+15550000001,Ann,\n+15550000002,,block\n"
lines = b'{"number":"+15550000003","label":"Bob"}\n'
ask("PUT", scope, 200, "/v1/directory/user:" + user, contacts)
ask("PUT", scope, 400, "/v1/directory/user:" + user, contacts + contacts)
ask("PUT", scope, 400, "/v1/directory/" + user, contacts)
ask("POST", scope, 200, "/v1/directory/user:" + user, lines, {"Content-Type": "application/jsonl"})
ask("POST", scope, 400, "/v1/directory/user:" + user, b"{}\n", {"Content-Type": "application/jsonl"})
if ask("GET", "/v1/directory", 200)["directories"][0]["entries"] != 3:
    faults.append("the directory has other entries than three")
ask("DELETE", scope, 200, "/v1/directory/user:" + user)
ask("DELETE", scope, 400, "/v1/directory/" + user)
ask("DELETE", "/v1/users/{user}/data", 200, "/v1/users/nobody/data")

# an id with a slash, a plus or an ampersand is one id
ask("DELETE", "/v1/users/{user}/data", 200, "/v1/users/a%2Fb/data")
ask("PUT", scope, 200, "/v1/directory/user:a%2Fb", contacts)
if "user:a/b" not in [row["scope"] for row in ask("GET", "/v1/directory", 200)["directories"]]:
    faults.append("no directory user:a/b")
ask("DELETE", scope, 200, "/v1/directory/user:a%2Fb")
for name in ("%2B4930123", "+4930123", f"{user}%26device%3D{device}"):
    ask("POST", "/v1/devices/allow", 404, f"/v1/devices/allow?user={name}&device=nobody")
    if ask("GET", "/v1/devices", 200, f"/v1/devices?user={name}")["devices"]:
        faults.append(f"{name} has a device")

# a gateway that is alone says so
for page in ("/v1/nodes", "/v1/cluster/calls"):
    ask("GET", page, 404)
ask("GET", "/v1/where", 404, "/v1/where?user=alice")
ask("POST", "/v1/grants/restore", 404)
finish(CLUSTER | {("POST", "/v1/calls/{call}/" + word) for word in refused})
