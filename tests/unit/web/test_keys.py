"""Keys made and read: what a client can do with them, and what is refused."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

from nova import errors
from nova.web import keys


def openssh(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


ED25519 = openssh(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32))))  # the same in every worker


def test_made_ssh_key_is_a_pair() -> None:
    made = keys.make("ssh", "joe")
    private = serialization.load_pem_private_key(made.private_key.encode(), None)
    public = serialization.load_ssh_public_key(made.public_key.encode())
    assert private.public_key() == public
    assert made.public_key.endswith(" Generated-by-Nova\n")
    assert made.fingerprint == keys.fingerprint("ssh", made.public_key)


def test_made_certificate_is_of_the_user_and_its_key() -> None:
    made = keys.make("x509", "joe")
    certificate = x509.load_pem_x509_certificate(made.public_key.encode())
    private = serialization.load_pem_private_key(made.private_key.encode(), None)
    assert private.public_key() == certificate.public_key()
    certificate.verify_directly_issued_by(certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.OtherName)[0].value == b"\x0c\x0djoe@localhost"
    assert made.fingerprint == ":".join(f"{byte:02x}" for byte in certificate.fingerprint(hashes.SHA1()))
    signature = private.sign(b"x", padding.PKCS1v15(), hashes.SHA256())
    certificate.public_key().verify(signature, b"x", padding.PKCS1v15(), hashes.SHA256())


def test_made_certificate_of_a_long_user_id_holds_it_whole() -> None:
    user = "u" * 255
    certificate = x509.load_pem_x509_certificate(keys.make("x509", user).public_key.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    value = names.get_values_for_type(x509.OtherName)[0].value
    assert value == b"\x0c\x82\x01\x09" + f"{user}@localhost".encode()


def test_made_key_shows_nothing_of_itself() -> None:
    assert "PRIVATE" not in repr(keys.make("ssh", "joe"))


@pytest.mark.parametrize("line", [ED25519, f"{ED25519} joe@host", f"  {ED25519} a comment of words \n",
                                  openssh(ec.generate_private_key(ec.SECP256R1())), f"{ED25519} größe"])
def test_fingerprint_of_an_ssh_key_is_md5_of_its_blob(line: str) -> None:
    blob = base64.b64decode(line.split()[1])
    assert keys.fingerprint("ssh", line).replace(":", "") == hashlib.md5(blob, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("bad", [
    "", "ssh-ed25519", "ssh-rsa JUNK nova@ubuntu", "ssh-rsa AAAA joe", f"ssh-rsa {ED25519.split()[1]}",
    f"ssh-foo {ED25519.split()[1]}", f"{ED25519}\nssh-rsa AAAA", f"{ED25519[:-8]}", "-----BEGIN CERTIFICATE-----",
    ED25519.split()[1], f"{ED25519} x\0y", f"{ED25519} " + "x" * keys.LONGEST, "ssh-ed25519 " + "/" * 400])
def test_ssh_key_when_malformed_is_refused(bad: str) -> None:
    with pytest.raises(errors.server.KeypairBadKey):
        keys.fingerprint("ssh", bad)


@pytest.mark.parametrize("bad", ["", ED25519, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_certificate_when_malformed_is_refused(bad: str) -> None:
    with pytest.raises(errors.server.KeypairBadKey):
        keys.fingerprint("x509", bad)
