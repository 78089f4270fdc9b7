"""docs/reference/admin-api.yaml against the live API by schemathesis, with a token of each scope, with one for all and with none: every operation, its
examples, the bounds of its fields and what is beyond them, and by chance, while a call is up that it may act on.

A fault is: a status of 5xx, one that neither the operation nor the document's list of refusals has, a body of another schema or content type, a
refusal that is no problem, an answer to who lacks the scope, and with the token for all a good question refused or a bad one taken.
"""
from api import *
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.normpath(HERE + "/../../../../docs/reference/admin-api.yaml")
# Each by name, with the reason.
LEFT_OUT = {"drainNode": "it ends the gateway under test"}
CHECKS = ["not_a_server_error", "content_type_conformance", "response_schema_conformance", "unsupported_method", "allow_header_conformance",
          "listed_status", "one_shape", "scope_is_needed"]
# A good question by its schema may be refused for what the gateway has and who asks; with 400 only where the rule is between fields, or in the text
# of a body, a URL or a cursor, which no schema says.
REFUSALS = '"2xx", "3xx", 401, 403, 404, 409, 410, 422, 429'
SETTINGS = f"[checks.positive_data_acceptance]\nexpected-statuses = [{REFUSALS}]\n" + "".join(
    f'[[operations]]\ninclude-operation-id = "{name}"\nchecks.positive_data_acceptance.expected-statuses = [{REFUSALS}, 400]\n'
    for name in ("startTrace", "makeCall", "getLocations", "replaceDirectory", "changeDirectory", "streamCall", "listClusterCalls"))

options, arena, chance = arguments(("--scopes", {"default": "operator,read,calls,users,admin,none"}), ("--examples", {"type": int, "default": 50}))
ended = threading.Event()


def keep_calling():
    """A call to the honest user, who takes it; another one when it was ended."""
    while not ended.is_set():
        trunk = Trunk(arena)
        invite = trunk.request("INVITE", sdp=offer("127.0.0.1", 30_002))
        code, answer = trunk.ask(invite, 10)
        call = header(invite, "Call-ID")
        while code == 200 and not ended.is_set():
            text = trunk.receive(0.2)
            if text and not text.startswith("SIP/2.0"):
                same = [line for line in text.split("\r\n") if line.split(":")[0] in ("Via", "From", "To", "Call-ID", "CSeq")]
                trunk.send("\r\n".join(["SIP/2.0 200 OK", *same, "Content-Length: 0", "", ""]))
                code = 0 if text.startswith("BYE ") else code
        if code == 200:
            trunk.ask(trunk.request("BYE", call=call, cseq=2, to=header(answer, "To")), 2)
        trunk.close()
        ended.wait(0.5)


def failures(text):
    """Each failure in a line: operation, check, what was asked and answered."""
    out, operation = [], ""
    for line in text.split("\n"):
        if match := re.match(r"_{5,} (.*?) _{5,}$", line):
            operation = match.group(1)
        elif line.startswith("- "):
            out.append(f"{operation}: {line[2:]}")
        elif out and line.strip() and not line.startswith(("Reproduce", "    st replay", "=")):
            out[-1] += " " + line.strip()[:300]
        elif line.startswith("="):
            operation = ""
            if "SUMMARY" in line:
                break
    return out


def run(scope, folder, seconds):
    """How many requests, and what was wrong, as schemathesis says it."""
    counts = f"{folder}/{scope}.json"
    checks = CHECKS + (["negative_data_rejection", "positive_data_acceptance"] if scope == "operator" else [])
    if scope == "none":
        # who has no token does not hear which methods there are
        checks = [name for name in checks if name != "unsupported_method"]
    command = [
        sys.executable, "-B", "-m", "schemathesis.cli", "--no-color", "--config-file", f"{folder}/schemathesis.toml", "run", DOCUMENT, "--url", f"http://127.0.0.1:{arena.admin}",
        "--checks", ",".join(checks), "--phases", "examples,coverage,fuzzing", "--max-time", str(max(1, int(seconds))),
        "--max-examples", str(options.examples), "--seed", str(options.seed), "--no-shrink", "--continue-on-failure",
        "--suppress-health-check", "all", "--request-timeout", "20", "--warnings", "off"]
    for name in LEFT_OUT:
        command += ["--exclude-operation-id", name]
    if scope != "none":
        command += ["-H", f"Authorization: Bearer {arena.tokens[scope]}"]
    environment = {"SCHEMATHESIS_HOOKS": "schema_hooks", "PYTHONPATH": HERE, "COLUMNS": "180", "SCHEMA_SCOPE": scope, "SCHEMA_COUNTS": counts,
                   "SCHEMA_ADMIN": f"{arena.admin} {arena.tokens['operator']}"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", env={**os.environ, **environment})
    counted = json.load(open(counts)) if os.path.exists(counts) else {}
    found = failures(done.stdout)
    if done.returncode and not found:
        found = [f"status {done.returncode}: {done.stdout[-1500:]} {done.stderr[-500:]}"]
    for text in found:
        print(f"with {scope}: {text}", file=sys.stderr)
    return counted, found


caller = threading.Thread(target=keep_calling, daemon=True)
caller.start()
requests, statuses, faults = 0, {}, 0
with tempfile.TemporaryDirectory() as folder:
    with open(folder + "/schemathesis.toml", "w") as file:
        file.write(SETTINGS)
    scopes = options.scopes.split(",")
    # the token that may do everything gets half of the time
    shares = {scope: (len(scopes) if scope == "operator" else 1) for scope in scopes}
    for scope in scopes:
        counted, found = run(scope, folder, options.seconds * shares[scope] / sum(shares.values()))
        requests, faults = requests + sum(counted.values()), faults + len(found)
        for key, count in counted.items():
            statuses[key.split()[-1]] = statuses.get(key.split()[-1], 0) + count
ended.set()
caller.join()
report(requests=requests, faults=faults, statuses=statuses, crashed=0 if arena.alive() else 1)
