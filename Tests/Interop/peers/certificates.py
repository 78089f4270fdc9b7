"""Certificates of clients, for push services that ask for them.

    certificates.py FOLDER

Writes FOLDER/clients.pem, the authority, and of each client NAME.pem and NAME.key: good; expired; stranger, of another authority; mixed, whose
key is another's.
"""
import datetime, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

folder = sys.argv[1]
now = datetime.datetime.now(datetime.timezone.utc)


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(subject, key, issuer, issuer_key, days, is_authority=False):
    return (
        x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True).sign(issuer_key, hashes.SHA256()))


def write(path, data):
    with open(folder + "/" + path, "wb") as file:
        file.write(data)


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


authority, other = new_key(), new_key()
write("clients.pem", certificate("clients", authority, "clients", authority, 10, True).public_bytes(serialization.Encoding.PEM))
for client, issuer, issuer_key, days in [
    ("good", "clients", authority, 90), ("expired", "clients", authority, -1), ("stranger", "others", other, 90), ("mixed", "clients", authority, 90)]:
    key = new_key()
    write(client + ".pem", certificate("VoIP Services: " + client, key, issuer, issuer_key, days).public_bytes(serialization.Encoding.PEM))
    write(client + ".key", pem(new_key() if client == "mixed" else key))
