"""A backend that signs login tokens (RFC 7515, HS256) with nothing of ours: the claims come as JSON on the command line.

    sign_token.py KEY_FILE '{"sub": "carol", "dev": "phone", "trunkline": {"numbers": ["+15557000001"]}}'
"""

import base64, hashlib, hmac, json, sys, time


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


key = open(sys.argv[1], "rb").read().strip()
claims = {"aud": "trunkline", "exp": int(time.time()) + 3600} | json.loads(sys.argv[2])
message = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
print((message + b"." + encode(hmac.new(key, message, hashlib.sha256).digest())).decode())
