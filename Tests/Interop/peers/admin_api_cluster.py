"""Does the operations of docs/reference/admin-api.yaml that a cluster has at one of its nodes, and holds each answer against it.

    admin_api_cluster.py http://127.0.0.1:7060 docs/reference/admin-api.yaml n1 n2 alice CALL OVER

The node n1 is asked; CALL is a live call of alice at n2, OVER one that has ended. n1 drains at the end. Exits with 1 as admin_api.py does."""

import sys
from admin_document import CLUSTER, ask, done, faults, finish, document

own, other, user, call, over = sys.argv[3:8]
seen = ask("GET", "/v1/nodes", 200)
if [row["node"] for row in seen["nodes"]] != [own, other]:
    faults.append(f"not {own} and {other}: {seen}")
ask("GET", "/v1/nodes/{node}", 200, f"/v1/nodes/{other}")
ask("GET", "/v1/nodes/{node}", 404, "/v1/nodes/nobody")

places = ask("GET", "/v1/where", 200, f"/v1/where?user={user}")
if not any(row.get("node") == other for row in places["devices"]) or [row["call"] for row in places["calls"]] != [call]:
    faults.append(f"not at {other}: {places}")
nobody = ask("GET", "/v1/where", 200, "/v1/where?user=no%20body")
if nobody["devices"] or nobody["calls"] or nobody["partial"]:
    faults.append(f"not empty: {nobody}")
live = ask("GET", "/v1/where", 200, f"/v1/where?call={call}")
if live["live"]["node"] != other or not live["live"]["legs"]:
    faults.append(f"not at {other} with its legs: {live}")
ended = ask("GET", "/v1/where", 200, f"/v1/where?call={over}")
if "live" in ended or "record" not in ended:
    faults.append(f"not over, with its record: {ended}")
ask("GET", "/v1/where", 404, "/v1/where?call=00000000-0000-4000-8000-000000000000")
for query in ("", "?call=nothing", f"?user={user}&call={call}"):
    ask("GET", "/v1/where", 400, "/v1/where" + query)
page = ask("GET", "/v1/cluster/calls", 200)
if [row["call"] for row in page["calls"]] != [call] or "next" in page:
    faults.append(f"not one call: {page}")
# the call is at n2: a GET is led there, and anything else told where to go
ask("GET", "/v1/calls/{call}", 200, f"/v1/calls/{call}")
ask("POST", "/v1/calls/{call}/mute", 307, f"/v1/calls/{call}/mute", {"on": True})
if live["live"]["admin"] == sys.argv[1]:
    faults.append(f"the asked node's own admin API: {live}")
ask("GET", "/v1/cluster/calls", 400, "/v1/cluster/calls?after=nowhere")

if ask("POST", "/v1/grants/restore", 200) != {"users": 0}:
    faults.append("grants were lost")
ask("POST", "/v1/nodes/{node}/forget", 409, f"/v1/nodes/{other}/forget")
ask("POST", "/v1/nodes/{node}/forget", 404, "/v1/nodes/nobody/forget")
ask("POST", "/v1/nodes/{node}/drain", 409, f"/v1/nodes/{other}/drain")
ask("POST", "/v1/nodes/{node}/drain", 404, "/v1/nodes/nobody/drain")
ask("POST", "/v1/nodes/{node}/drain", 202, f"/v1/nodes/{own}/drain")
# a node that has died is forgotten by ClusterTests
alone = {(method.upper(), template) for template, row in document["paths"].items() for method in row} - CLUSTER
finish(alone | {("POST", "/v1/nodes/{node}/forget")})
