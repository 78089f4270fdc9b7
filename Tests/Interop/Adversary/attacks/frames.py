"""Frames that are no messages, as fast as one socket takes them, and frames that RFC 6455 forbids."""
from common import *

FORBIDDEN = {
    "unmasked": (lambda: frame(b'{"t":"ping"}', masked=False), {1002}),
    "unmasked ping": (lambda: frame(b"", 9, masked=False), {1002}),
    "reserved bit 1": (lambda: frame(b"{}", reserved=4), {1002}),
    "reserved bit 3": (lambda: frame(b"{}", reserved=1), {1002}),
    "opcode 3": (lambda: frame(b"", 3), {1002}),
    "opcode 11": (lambda: frame(b"", 11), {1002}),
    "fragmented ping": (lambda: frame(b"", 9, fin=False), {1002}),
    "ping of 126": (lambda: frame(b"x" * 126, 9), {1002}),
    "continuation of nothing": (lambda: frame(b"{}", 0), {1002}),
    "text inside a message": (lambda: frame(b"{", 1, fin=False) + frame(b"}", 1), {1002}),
    "binary": (lambda: frame(b"\x00\x01", 2), {1003}),
    "no UTF-8": (lambda: frame(b'{"t":"\xff\xfe"}'), {1007}),
    "overlong UTF-8": (lambda: frame(b'{"t":"\xc0\xaf"}'), {1007}),
    "no JSON": (lambda: frame(b"hello"), {1007}),
    "too long": (lambda: frame(b" " * 70_000), {1009}),
    "says 2^63": (lambda: frame(b"x", length=2**63), {1002, 1009}),
    "says 2^62": (lambda: frame(b"x", length=2**62), {1009}),
    "says 100,000": (lambda: frame(b"x", length=100_000), {1009}),
    "too long in pieces": (lambda: frame(b" " * 40_000, 1, fin=False) + frame(b" " * 40_000, 0), {1009}),
    "close without a whole code": (lambda: frame(b"\x03", 8), {1002}),
    "close 1005": (lambda: frame(b"\x03\xed", 8), {1002}),
    "close 999": (lambda: frame(b"\x03\xe7", 8), {1002}),
    "close with no UTF-8": (lambda: frame(b"\x03\xe8\xff", 8), {1002, 1007}),
}
# Octets of a frame repeated: what is sent in `--seconds` is bounded by the socket alone.
FLOODS = {
    "empty": (frame(b"", 1, fin=False), frame(b"", 0, fin=False)),
    "ping": (b"", frame(b"", 9)), "pong": (b"", frame(b"", 10)),
    "octets": (frame(b"{", 1, fin=False), frame(b" ", 0, fin=False)),
}


def open_socket(logged_in, device):
    if logged_in:
        return log_in(arena, device=device, source=arena.stranger())[:2]
    return web_socket(arena, arena.stranger())


def forbidden():
    for logged_in in (False, True):
        for name, (make, codes) in FORBIDDEN.items():
            try:
                stream, frames = open_socket(logged_in, "frames")
            except OSError:
                figures["unreached"] += 1
                continue
            send(stream, make())
            code = frames.close_code(3.0)
            figures["forbidden"] += 1
            # A refusal of the first message may come before that of the frame.
            if code is None:
                figures["borne"] += 1
                print("borne:", name, logged_in, file=sys.stderr)
            elif code not in codes | {4001, 1006}:
                figures["wrong_code"] += 1
                print("code:", name, code, file=sys.stderr)
            stream.close()


def flood(name, logged_in):
    """(seconds until it was closed or the time was over, closed with 1008 or 1009, frames sent)"""
    first, again = FLOODS[name]
    try:
        stream, frames = open_socket(logged_in, "flood")
    except OSError:
        figures["unreached"] += 1
        return 0, False, 0
    block, sent, begin, cut = again * 20_000, 0, time.monotonic(), False
    send(stream, first)
    stream.setblocking(False)
    rest = block
    while time.monotonic() - begin < options.seconds and not cut:
        # TLS may want to read before it writes, and pongs fill what we do not read.
        select.select([stream], [stream], [], 0.1)
        try:
            count = stream.send(rest)
            sent += count / len(again)
            rest = rest[count:] + block[: count] if count < len(rest) else block
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError:
            cut = True
        try:
            part = stream.recv(65536)
            frames.data = (frames.data + part)[-200_000:]
            cut = cut or not part
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            cut = True
    took = time.monotonic() - begin
    code = 1006
    # Pongs may stand before the close frame; it is the last thing.
    if len(frames.data) >= 4:
        for length in range(2, min(126, len(frames.data) - 1) + 1):
            at = len(frames.data) - length - 2
            if at >= 0 and frames.data[at] == 0x88 and frames.data[at + 1] == length:
                code = struct.unpack("!H", frames.data[at + 2 : at + 4])[0]
    stream.close()
    return took, (cut and code in (1008, 1009)), int(sent)


options, arena, chance = arguments(("--floods", {"default": ",".join(FLOODS)}), ("--no-floods", {"action": "store_true"}))
figures = {"forbidden": 0, "borne": 0, "wrong_code": 0, "unreached": 0, "longest_s": 0.0, "unclosed": 0, "sent_most": 0}
if options.no_floods:
    forbidden()
else:
    for name in options.floods.split(","):
        for logged_in in (False, True):
            if not arena.alive():
                break
            took, closed, sent = flood(name, logged_in)
            figures["longest_s"] = round(max(figures["longest_s"], took), 2)
            figures["unclosed"] += 0 if closed else 1
            figures["sent_most"] = max(figures["sent_most"], sent)
            if not closed:
                print("unclosed:", name, logged_in, round(took, 2), sent, file=sys.stderr)
figures["crashed"] = 0 if arena.alive() else 1
figures["spin"] = arena.spinning()
report(**figures)
