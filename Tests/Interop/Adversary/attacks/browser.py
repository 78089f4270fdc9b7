"""A web page of a stranger in the browser of who has a tunnel to the admin port: without a token on loopback, by every way a page can ask."""
from api import *

options, arena, chance = arguments()
OWN = f"127.0.0.1:{arena.admin}"
PATHS = ["/metrics", "/v1/calls", "/v1/trunks", "/readyz"]
STRANGERS = [["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"], ["Sec-Fetch-Site: same-site"], ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"],
             ["sec-fetch-site:cross-site"], ["Sec-Fetch-Site: CROSS-SITE"], ["Sec-Fetch-Site: unheard-of"], ["Origin: https://evil.example"], ["Origin: null"],
             ["Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"]]
HOSTS = ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "[::1].evil.example", "0x7f000001.evil.example", ""]
figures = {"asked": 0, "let_in": 0, "own": 0}


def status(method, path, fields=(), host=OWN):
    stream = connect(("127.0.0.1", arena.admin), timeout=3)
    return (answers(http(stream, get(path, fields, method, close=True, host=host, body=b"" if method == "POST" else None)), ) or [0])[0]


def judge(name, code):
    figures["asked"] += 1
    if code // 100 != 4:
        figures["let_in"] += 1
        print("let in:", name, code, file=sys.stderr)


for fields in STRANGERS:
    for path in PATHS:
        judge(f"{path} {fields}", status("GET", path, fields))
    judge(f"POST {fields}", status("POST", "/v1/trunks/symmetric/disable", fields))
for host in HOSTS:
    for path in PATHS:
        judge(f"{path} Host: {host}", status("GET", path, host=host))
        judge(f"{path} Host: {host} none", status("GET", path, ["Sec-Fetch-Site: same-origin"], host))
# programs, and the operator's own page and address bar
for fields in ([], ["Sec-Fetch-Site: none"], ["Sec-Fetch-Site: same-origin"]):
    figures["own"] += 1 if all(status("GET", path, fields) in (200, 503) for path in PATHS) else 0
report(**figures, crashed=0 if arena.alive() else 1)
