"""What schemathesis holds each answer to beside its own checks, and names of what there is, so that its questions go beyond 404. `schema.py`
names this file in SCHEMATHESIS_HOOKS.

Environment: SCHEMA_SCOPE, the scope of the token that is used, `operator` for all of them, `none` for no token; SCHEMA_ADMIN, `port token`, where
live calls are looked up; SCHEMA_COUNTS, the file that gets how many answers there were, by operation and status.
"""
import atexit, functools, json, os, re, urllib.request, uuid, zlib
import schemathesis

SCOPE = os.environ.get("SCHEMA_SCOPE", "operator")
# What any operation may answer, by the document's own words.
EVERYWHERE = {400, 401, 403, 413, 429, 431}
# Nothing of the honest user's or of the calls beside is among them.
NAMES = {"trunk": "symmetric", "user": "mallory", "device": "bad", "module": "sip", "scope": "user:mallory", "node": "n1", "trace": 1}
counts = {}


@atexit.register
def save():
    with open(os.environ["SCHEMA_COUNTS"], "w") as file:
        json.dump(counts, file)


def calls():
    """User by id of each live call."""
    port, token = os.environ["SCHEMA_ADMIN"].split()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/calls", headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {call["call"]: call["user"] for call in json.load(answer)["calls"]}


def live_call():
    """The id of the call that `schema.py` keeps up; None while there is none."""
    return next((call for call, user in calls().items() if user == "alice"), None)


@functools.cache
def others():
    """The calls beside, which stay up all the time."""
    return {call for call, user in calls().items() if re.fullmatch(r"user\d+", user)}


def is_good(name, value):
    """What is wrong on purpose stays so."""
    if name == "call":
        return bool(re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", str(value)))
    if name == "scope":
        return bool(re.match("(user|account):.", str(value))) and len(value) <= 256
    return type(value) is type(NAMES[name]) and 1 <= len(str(value)) <= 256


def named(values):
    """Half of the good values, the same ones with the same seed, are of something that there is."""
    for name, value in list((values or {}).items()):
        if (name == "call" or name in NAMES) and is_good(name, value) and zlib.crc32(repr(value).encode()) % 2:
            values[name] = (live_call() or value) if name == "call" else NAMES[name]
    return values


@schemathesis.hook
def map_path_parameters(ctx, path_parameters):
    return named(path_parameters)


@schemathesis.hook
def map_query(ctx, query):
    return named(query)


@schemathesis.hook
def map_body(ctx, body):
    return named(body) if isinstance(body, dict) else body


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """What it learnt from answers is not used against the honest user, the calls beside, whose users are user0, user1 …, and their trunk."""
    for values in (case.path_parameters, case.query, case.body):
        for name, value in list(values.items()) if isinstance(values, dict) else ():
            if not isinstance(value, str):
                continue
            if name == "trunk" and value in ("carrier", "direct"):
                values[name] = NAMES["trunk"]
            elif re.fullmatch(r"(user:)?(user\d+|alice|honest)", value):
                values[name] = ("user:" if value.startswith("user:") else "") + NAMES["user"]
            elif name == "call" and value.lower() in others():
                values[name] = str(uuid.UUID(int=1))


@schemathesis.check
def listed_status(ctx, response, case):
    """`default` covers the document's list of refusals, and no more."""
    key = f"{case.operation.label} {response.status_code}"
    counts[key] = counts.get(key, 0) + 1
    listed = {int(code) for code in case.operation.responses.status_codes if code != "default"} | EVERYWHERE
    if case.method.upper() != case.operation.method.upper():
        listed |= {200, 404, 405}
    assert response.status_code in listed, f"status {response.status_code} is not in the document"


@schemathesis.check
def one_shape(ctx, response, case):
    """RFC 9457 with our code, whatever is refused."""
    if response.status_code < 400 or response.request.method == "HEAD":
        return
    kind = (response.headers.get("content-type") or [""])[0]
    assert kind.split(";")[0] == "application/problem+json", f"a refusal of type {kind!r}"
    problem = json.loads(response.content)
    assert set(problem) == {"type", "title", "status", "detail", "code"}, f"a problem of {sorted(problem)}"
    assert problem["status"] == response.status_code and problem["detail"], f"{response.status_code} says {problem}"


@schemathesis.check
def scope_is_needed(ctx, response, case):
    """Nothing but a refusal for who lacks the operation's scope."""
    needed = case.operation.definition.raw.get("x-scope")
    if needed and SCOPE not in ("operator", needed) and case.method.upper() == case.operation.method.upper():
        wanted = {400, 401, 431} if SCOPE == "none" else {400, 403, 404, 413, 429, 431}
        assert response.status_code in wanted, f"{response.status_code} with the scope {SCOPE}, {needed} is needed"
