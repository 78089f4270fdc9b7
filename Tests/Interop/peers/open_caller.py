"""An app that opens sealed callers (RFC 9180, base mode, X25519, HKDF-SHA256, AES-128-GCM), written from
docs/design/devices-and-push.md alone.

Prints its public key, reads push payloads line by line, prints what it opened or why it could not.
"""
import base64
import hashlib
import hmac
import json
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEM, SUITE = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x01"


def extract(salt, label, text, suite):
    return hmac.new(salt or bytes(32), b"HPKE-v1" + suite + label + text, hashlib.sha256).digest()


def expand(key, label, info, length, suite):
    text = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.new(key, text + b"\x01", hashlib.sha256).digest()[:length]


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


own = X25519PrivateKey.generate()
public = own.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
say("key", key=base64.urlsafe_b64encode(public).rstrip(b"=").decode())
for line in sys.stdin:
    push = json.loads(line)
    sealed = base64.urlsafe_b64decode(push["enc"] + "=" * (-len(push["enc"]) % 4))
    once, text = sealed[:32], sealed[32:]
    shared = own.exchange(X25519PublicKey.from_public_bytes(once))
    secret = expand(extract(b"", b"eae_prk", shared, KEM), b"shared_secret", once + public, 32, KEM)
    context = b"\x00" + extract(b"", b"psk_id_hash", b"", SUITE) + extract(b"", b"info_hash", b"trunkline caller v1", SUITE)
    scheduled = extract(secret, b"secret", b"", SUITE)
    key, nonce = expand(scheduled, b"key", context, 16, SUITE), expand(scheduled, b"base_nonce", context, 12, SUITE)
    try:
        say("opened", **json.loads(AESGCM(key).decrypt(nonce, text, push["call"].encode())), length=len(text) - 16)
    except InvalidTag:
        say("refused", call=push["call"])
