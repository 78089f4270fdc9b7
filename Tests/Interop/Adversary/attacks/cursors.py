"""Bad input at the admin port: cursors of other questions, of another process, cut, from the future; heads at their limit and one octet above;
escapes; bodies that stop half way. Each is a refusal in the one shape, or what it would be without it."""
from api import *

options, arena, chance = arguments()
figures = {"asked": 0, "odd": 0, "shapeless": 0, "own": 0, "hung": 0}


def judge(name, answer, wanted=(400, 404, 410, 413, 431)):
    figures["asked"] += 1
    figures["hung"] += 1 if answer.status == 0 and not answer.closed else 0
    if answer.status not in wanted:
        figures["odd"] += 1
        print(name[:120], answer.status, answer.body[:100], file=sys.stderr)
    elif answer.status >= 400 and not answer.is_problem:
        figures["shapeless"] += 1
        print("shape:", name[:120], answer.body[:100], file=sys.stderr)


def get_it(path, wanted=(400, 404, 410, 413, 431), token="operator", **more):
    judge(path, ask(arena, path, token, seconds=5, **more), wanted)


page = ask(arena, "/v1/events?limit=3").json
cursor, first = page["after"], page["events"][0]["id"] if page["events"] else "0123abcd-1"
figures["own"] += 1 if ask(arena, f"/v1/events?after={cursor}").status == 200 else 0
epoch, _, position = cursor.partition("-")
BAD = [f"ffffffff-{position}", f"{epoch}-99999999999", f"{epoch}-18446744073709551615", f"{epoch}-18446744073709551616", f"{epoch}-99999999999999999999999", f"{epoch}--1", f"{epoch}-",
       f"-{position}", epoch, cursor[:-1] + "x", cursor[1:], cursor + "-1", cursor.upper() + "z", "0", "latest ", "LATEST", "%00", "%ff", "%c0%ae", "%25", "%2e%2e", "null", "{}", "a" * 2_000,
       "n1", "alice/desk", "%2Fv1%2Fdevices", cursor + "%20", "%20" + cursor]
for bad in BAD:
    get_it(f"/v1/events?after={bad}")
    get_it(f"/v1/events?limit=5&after={bad}&kinds=call.ended")
    # no cursor of another question is one of these
    get_it(f"/v1/devices?after={bad}", (200, 400, 404, 410, 431))
    get_it(f"/v1/calls?after={bad}", (200, 400, 404, 410, 431))
    get_it(f"/v1/cluster/calls?after={bad}")
for limit in ("0", "-1", "1001", "1e3", "99999999999999999999", "+5", "0x10", "%35%20", "none", ""):
    get_it(f"/v1/events?limit={limit}")
for query in ("after=a&after=b", "after=latest&%61fter=latest", "kinds=", "kinds=,", "kinds=call.ended,", "kinds=call.ended,nothing", "subject=", "other=1", "&", "=", "after", "subject=%", "subject=%zz"):
    get_it("/v1/events?" + query, (200, 400, 404) if query in ("&", "=", "kinds=call.ended,") else (400,))
# Everything and nothing fits.
for query in ("subject=nothing", "kinds=call.digits&subject=nothing", "kinds=" + ",".join(["call.started"] * 100)):
    get_it("/v1/events?" + query, (200, 400))
for path in ("/v1/calls/%00", "/v1/trunks/%2e%2e", "/v1/trunks/%25", "/v1/trunks/%c0%af", "/v1/trunks/%ed%a0%80", "/v1/trunks/%f4%90%80%80", "/v1" + "/a" * 200, "/v1/calls/" + "a" * 4_000,
             "/v1/calls/%2e%2e/hangup", "/v1//calls", "/v1/calls/", "/v1/calls/.", "//", "/v1/trunks/%", "/v1/trunks/%2", "/v1/calls;x=1", "/v1/calls%20", "/v1/calls%2fx", "/V1/calls"):
    get_it(path)
# The head's limit: found from outside, then held to one octet.
low, high = 100, 200_000
while high - low > 1:
    middle = (low + high) // 2
    if ask(arena, "/v1/hour", "read", more=["X: " + "a" * middle], seconds=5).status == 200:
        low = middle
    else:
        high = middle
judge("a head at its limit", ask(arena, "/v1/hour", "read", more=["X: " + "a" * low], seconds=5), (200,))
judge("a head above its limit", ask(arena, "/v1/hour", "read", more=["X: " + "a" * high], seconds=5), (431,))
judge("many fields", ask(arena, "/v1/hour", "read", more=["X: y"] * 1_000, seconds=5), (431,))
judge("a body at its limit", ask(arena, "/v1/calls", "calls", "POST", b"x" * 65_536, seconds=5), (400,))
judge("a body above its limit", ask(arena, "/v1/calls", "calls", "POST", b"x" * 65_537, seconds=5), (413,))
# Bodies that stop half way: the connection ends, and soon.
for method, path, token in (("PUT", "/v1/directory/user:mallory", "users"), ("POST", "/v1/calls", "calls"), ("POST", "/v1/devices/revoke?user=nobody", "users"), ("GET", "/v1/calls", "read")):
    for sent in (b"", b"number,label,kind\n+1557"):
        stream = connect(("127.0.0.1", arena.admin), arena.stranger())
        send(stream, get(path, [*arena.bearer(token), "Content-Length: 100"], method=method) + sent)
        stream.shutdown(socket.SHUT_WR)
        data, closed = read(stream, 13)
        stream.close()
        figures["asked"] += 1
        figures["hung"] += 0 if closed else 1
        if any(status // 100 == 2 for status in answers(data)):
            figures["odd"] += 1
            print("half a body:", method, path, data[:60], file=sys.stderr)
report(**figures, crashed=0 if arena.alive() else 1)
