"""Creation of users' key pairs, and validation of imported keys. Private keys are returned only to their requesters."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import struct
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from nova import errors, failures

SSH, X509 = "ssh", "x509"
RSA_BITS = 2048
COMMENT = "Generated-by-Nova"
LONGEST = 16384  # bytes of a public key; a 16384 bit RSA key has 2,800
CERTIFICATE_LIFE = datetime.timedelta(days=3650)
USER_PRINCIPAL_NAME = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")  # by which Windows finds a certificate's user

#: OpenSSH's key types, with the number of fields after the type's name in the binary form.
SSH_FIELDS = {
    "ssh-rsa": 2, "ssh-dss": 4, "ssh-ed25519": 1, "ecdsa-sha2-nistp256": 2, "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2, "sk-ssh-ed25519@openssh.com": 2, "sk-ecdsa-sha2-nistp256@openssh.com": 3}


@dataclass(frozen=True, repr=False)
class MadeKey:
    """A new key pair, as text. Its repr is empty, so that no log can contain the key."""

    public_key: str
    private_key: str
    fingerprint: str


def make(type: str, user_id: str) -> MadeKey:
    """Create a key pair of ``type``. Takes 0.1 to 1 s of CPU time: call it outside the event loop."""
    return _make_x509(user_id) if type == X509 else _make_ssh()


def fingerprint(type: str, public_key: str) -> str:
    """Return the fingerprint of an imported key: MD5 of an SSH key, SHA-1 of a certificate. Raises server.KeypairBadKey
    with the reason."""
    if len(public_key.encode()) > LONGEST:
        raise errors.server.KeypairBadKey(reason=f"it is longer than {LONGEST} bytes")
    return _certificate_fingerprint(public_key) if type == X509 else _ssh_fingerprint(public_key)


def _hex(digest: bytes) -> str:
    return digest.hex(":")


def _ssh_fingerprint(public_key: str) -> str:
    """Return the fingerprint of one line ``type base64 [comment]``."""
    line = public_key.strip()
    if "\n" in line or "\r" in line or "\0" in line:
        raise errors.server.KeypairBadKey(reason="an SSH public key is one line")
    words = line.split(None, 2)
    if len(words) < 2 or words[0] not in SSH_FIELDS:
        raise errors.server.KeypairBadKey(reason=f"an SSH public key begins with one of {', '.join(SSH_FIELDS)}, a "
                                          "blank, and base64 text")
    with failures.translated((binascii.Error, ValueError, struct.error),
            lambda _: errors.server.KeypairBadKey(reason="the part after its type is not a key in base64")):
        blob = base64.b64decode(words[1], validate=True)
        fields = _ssh_fields(blob)
    if fields[:1] != [words[0].encode()] or len(fields) != 1 + SSH_FIELDS[words[0]] or b"" in fields:
        raise errors.server.KeypairBadKey(reason=f"the part after its type is not a valid {words[0]} key")
    return _hex(hashlib.md5(blob, usedforsecurity=False).digest())


def _ssh_fields(blob: bytes) -> list[bytes]:
    """Return the length-prefixed fields of a key's binary form. Raises struct.error or ValueError if they do not fill
    it exactly."""
    fields, at = [], 0
    while at < len(blob):
        (length,) = struct.unpack_from(">I", blob, at)
        field = blob[at + 4:at + 4 + length]
        if len(field) != length:
            raise ValueError("truncated")
        fields.append(field)
        at += 4 + length
    return fields


def _certificate_fingerprint(text: str) -> str:
    with failures.translated(ValueError,
            lambda _: errors.server.KeypairBadKey(reason="it is not an X.509 certificate in PEM form")):
        certificate = x509.load_pem_x509_certificate(text.encode())
    return _hex(certificate.fingerprint(hashes.SHA1()))  # an identifier, not a proof


def _make_ssh() -> MadeKey:
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    line = f"{public.decode()} {COMMENT}\n"
    return MadeKey(line, _private_text(key), _ssh_fingerprint(line))


def _make_x509(user_id: str) -> MadeKey:
    """Create a self-signed certificate that authenticates ``user_id`` as a client."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64])])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5)).not_valid_after(now + CERTIFICATE_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(
            [x509.OtherName(USER_PRINCIPAL_NAME, _utf8_string(f"{user_id}@localhost"))]), critical=False)
        .sign(key, hashes.SHA256()))
    text = certificate.public_bytes(serialization.Encoding.PEM).decode()
    return MadeKey(text, _private_text(key), _certificate_fingerprint(text))


def _private_text(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                             serialization.NoEncryption()).decode()


def _utf8_string(text: str) -> bytes:
    """Return the DER encoding of an ASN.1 UTF8String."""
    data = text.encode()
    length = len(data).to_bytes((len(data).bit_length() + 7) // 8 or 1, "big")
    prefix = length if len(data) < 128 else bytes([0x80 | len(length)]) + length
    return b"\x0c" + prefix + data
