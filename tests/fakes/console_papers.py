"""A test's own certificate authority, for consoles over TLS."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


class Files(NamedTuple):
    cert: str
    key: str


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    path.chmod(0o600)
    return str(path)


class Authority:
    """Certificate authority that writes files below ``folder``. ``ca``: its own certificate."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name = folder, _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        made = (self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
                .add_extension(usage, True).sign(self._key, hashes.SHA256()))
        self.ca = _write(folder / "ca-cert.pem", made.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        ours = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + DAY)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
                .add_extension(ours, False))  # required by Python since 3.13

    def issue(self, name: str, server: bool = False) -> Files:
        """Issue a certificate, as ``<name>-cert.pem`` and ``<name>-key.pem``."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        signs = x509.KeyUsage(True, False, True, False, False, False, False, False, False)
        made = (self._builder(_name(name), key).add_extension(x509.BasicConstraints(False, None), True)
                .add_extension(signs, True).add_extension(x509.ExtendedKeyUsage([usage]), False)
                .add_extension(names, False).sign(self._key, hashes.SHA256()))
        cert = _write(self._folder / f"{name}-cert.pem", made.public_bytes(serialization.Encoding.PEM))
        plain = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                  serialization.NoEncryption())
        return Files(cert, _write(self._folder / f"{name}-key.pem", plain))
