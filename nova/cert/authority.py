"""A certificate authority in a folder, laid out as openssl's ``ca`` has it (openssl-ca(1)).

``cacert.pem``, ``private/cakey.pem``, ``crl.pem``, ``index.txt``, ``serial`` and ``newcerts/<serial>.pem``. Each file
is written whole or not at all; the key is the first of them, so that whoever died in between finds it and goes on.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from nova.privileged.files import locked, write_whole

DAYS = datetime.timedelta(days=365)
LEFT = DAYS / 12  # what ends sooner is made again, by the same key: what was signed and handed out stays good
KEY_BITS = 2048
FIRST_SERIAL = 0x10

_WORDS = {"C": NameOID.COUNTRY_NAME, "ST": NameOID.STATE_OR_PROVINCE_NAME, "L": NameOID.LOCALITY_NAME,
          "O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "CN": NameOID.COMMON_NAME}

Clock = Callable[[], datetime.datetime]


class AuthorityFiles(NamedTuple):
    """Names below the authority's folder, as ``[DEFAULT]ca_file`` and its like say."""

    certificate: str = "cacert.pem"
    key: str = "private/cakey.pem"
    revoked: str = "crl.pem"


def now() -> datetime.datetime:
    """The time, with the zone UTC."""
    return datetime.datetime.now(datetime.UTC)


def name_of(subject: str) -> x509.Name:
    """From openssl's form, ``/C=US/O=NOVA ROOT``. ValueError: a word that no certificate has."""
    parts = [part.partition("=") for part in subject.strip("/").split("/")]
    unknown = [word for word, _equals, _value in parts if word not in _WORDS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no part of a certificate's subject; known are {', '.join(_WORDS)}")
    return x509.Name([x509.NameAttribute(_WORDS[word], value) for word, _equals, value in parts])


def private_text(key: rsa.RSAPrivateKey) -> str:
    """The key as unencrypted PEM, in OpenSSL's traditional form (``BEGIN RSA PRIVATE KEY``)."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                             serialization.NoEncryption()).decode()


class Authority:
    """One authority, its own root. Every method may be called by several processes at once."""

    def __init__(self, folder: Path, subject: str, files: AuthorityFiles | None = None, clock: Clock = now) -> None:
        self.folder, self.subject, self.files, self._clock = folder, subject, files or AuthorityFiles(), clock

    def ensure(self) -> None:
        """Make what is missing of it, and its certificate anew before it ends. OSError as it is."""
        with self._locked():
            for name in ("private", "newcerts", "certs", "crl", "reqs"):
                (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700 if name == "private" else 0o755)
            if not self._path(self.files.key).exists():
                self._keep_key(self.files.key, rsa.generate_private_key(65537, KEY_BITS))
            if self._ends_soon(self._path(self.files.certificate)):
                self._write(self.files.certificate, self._self_signed())
            if not (self.folder / "serial").exists():
                self._write("serial", f"{FIRST_SERIAL:02X}\n")
            if not (self.folder / "index.txt").exists():
                self._write("index.txt", "")
            self._renew_list()

    @property
    def certificate(self) -> str:
        """The authority's own certificate, PEM. OSError before :meth:`ensure` has made it."""
        return self._path(self.files.certificate).read_text()

    @property
    def has_key(self) -> bool:
        """Whether :meth:`ensure` was ever begun."""
        return self._path(self.files.key).exists()

    def decrypt(self, data: bytes) -> bytes:
        """What was encrypted for its certificate, RSA with PKCS#1 v1.5 padding. ValueError: it was not."""
        return self._key(self.files.key).decrypt(data, padding.PKCS1v15())

    def revoked(self) -> str:
        """The list of what was revoked, renewed when it is to end soon."""
        with self._locked():
            self._renew_list()
            return self._path(self.files.revoked).read_text()

    def server_pair(self, name: str, subject: str) -> tuple[str, str]:
        """(key, certificate) of a server of ours, ``<name>.key`` and ``<name>.crt``: a key for ever, and a certificate
        that lasts for a while yet."""
        self.ensure()
        with self._locked():
            key_file, certificate = f"{name}.key", self.folder / f"{name}.crt"
            if not (self.folder / key_file).exists():
                self._keep_key(key_file, rsa.generate_private_key(65537, KEY_BITS))
            if self._ends_soon(certificate):
                self._write(certificate.name, self._sign(self._key(key_file), subject))
            return (self.folder / key_file).read_text(), certificate.read_text()

    # -- inside, under the lock

    def _sign(self, key: rsa.RSAPrivateKey, subject: str) -> str:
        serial = int((self.folder / "serial").read_text(), 16)
        begin = self._clock()
        made = (x509.CertificateBuilder().subject_name(name_of(subject)).issuer_name(name_of(self.subject))
                .public_key(key.public_key()).serial_number(serial)
                .not_valid_before(begin).not_valid_after(begin + DAYS)
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .sign(self._key(self.files.key), hashes.SHA256()))
        text = made.public_bytes(serialization.Encoding.PEM).decode()
        self._write("serial", f"{serial + 1:02X}\n")  # first: a number is never given twice
        self._write(f"newcerts/{serial:02X}.pem", text)
        end = f"{begin + DAYS:%y%m%d%H%M%SZ}"
        before = (self.folder / "index.txt").read_text()
        self._write("index.txt", f"{before}V\t{end}\t\t{serial:02X}\tunknown\t{subject}\n")
        return text

    def _self_signed(self) -> str:
        key, name, begin = self._key(self.files.key), name_of(self.subject), self._clock()
        made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(begin + DAYS)
                .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                .sign(key, hashes.SHA256()))
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def _ends_soon(self, certificate: Path) -> bool:
        """Or is not there. ValueError: it is no certificate."""
        if not certificate.exists():
            return True
        return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc - self._clock() < LEFT

    def _renew_list(self) -> None:
        path, today = self._path(self.files.revoked), self._clock()
        if path.exists():
            ends = x509.load_pem_x509_crl(path.read_bytes()).next_update_utc
            if ends is not None and ends - today > LEFT:
                return
        made = (x509.CertificateRevocationListBuilder().issuer_name(name_of(self.subject))
                .last_update(today).next_update(today + DAYS).sign(self._key(self.files.key), hashes.SHA256()))
        self._write(self.files.revoked, made.public_bytes(serialization.Encoding.PEM).decode())

    def _key(self, name: str) -> rsa.RSAPrivateKey:
        key = serialization.load_pem_private_key(self._path(name).read_bytes(), password=None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key

    def _keep_key(self, name: str, key: rsa.RSAPrivateKey) -> None:
        write_whole(self._path(name), private_text(key), 0o600)

    def _write(self, name: str, text: str) -> None:
        write_whole(self._path(name), text, 0o644)

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return locked(self.folder / ".lock")
