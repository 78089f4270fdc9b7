"""Authority of what goes on for long: event streams and half-sent requests whose token is taken out of the configuration, and streams that
nobody reads. `--what token` or `--what unread`."""
from api import *
import signal

options, arena, chance = arguments(("--what", {"default": "token"}))
CONFIG = arena.folder + "/gateway.yaml"


def event_stream(token, after=None, room=None):
    """A stream's connection, once its head is there; None if it was refused."""
    stream = connect(("127.0.0.1", arena.admin), arena.stranger())
    if room:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    path = "/v1/events" + (f"?after={after}" if after else "")
    send(stream, get(path, ["Accept: text/event-stream", *arena.bearer(token)]))
    if room and not after:
        # what it is sent fills its sockets; its head is looked at, and no more
        select.select([stream], [], [], 3)
        return stream if stream.recv(15, socket.MSG_PEEK).startswith(b"HTTP/1.1 200") else None
    data, _ = read(stream, 3, lambda data: b"\r\n\r\n" in data)
    return stream if data.startswith(b"HTTP/1.1 200") else None


def without(name):
    """The configuration without a token, taken by SIGHUP."""
    text = open(CONFIG).read()
    changed = re.sub(r"\{ name: " + name + r",[^}]*\},? ?", "", text)
    assert changed != text
    open(CONFIG, "w").write(changed)
    os.kill(arena.pid, signal.SIGHUP)
    end = time.monotonic() + 10
    while time.monotonic() < end and ask(arena, "/v1/hour", name).status != 401:
        time.sleep(0.05)
    return text


def taken_out():
    figures = {"streams": 0, "left": 0, "done_after": 0, "half": 0, "own": 0}
    streams = [stream for stream in (event_stream("spare", "latest") for _ in range(2)) if stream]
    figures["streams"] = len(streams)
    # every kind of request, without its last octets
    contacts = b"number,label,kind\n+15570000001,Ann,\n"
    halves = []
    for method, path, body in (
            ("PUT", "/v1/directory/user:mallory", contacts), ("POST", "/v1/directory/user:mallory", contacts), ("POST", "/v1/devices/revoke?user=honest", b"x"),
            ("GET", "/v1/calls", b"x"), ("GET", "/v1/events?limit=5", b"x"), ("DELETE", "/v1/directory/user:mallory", b"x"), ("GET", "/v1/directory", b"x"), ("GET", "/metrics", b"x")):
        stream = connect(("127.0.0.1", arena.admin), arena.stranger())
        data = get(path, arena.bearer("spare"), method=method, body=body)
        send(stream, data[:-1])
        halves.append((stream, method + " " + path, data[-1:]))
    # one of them whole, to know that it would be answered
    answer = ask(arena, "/v1/calls", "spare", body=b"x")
    figures["own"] = 1 if answer.status == 200 else 0
    before = without("spare")
    for stream, name, last in halves:
        send(stream, last)
        status = (answers(read(stream, 5, whole)[0]) or [0])[0]
        figures["half"] += 1
        if status != 401:
            figures["done_after"] += 1
            print("after its token was gone:", name, status, file=sys.stderr)
        stream.close()
    for stream in streams:
        data, closed = read(stream, 8)
        figures["left"] += 0 if closed else 1
        stream.close()
    open(CONFIG, "w").write(before)
    os.kill(arena.pid, signal.SIGHUP)
    return figures


def unread():
    figures = {"streams": 0, "others_in": 0, "left": 0}
    held = [stream for stream in (event_stream("slow", room=4096) for _ in range(16)) if stream]
    figures["streams"] = len(held)
    # with another token there is a place, at once and later
    for _ in range(3):
        other = event_stream("read", "latest")
        figures["others_in"] += 1 if other else 0
        if other:
            other.close()
    # and none of them is held for ever: the kernel's room is full, so a socket that is still open after this has no deadline
    ports, end = {stream.getsockname()[1] for stream in held}, time.monotonic() + options.seconds
    while time.monotonic() < end and established(ports):
        time.sleep(0.5)
    figures["left"] = established(ports)
    for stream in held:
        stream.close()
    return figures


def established(ports):
    """Of the connections from these ports, those that the gateway has not closed: what waits in its sockets keeps its FIN from coming here."""
    rows = [line.split()[1:4] for line in open("/proc/net/tcp").read().split("\n")[1:] if line]
    return len([1 for local, remote, state in rows if state == "01" and int(local[-4:], 16) == arena.admin and int(remote[-4:], 16) in ports])


figures = taken_out() if options.what == "token" else unread()
report(**figures, crashed=0 if arena.alive() else 1)
