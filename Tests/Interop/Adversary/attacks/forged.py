"""Datagrams in the carrier's name, which only the network could keep out: without the secrets of a dialog they end and change nothing.

BYE, CANCEL, re-INVITE, ACK, PRACK and responses with guessed identifiers, RTP with guessed SSRCs from the carrier's address, for --seconds.
Needs CAP_NET_RAW.
"""
from common import *

options, arena, chance = arguments(("--rate", {"type": float, "default": 2_000}))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


def datagram(source, port, data):
    udp_head = struct.pack("!HHHH", source[1], port, 8 + len(data), 0)
    total = 28 + len(data)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, chance.randrange(65536), 0, 64, 17, 0, socket.inet_aton(source[0]), socket.inet_aton("127.0.0.1"))
    return head + udp_head + data


def text(method, number):
    ident, tag = uuid.UUID(int=chance.getrandbits(128)).hex, chance.randbytes(4).hex()
    lines = [
        f"{method} sip:trunkline@127.0.0.1:{arena.sip} SIP/2.0", f"Via: SIP/2.0/UDP 127.0.0.1:{arena.carrier};branch=z9hG4bK{tag};rport", f"From: <sip:1@127.0.0.1>;tag={tag}",
        f"To: <sip:2@127.0.0.1>;tag={tag[::-1]}", f"Call-ID: {ident}", f"CSeq: {number} {method}", "Max-Forwards: 70", "Content-Length: 0", "", ""]
    return "\r\n".join(lines).encode()


def response(code):
    tag = chance.randbytes(4).hex()
    lines = [
        f"SIP/2.0 {code} x", f"Via: SIP/2.0/UDP 127.0.0.1:{arena.sip};branch=z9hG4bK{tag}", f"From: <sip:1@127.0.0.1>;tag={tag}", f"To: <sip:2@127.0.0.1>;tag=x",
        f"Call-ID: {uuid.UUID(int=chance.getrandbits(128)).hex}", f"CSeq: 1 {chance.choice(['INVITE', 'BYE'])}", "Content-Length: 0", "", ""]
    return "\r\n".join(lines).encode()


carrier = ("127.0.0.1", arena.carrier)
packets = [datagram(carrier, arena.sip, text(method, number)) for method in ("BYE", "CANCEL", "ACK", "PRACK", "UPDATE", "INFO", "REFER") for number in (1, 2, 3)]
packets += [datagram(carrier, arena.sip, response(code)) for code in (100, 180, 200, 302, 401, 404, 481, 487, 503, 603)]


def one(index):
    try:
        raw.sendto(packets[index % len(packets)], ("127.0.0.1", 0))
    except OSError:
        figures["unsent"] += 1


figures = {"unsent": 0}
figures["sent"] = paced(options.rate, options.seconds, one)
figures["crashed"] = 0 if arena.alive() else 1
report(**figures)
