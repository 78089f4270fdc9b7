"""A stranger takes every TCP connection that guests may have; another guest and a trunk still get in. And a digest that was used is worth
nothing."""
from common import *

options, arena, chance = arguments(("--replay", {"action": "store_true"}))


def challenged(trunk, call=None):
    """(request, its 401)"""
    request = trunk.request("INVITE", call=call, sdp=offer(trunk.ip, 9))
    code, text = trunk.ask(request)
    return request, text if code == 401 else ""


def invite_with(trunk, line, call):
    return trunk.ask(trunk.request("INVITE", call=call, cseq=2, more=[line], sdp=offer(trunk.ip, 9)), 15)


def guest_call(ip, tcp):
    """1 if a guest that knows the password gets a call answered; milliseconds it took."""
    began = time.monotonic()
    try:
        trunk = Trunk(arena, ip, tcp)
        call = f"guest-{uuid.uuid4().hex[:8]}@{ip}"
        _, text = challenged(trunk, call)
        if not text:
            return 0, 0, None, None
        line = digest(text, "pbx", "s3cret", "INVITE", f"sip:+15551230001@127.0.0.1:{arena.sip}")
        code, answer = invite_with(trunk, line, call)
        took = round((time.monotonic() - began) * 1000)
        if code == 200:
            trunk.ask(trunk.request("BYE", call=call, cseq=3, to=header(answer, "To"), more=[]), 2)
        return (1 if code == 200 else 0), took, trunk, line
    except OSError as problem:
        print(repr(problem), file=sys.stderr)
        return 0, 0, None, None


def hold():
    held, refused = [], 0
    for _ in range(100):
        try:
            trunk = Trunk(arena, "127.0.5.1", tcp=True)
            trunk.send(trunk.request("OPTIONS"))
            held.append(trunk)
        except OSError:
            refused += 1
    time.sleep(0.5)
    begin = time.monotonic()
    left = still_open(held)
    figures = {"held": left}
    figures["guest_in"], figures["guest_ms"], _, _ = guest_call("127.0.5.2", True)
    trunk = Trunk(arena, "127.0.0.1", tcp=True)
    figures["trunk_in"] = 1 if trunk.ask(trunk.request("OPTIONS"))[0] == 200 else 0
    trunk.close()
    while time.monotonic() - begin < options.seconds:
        time.sleep(0.2)
    figures["held_end"] = still_open(held)
    for one in held:
        one.close()
    return figures


def still_open(trunks):
    left = 0
    for one in trunks:
        one.socket.settimeout(0)
        try:
            while one.socket.recv(65536):
                pass
        except BlockingIOError:
            left += 1
        except OSError:
            pass
    return left


def replay():
    figures = {"replays": 0, "let_in": 0}
    figures["guest_in"], _, trunk, line = guest_call("127.0.5.3", False)
    if not line:
        return figures
    # The same line again: from its own address, from another one, with a higher count that nobody signed, for another method.
    other = Trunk(arena, "127.0.5.4")
    raised = re.sub(r"nc=\w+", "nc=00000002", line)
    nonce = re.sub(r'nonce="[^"]*"', 'nonce="' + base64.b64encode(os.urandom(24)).decode() + '"', line)
    for sender, header_line in ((trunk, line), (other, line), (trunk, raised), (other, raised), (trunk, nonce)):
        code, _ = invite_with(sender, header_line, f"replay-{uuid.uuid4().hex[:8]}@x")
        figures["replays"] += 1
        figures["let_in"] += 1 if code not in (0, 401, 403) else 0
    return figures


report(**(replay() if options.replay else hold()))
