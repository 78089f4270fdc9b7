"""The carrier's signalling: one UDP socket that places and takes calls, by RFC 3261 as far as a trunk on a good line needs it."""
import asyncio, re, uuid

HOST = "127.0.0.1"


class Dialog:
    """One call at the carrier: its SDP comes as `remote`; `ended` is done when either side has hung up."""

    def __init__(self, carrier, identifier):
        loop = asyncio.get_running_loop()
        self.carrier, self.id = carrier, identifier
        self.remote, self.answered, self.ended = None, loop.create_future(), loop.create_future()
        self.sequence = 1
        self.target = self.own = self.peer = None

    def hang_up(self):
        if self.ended.done():
            return
        self.sequence += 1
        self.carrier.send(f"BYE {self.target} SIP/2.0", self, f"{self.sequence} BYE", self.own, self.peer)
        self.ended.set_result("own")


class Carrier(asyncio.DatagramProtocol):
    def __init__(self, gateway_port, take):
        """`take(number)`: the SDP that answers a call to it, a coroutine."""
        self.gateway, self.take, self.dialogs = gateway_port, take, {}

    def connection_made(self, transport):
        self.transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def send(self, first, dialog, sequence, own, peer, body="", via=None):
        via = via or f"SIP/2.0/UDP {HOST}:{self.port};branch=z9hG4bK{uuid.uuid4().hex}"
        lines = [
            first, f"Via: {via}", "Max-Forwards: 70", f"From: {own}", f"To: {peer}", f"Call-ID: {dialog.id}", f"CSeq: {sequence}",
            f"Contact: <sip:carrier@{HOST}:{self.port}>"] + (["Content-Type: application/sdp"] if body else [])
        self.transport.sendto("\r\n".join(lines + [f"Content-Length: {len(body)}", "", body]).encode(), (HOST, self.gateway))

    def call(self, number, sdp):
        dialog = Dialog(self, uuid.uuid4().hex)
        self.dialogs[dialog.id] = dialog
        dialog.own = f"<sip:+15550009999@{HOST}>;tag={dialog.id[:8]}"
        dialog.target = f"sip:{number}@{HOST}:{self.gateway}"
        self.send(f"INVITE {dialog.target} SIP/2.0", dialog, "1 INVITE", dialog.own, f"<{dialog.target}>", sdp)
        return dialog

    def datagram_received(self, data, source):
        head, _, body = data.decode(errors="replace").partition("\r\n\r\n")
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        dialog = self.dialogs.get(fields["call-id"])
        if first.startswith("SIP/2.0"):
            self.answer(first, fields, body, dialog)
        elif first.startswith("INVITE") and dialog is None:
            asyncio.ensure_future(self.taken(fields, body))
        elif first.startswith(("BYE", "CANCEL", "OPTIONS", "UPDATE", "INFO")):
            self.reply("200 OK", fields, fields["to"])
            if first.startswith(("BYE", "CANCEL")) and dialog and not dialog.ended.done():
                dialog.ended.set_result("peer")

    def answer(self, first, fields, body, dialog):
        code = int(first.split()[1])
        if dialog is None or "INVITE" not in fields["cseq"] or code < 200:
            return
        if code < 300:
            dialog.target = re.search(r"<([^>]+)>", fields["contact"]).group(1)
        dialog.peer = fields["to"]
        via = fields["via"] if code >= 300 else None
        self.send(f"ACK {dialog.target} SIP/2.0", dialog, fields["cseq"].replace("INVITE", "ACK"), dialog.own, dialog.peer, via=via)
        if not dialog.answered.done():
            dialog.answered.set_result((code, body))

    async def taken(self, fields, body):
        dialog = self.dialogs[fields["call-id"]] = Dialog(self, fields["call-id"])
        self.reply("100 Trying", fields, fields["to"])
        dialog.own, dialog.peer = fields["to"] + f";tag={dialog.id[:8]}", fields["from"]
        dialog.target = re.search(r"<([^>]+)>", fields["contact"]).group(1)
        dialog.remote = body
        number = re.search(r"sip:([^@]+)@", fields["to"]).group(1)
        sdp = await self.take(number, dialog)
        self.reply("200 OK", fields, dialog.own, sdp)

    def reply(self, status, fields, to, body=""):
        lines = [f"SIP/2.0 {status}"] + [f"{name}: {fields[name.lower()]}" for name in ("Via", "From", "Call-ID", "CSeq")]
        lines += [f"To: {to}", f"Contact: <sip:carrier@{HOST}:{self.port}>"] + (["Content-Type: application/sdp"] if body else [])
        self.transport.sendto("\r\n".join(lines + [f"Content-Length: {len(body)}", "", body]).encode(), (HOST, self.gateway))


def description(port):
    """PCMU alone, with digits: what most carriers offer."""
    return (
        f"v=0\r\no=carrier 1 1 IN IP4 {HOST}\r\ns=-\r\nc=IN IP4 {HOST}\r\nt=0 0\r\nm=audio {port} RTP/AVP 0 101\r\n"
        "a=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\n")


def media_address(sdp):
    host = re.search(r"c=IN IP4 (\S+)", sdp).group(1)
    return host, int(re.search(r"m=audio (\d+)", sdp).group(1))
