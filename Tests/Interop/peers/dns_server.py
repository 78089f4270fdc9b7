"""A name server on loopback over UDP and TCP, for one zone file: a JSON object of name -> list of "TTL TYPE VALUE".

Commands on standard input: `dead` (answers nothing), `broken` (SERVFAIL), `alive`, `reload` (reads the file again), `failing:NAPTR,SRV` (SERVFAIL
for these types) and `dropping:NAPTR,SRV` (no answer for these).
"""
import argparse
import json
import socket
import sys
import threading

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--zone", required=True)
arguments = parser.parse_args()
state = {"mode": "alive", "types": [], "zone": {}}


def load():
    with open(arguments.zone) as file:
        state["zone"] = {name.lower(): rows for name, rows in json.load(file).items()}


def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def answer(query):
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.RA | dns.flags.AA
    question = query.question[0]
    kind = dns.rdatatype.to_text(question.rdtype)
    name = question.name.to_text(omit_final_dot=True).lower()
    say("asked", name=name, type=kind)
    if state["mode"] == "dropping" and kind in state["types"]:
        say("ignored")
        return None
    if state["mode"] == "broken" or state["mode"] == "failing" and kind in state["types"]:
        reply.set_rcode(dns.rcode.SERVFAIL)
        return reply
    rows = state["zone"].get(name)
    if rows is None:
        reply.set_rcode(dns.rcode.NXDOMAIN)
        return reply
    for row in rows:
        ttl, rdtype, value = row.split(" ", 2)
        if rdtype == kind:
            found = reply.find_rrset(
                reply.answer, question.name, dns.rdataclass.IN, question.rdtype, create=True)
            found.add(dns.rdata.from_text("IN", rdtype, value), int(ttl))
    return reply


def commands():
    for line in sys.stdin:
        word = line.strip()
        if word == "reload":
            load()
        elif word:
            state["mode"], _, types = word.partition(":")
            state["types"] = types.split(",")
        say("mode", mode=word)


load()
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((arguments.address, arguments.port))
threading.Thread(target=commands, daemon=True).start()
say("listening")
while True:
    data, peer = server.recvfrom(4096)
    if state["mode"] == "dead":
        say("ignored")
        continue
    try:
        reply = answer(dns.message.from_wire(data))
        if reply is not None:
            server.sendto(reply.to_wire(), peer)
    except Exception as error:  # what is no question gets no answer
        say("bad", error=str(error))
