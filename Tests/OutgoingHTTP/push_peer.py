"""A push service on HTTP/2 over TLS that nobody here wrote the protocol of: hyper's h2.

    push_peer.py FOLDER KEY.pem [CLIENTS.pem]

Makes FOLDER/cert.pem and serves on a free port of 127.0.0.1; prints the port, then a JSON line for each request. What it answers stands in the
device token's first three digits: 200, 410, 503, …; 999 closes the connection with GOAWAY in place of an answer, 888 never answers,
777 answers 200 with a body that is no JSON, 666 answers 503 once four such wait on a connection. With CLIENTS.pem only clients with a certificate of those authorities are let in.

It is a browser's push service too: FOLDER/subscription.json is a subscription of its own, and what is sent there is opened with the
subscription's key (RFC 8291, with the primitives of the package cryptography) and its VAPID token is checked (RFC 8292).
"""
import asyncio, base64, datetime, ipaddress, json, os, ssl, sys

import h2.config, h2.connection, h2.events, h2.exceptions
import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import NameOID

REASONS = {400: "BadDeviceToken", 403: "InvalidProviderToken", 410: "Unregistered", 413: "PayloadTooLarge", 429: "TooManyRequests", 500: "InternalServerError", 503: "ServiceUnavailable"}


def certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    )
    with open(folder + "/cert.pem", "wb") as file:
        file.write(made.public_bytes(serialization.Encoding.PEM))
    with open(folder + "/key.pem", "wb") as file:
        file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


class Subscription:
    """What a browser keeps of a subscription, and does with a message for it."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.secret = os.urandom(16)

    def write(self, folder, port):
        keys = {"p256dh": base64url(point(self.key.public_key())), "auth": base64url(self.secret)}
        with open(folder + "/subscription.json", "w") as file:
            json.dump({"endpoint": f"https://127.0.0.1:{port}/push/201", "keys": keys}, file)

    def opened(self, body):
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, text = body[21 : 21 + length], body[21 + length :]
        assert len(text) <= size
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))

        def derived(salt, secret, info, length):
            return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)

        secret = derived(self.secret, shared, b"WebPush: info\0" + point(self.key.public_key()) + sender, 32)
        key = derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = derived(salt, secret, b"Content-Encoding: nonce\0", 12)
        clear = AESGCM(key).decrypt(nonce, text, None).rstrip(b"\0")
        assert clear.endswith(b"\2"), "the last record"
        return clear[:-1].decode()

    def checked(self, headers, public_key):
        """The claims of the VAPID token, if the key it names is the one that the page subscribed with."""
        parts = dict(part.strip().split("=", 1) for part in headers["authorization"].removeprefix("vapid ").split(","))
        named = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(parts["k"]))
        if point(named) != point(public_key):
            return {"error": "another key"}
        return jwt.decode(parts["t"], named, algorithms=["ES256"], audience="https://" + headers[":authority"])


class Peer(asyncio.Protocol):
    connections = 0
    subscription = Subscription()

    def __init__(self, public_key):
        self.public_key = public_key
        self.requests = {}
        self.held = []

    def connection_made(self, transport):
        Peer.connections += 1
        self.number = Peer.connections
        self.transport = transport
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        transport.write(self.h2.data_to_send())

    def data_received(self, data):
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError:
            self.transport.close()
            return
        for event in events:
            if isinstance(event, h2.events.RequestReceived):
                self.requests[event.stream_id] = (dict(event.headers), bytearray())
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id][1].extend(event.data)
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.answer(event.stream_id, *self.requests.pop(event.stream_id))
        self.transport.write(self.h2.data_to_send())

    def answer(self, stream, headers, body):
        if headers[":path"].startswith("/push/"):
            return self.answer_browser(stream, headers, body)
        token = headers.get("authorization", "").partition(" ")[2]
        try:
            claims = jwt.decode(token, self.public_key, algorithms=["ES256"], options={"verify_aud": False})
        except jwt.PyJWTError as error:
            claims = {"error": str(error)}
        client = dict(entry[0] for entry in (self.transport.get_extra_info("peercert") or {}).get("subject", ()))
        line = {"connection": self.number, "client": client.get("commonName"), "path": headers[":path"], "headers": headers, "claims": claims, "body": body.decode("utf-8", "replace")}
        print(json.dumps(line), flush=True)
        kind = int(headers[":path"].rsplit("/", 1)[1][:3])
        if kind == 999:
            self.h2.close_connection(additional_data=b'{"reason":"Shutdown"}')
            self.transport.write(self.h2.data_to_send())
            self.transport.close()
            return
        if kind == 888:
            return
        if kind == 666:
            self.held.append((stream, headers))
            if len(self.held) == 4:
                for stream, headers in self.held:
                    self.respond(stream, headers, 503)
                self.held = []
            return
        self.respond(stream, headers, kind)

    def respond(self, stream, headers, kind):
        status = 200 if kind == 777 else kind
        out = b"<html>" if kind == 777 else b""
        if kind in REASONS:
            out = json.dumps({"reason": REASONS[kind], "timestamp": 1700000000123}).encode()
        self.h2.send_headers(stream, [(":status", str(status)), ("apns-id", headers.get("apns-id", ""))], end_stream=not out)
        if out:
            self.h2.send_data(stream, out, end_stream=True)

    def answer_browser(self, stream, headers, body):
        try:
            text, claims = self.subscription.opened(bytes(body)), self.subscription.checked(headers, self.public_key)
        except Exception as error:
            text, claims = "", {"error": repr(error)}
        print(json.dumps({"connection": self.number, "path": headers[":path"], "headers": headers, "claims": claims, "body": text}), flush=True)
        status = 400 if "error" in claims else int(headers[":path"].rsplit("/", 1)[1][:3])
        self.h2.send_headers(stream, [(":status", str(status))], end_stream=True)


async def main(folder, key_file, clients=None):
    certificate(folder)
    with open(key_file, "rb") as file:
        public_key = serialization.load_pem_private_key(file.read(), None).public_key()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
    context.set_alpn_protocols(["h2"])
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    server = await asyncio.get_running_loop().create_server(lambda: Peer(public_key), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    Peer.subscription.write(folder, port)
    print(port, flush=True)
    # Ends with its parent, whatever becomes of that.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main(*sys.argv[1:]))
