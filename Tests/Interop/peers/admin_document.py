"""Asks a live gateway and holds each answer against docs/reference/admin-api.yaml; used by admin_api.py and admin_api_cluster.py."""

import json, sys, urllib.error, urllib.request
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

base, path = sys.argv[1:3]
document = yaml.safe_load(open(path))
validate(document)
faults, done = [], set()


def resolved(value):
    while "$ref" in value:
        here = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            here = here[part]
        value = here
    return value


def ask(method, template, wanted, url=None, body=None, headers={}):
    """One request; the body if the answer has the wanted status, or one of several, and is as the document says."""
    request = urllib.request.Request(base + (url or template), method=method, headers=dict(headers),
        data=None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode())
    try:
        answer = urllib.request.urlopen(request, timeout=20)
    except urllib.error.HTTPError as refused:
        answer = refused
    body, kind = answer.read(), (answer.headers.get("Content-Type") or "").split(";")[0]
    name = f"{method} {url or template} {answer.status}"
    if answer.status not in (wanted if isinstance(wanted, tuple) else (wanted,)):
        faults.append(f"{name}: {wanted} is wanted: {body[:200]!r}")
    if 200 <= answer.status < 300:
        done.add((method, template))
    row = document["paths"][template][method.lower()]["responses"].get(str(answer.status))
    if row is None:
        faults.append(f"{name}: the document has no such status")
        return None
    content = resolved(row)["content"]
    if kind not in content:
        faults.append(f"{name}: {kind!r} is not {list(content)}")
        return None
    schema = content[kind].get("schema")
    if schema is None:
        return body
    value = json.loads(body) if kind in ("application/json", "application/problem+json") else body.decode()
    for fault in Draft202012Validator(schema | {"components": document["components"]}).iter_errors(value):
        faults.append(f"{name}: {fault.json_path}: {fault.message}")
    return value


def finish(others=()):
    """Ends the process: with 1 if an answer was not as the document says, or an operation that is not among `others` was not done."""
    known = {
        (method.upper(), template) for template, row in document["paths"].items() for method in row if method in ("get", "post", "put", "delete")
    }
    missing = [f"{method} {template} was not done" for method, template in sorted(known - done - set(others))]
    print("\n".join(faults + missing) or "as documented")
    sys.exit(bool(faults + missing))


# Of several nodes: admin_api_cluster.py does them.
CLUSTER = {("GET", "/v1/nodes"), ("GET", "/v1/nodes/{node}"), ("GET", "/v1/where"), ("GET", "/v1/cluster/calls")}
CLUSTER |= {("POST", "/v1/nodes/{node}/" + word) for word in ("drain", "forget")}
CLUSTER |= {("POST", "/v1/grants/restore")}
