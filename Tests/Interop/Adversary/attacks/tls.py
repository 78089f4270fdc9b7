"""Old versions, suites without AEAD, renegotiation, and TLS where none is spoken."""
import subprocess
from common import *

options, arena, chance = arguments()


def offers(port, *arguments):
    """True if a handshake with these arguments of openssl s_client comes to an end."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *arguments], input=b"", capture_output=True, timeout=10)
    return b"Cipher is (NONE)" not in done.stdout and b"BEGIN CERTIFICATE" in done.stdout


def renegotiates(port):
    client = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2", "-msg"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(0.5)
    try:
        client.stdin.write(b"R\n")
        client.stdin.flush()
        time.sleep(0.7)
    except OSError:
        pass
    client.terminate()
    text = client.communicate(timeout=5)[0]
    after = text.partition(b"RENEGOTIATING")[2]
    return b"ServerHello" in after


WEAK = [
    ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:@SECLEVEL=0"), ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384:@SECLEVEL=0"),
    ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0"), ("-tls1_2", "-cipher", "AES128-SHA:AES256-SHA:@SECLEVEL=0"),
    ("-tls1_2", "-cipher", "NULL:aNULL:@SECLEVEL=0"), ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), ("-tls1", "-cipher", "ALL:@SECLEVEL=0")]
STRONG = [("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"), ("-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"), ("-tls1_3",)]
ports = [arena.siptls] + ([arena.app] if arena.tls else [])
figures = {"weak": 0, "strong": 0, "strong_asked": len(STRONG) * len(ports), "renegotiated": 0}
for port in ports:
    for arguments_ in WEAK:
        if offers(port, *arguments_):
            figures["weak"] += 1
            print("weak:", port == arena.app, arguments_, file=sys.stderr)
    figures["strong"] += sum(1 for arguments_ in STRONG if offers(port, *arguments_))
    figures["renegotiated"] += 1 if renegotiates(port) else 0
# A TLS hello on the SIP TCP port is no SIP: closed at once, not after the time of a message.
stream = connect(("127.0.0.1", arena.sip))
began = time.monotonic()
send(stream, bytes.fromhex("16030100c8010000c40303") + os.urandom(194))
_, closed = read(stream, 5.0)
figures["plain_closed_ms"] = round((time.monotonic() - began) * 1000, 1) if closed else 9999
report(**figures)
