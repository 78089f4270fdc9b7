"""A trunk beside an attack: an OPTIONS each 10 ms, a new call to a user without devices each 200 ms. Ends when its input does, and says how
long answers took and how many callers were refused with 503."""
from common import *

options, arena, chance = arguments()
trunk, callers = Trunk(arena), Trunk(arena)
sent, took, asked, ended, overloaded, number, next_at, next_call = {}, [], {}, 0, 0, 0, time.monotonic(), time.monotonic()
print(json.dumps({"event": "beside"}), flush=True)
done = False
while not done or (sent and time.monotonic() < until):
    now = time.monotonic()
    if not done and select.select([sys.stdin], [], [], 0)[0]:
        done, until = True, now + 5
    if not done and now >= next_at:
        number, next_at = number + 1, max(next_at + 0.01, now)
        text = trunk.request("OPTIONS", call=f"options-{number}")
        sent[f"options-{number}"] = now
        trunk.send(text)
    if not done and now >= next_call:
        next_call = now + 0.2
        text = callers.request("INVITE", "+15551230004", sdp=offer("127.0.0.1", 30_000))
        asked[header(text, "Call-ID")] = text
        callers.send(text)
    for one in select.select([trunk.socket, callers.socket], [], [], 0.002)[0]:
        text = one.recv(65_536).decode("utf-8", "replace")
        call = header(text, "Call-ID")
        if call in sent:
            took.append((time.monotonic() - sent.pop(call)) * 1000)
        elif call in asked and text.startswith("SIP/2.0 ") and int(text[8:11]) >= 200:
            callers.send(callers.acknowledgement(asked[call], text))
            overloaded += 1 if text[8:11] == "503" else 0
            ended += 1
took.sort()
report(
    options=len(took), unanswered=len(sent), options_p99_ms=round(took[len(took) * 99 // 100], 1) if took else 9999.0,
    slowest_ms=round(took[-1], 1) if took else 9999.0, callers=ended, overloaded=overloaded)
