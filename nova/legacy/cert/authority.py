"""A certificate authority in a directory, with the layout of ``openssl ca`` (openssl-ca(1)).

The files are ``cacert.pem``, ``private/cakey.pem``, ``crl.pem``, ``index.txt``, ``serial``, ``newcerts/<serial>.pem``
and ``openssl.cnf``. Each file is written atomically; the key is written first, so that an interrupted creation can
continue. A serial number is consumed before it is used, and a revocation is in ``index.txt`` before ``crl.pem``.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from nova import errors
from nova.legacy.cert import index
from nova.legacy.cert.readable import text_of
from nova.privileged.files import locked, write_whole

LOG = logging.getLogger(__name__)

DAYS = datetime.timedelta(days=365)
LEFT = DAYS / 12  # a certificate that expires sooner is renewed with the same key: issued certificates stay valid
KEY_BITS = 2048
FIRST_SERIAL = 0x10
SERIAL, INDEX, CERTIFICATES, SETTINGS = "serial", "index.txt", "newcerts", "openssl.cnf"
NEVER_SIGNED = "/CN=revoked before it was signed"

_WORDS = {"C": NameOID.COUNTRY_NAME, "ST": NameOID.STATE_OR_PROVINCE_NAME, "L": NameOID.LOCALITY_NAME,
          "O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "CN": NameOID.COMMON_NAME}

Clock = Callable[[], datetime.datetime]


class AuthorityFiles(NamedTuple):
    """File names below the authority's directory, from ``[DEFAULT]ca_file`` and similar options."""

    certificate: str = "cacert.pem"
    key: str = "private/cakey.pem"
    revoked: str = "crl.pem"


class Reserved(NamedTuple):
    """A reserved serial number, with the start of the certificate's validity and its file."""

    serial: int
    begin: datetime.datetime
    path: Path

    @property
    def end(self) -> datetime.datetime:
        """The time at which the certificate expires."""
        return self.begin + DAYS


def now() -> datetime.datetime:
    """Return the current time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def name_of(subject: str) -> x509.Name:
    """Parse openssl's form of a subject, ``/C=US/O=NOVA ROOT``. Raises ValueError for an unknown attribute or an
    invalid value."""
    parts = [part.partition("=") for part in subject.strip("/").split("/")]
    unknown = [word for word, _equals, _value in parts if word not in _WORDS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a subject attribute; use {', '.join(_WORDS)}")
    return x509.Name([x509.NameAttribute(_WORDS[word], value) for word, _equals, value in parts])


def new_key() -> rsa.RSAPrivateKey:
    """Generate an RSA key, which takes a fraction of a second."""
    return rsa.generate_private_key(65537, KEY_BITS)


def private_text(key: rsa.RSAPrivateKey) -> str:
    """Return the key as unencrypted PEM, in OpenSSL's traditional form (``BEGIN RSA PRIVATE KEY``)."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                             serialization.NoEncryption()).decode()


def for_openssl(files: AuthorityFiles) -> str:
    """Return the text of ``openssl.cnf``, for operators that run ``openssl ca`` in the directory. nova never reads it.
    """
    return f"""[ca]
default_ca = nova
[nova]
dir = .
database = $dir/{INDEX}
serial = $dir/{SERIAL}
new_certs_dir = $dir/{CERTIFICATES}
certificate = $dir/{files.certificate}
private_key = $dir/{files.key}
crl = $dir/{files.revoked}
unique_subject = no
default_md = sha256
default_days = {DAYS.days}
default_crl_days = {DAYS.days}
policy = any
x509_extensions = user
[any]
countryName = optional
stateOrProvinceName = optional
localityName = optional
organizationName = optional
organizationalUnitName = optional
commonName = supplied
[user]
basicConstraints = critical, CA:FALSE
"""


class Authority:
    """A self-signed certificate authority. ``subject``: for its first certificate; it never changes.

    Safe for concurrent use by several processes. All methods raise OSError, and cert.Damaged for an unreadable file.
    """

    def __init__(self, folder: Path, subject: str, files: AuthorityFiles | None = None, clock: Clock = now) -> None:
        self.folder, self.subject, self.files, self._clock = folder, subject, files or AuthorityFiles(), clock

    def ensure(self) -> None:
        """Create the missing files, and renew the certificate before it expires."""
        with self._locked():
            for name in (CERTIFICATES, "certs", "crl", "reqs"):
                self._path(name).mkdir(exist_ok=True, mode=0o755)
            self._path(self.files.key).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self._path(self.files.key).exists():
                self._keep_key(self.files.key, new_key())
            self._keep_private()
            if self._ends_soon(self.files.certificate):
                self._write(self.files.certificate, self._self_signed())
            if not self._path(INDEX).exists():
                self._write(INDEX, "")
            if not self._path(SETTINGS).exists():
                self._write(SETTINGS, for_openssl(self.files))
            if not self._path(SERIAL).exists():
                self._write(SERIAL, f"{max(self._index(), default=FIRST_SERIAL - 1) + 1:02X}\n")
            if self._list_ends_soon():
                self._write_list(self._revoked_entries())

    @property
    def certificate(self) -> str:
        """The authority's own certificate, PEM. Raises OSError before :meth:`ensure` has created it."""
        return self._path(self.files.certificate).read_text()

    @property
    def has_key(self) -> bool:
        """True if :meth:`ensure` has created the key."""
        return self._path(self.files.key).exists()

    def decrypt(self, data: bytes) -> bytes:
        """Decrypt data encrypted for the authority's certificate, RSA with PKCS#1 v1.5 padding. Raises ValueError."""
        return self._key(self.files.key).decrypt(data, padding.PKCS1v15())

    def revoked(self) -> str:
        """Return the revocation list, PEM; renews it if it expires soon or lacks revocations in ``index.txt``."""
        with self._locked():
            self._renew_list()
            return self._path(self.files.revoked).read_text()

    def reserve(self) -> Reserved:
        """Reserve a serial number for :meth:`issue`; it need not be used."""
        with self._locked():
            return self._reserve()

    def issue(self, number: Reserved, subject: str, key: rsa.RSAPublicKey) -> str:
        """Issue a certificate, write it to its file and ``index.txt``, and return it in openssl's text form with PEM.

        Raises cert.Revoked if the number was revoked meanwhile, ValueError for an invalid subject.
        """
        with self._locked():
            return self._issue(number, subject, key)

    def revoke(self, serials: Collection[int]) -> None:
        """Revoke serial numbers in ``index.txt``, then in the revocation list.

        A number without a certificate can never be issued afterwards. Earlier revocations keep their time. Idempotent.
        """
        with self._locked():
            entries, today = self._index(), self._clock()
            for serial in serials:
                entry = entries.get(serial, index.IndexEntry(index.VALID, index.stamp(today + DAYS), "", serial,
                                                        NEVER_SIGNED))
                if entry.status != index.REVOKED:
                    entries[serial] = entry._replace(status=index.REVOKED, revoked=index.stamp(today))
            self._write(INDEX, index.written(entries))
            self._renew_list()

    def server_pair(self, name: str, subject: str) -> tuple[str, str]:
        """Return (key, certificate) of one of nova's servers, from ``<name>.key`` and ``<name>.crt``.

        The key is created once; the certificate is renewed before it expires.
        """
        self.ensure()
        with self._locked():
            key_file, certificate = f"{name}.key", f"{name}.crt"
            if not self._path(key_file).exists():
                self._keep_key(key_file, new_key())
            if self._ends_soon(certificate):
                signed = self._issue(self._reserve(), subject, self._key(key_file).public_key())
                self._write(certificate, signed[signed.index("-----BEGIN"):])
            return self._path(key_file).read_text(), self._path(certificate).read_text()

    # -- private, under the lock

    def _reserve(self) -> Reserved:
        with self._readable(SERIAL):
            written = int(self._path(SERIAL).read_text(), 16)
        # no number is used twice, even if the file is from an older backup or was edited
        serial = max(written, max(self._index(), default=0) + 1)
        self._write(SERIAL, f"{serial + 1:02X}\n")  # first: after a crash the number stays consumed
        return Reserved(serial, self._clock().replace(microsecond=0), self._path(CERTIFICATES) / f"{serial:02X}.pem")

    def _issue(self, number: Reserved, subject: str, key: rsa.RSAPublicKey) -> str:
        entries = self._index()
        if number.serial in entries:
            raise errors.cert.Revoked
        made = (x509.CertificateBuilder().subject_name(name_of(subject)).issuer_name(self._name())
                .public_key(key).serial_number(number.serial)
                .not_valid_before(number.begin).not_valid_after(number.end)
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .sign(self._key(self.files.key), hashes.SHA256()))
        text = text_of(made)
        self._write(f"{CERTIFICATES}/{number.path.name}", text)
        entries[number.serial] = index.IndexEntry(index.VALID, index.stamp(number.end), "", number.serial, subject)
        self._write(INDEX, index.written(entries))
        return text

    def _self_signed(self) -> str:
        key, name, begin = self._key(self.files.key), self._name(), self._clock()
        made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(begin + DAYS)
                .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                .sign(key, hashes.SHA256()))
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def _name(self) -> x509.Name:
        """Return the subject of the existing certificate, else the configured one.

        Changed options therefore do not invalidate issued certificates.
        """
        if not self._path(self.files.certificate).exists():
            return name_of(self.subject)
        return self._certificate(self.files.certificate).subject

    def _ends_soon(self, name: str) -> bool:
        """Return whether a certificate expires soon or does not exist."""
        if not self._path(name).exists():
            return True
        return self._certificate(name).not_valid_after_utc - self._clock() < LEFT

    def _renew_list(self) -> None:
        entries = self._revoked_entries()
        if self._list_ends_soon() or {one.serial for one in entries} != {one.serial_number for one in self._list()}:
            self._write_list(entries)

    def _list_ends_soon(self) -> bool:
        """Return whether the revocation list expires soon or does not exist."""
        if not self._path(self.files.revoked).exists():
            return True
        ends = self._list().next_update_utc
        return ends is None or ends - self._clock() < LEFT

    def _write_list(self, entries: Collection[index.IndexEntry]) -> None:
        today = self._clock()
        revoked = [x509.RevokedCertificateBuilder().serial_number(entry.serial)
                   .revocation_date(entry.revoked_at).build() for entry in entries]
        made = (x509.CertificateRevocationListBuilder(revoked_certificates=revoked).issuer_name(self._name())
                .last_update(today).next_update(today + DAYS).sign(self._key(self.files.key), hashes.SHA256()))
        self._write(self.files.revoked, made.public_bytes(serialization.Encoding.PEM).decode())

    # -- files

    def _revoked_entries(self) -> list[index.IndexEntry]:
        return [entry for entry in self._index().values() if entry.status == index.REVOKED]

    def _index(self) -> dict[int, index.IndexEntry]:
        with self._readable(INDEX):
            return index.read(self._path(INDEX).read_text())

    def _list(self) -> x509.CertificateRevocationList:
        with self._readable(self.files.revoked):
            return x509.load_pem_x509_crl(self._path(self.files.revoked).read_bytes())

    def _certificate(self, name: str) -> x509.Certificate:
        with self._readable(name):
            return x509.load_pem_x509_certificate(self._path(name).read_bytes())

    def _key(self, name: str) -> rsa.RSAPrivateKey:
        with self._readable(name):
            key = serialization.load_pem_private_key(self._path(name).read_bytes(), password=None)
            if not isinstance(key, rsa.RSAPrivateKey):
                raise ValueError("it is not an RSA key")
            return key

    @contextlib.contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError) as error:  # TypeError: a key with a password
            LOG.error("%s is damaged: %s", self._path(name), error)
            raise errors.cert.Damaged(file=name, reason=str(error).partition(". ")[0].rstrip(".")) from None

    def _keep_private(self) -> None:
        """Remove other users' access to the key. They may already have read it."""
        key = self._path(self.files.key)
        for path, mode in ((key, 0o600), (key.parent, 0o700)):
            if path != self.folder and path.stat().st_mode & 0o077:
                LOG.warning("%s was open to other users; changed its mode to %o", path, mode)
                path.chmod(mode)

    def _keep_key(self, name: str, key: rsa.RSAPrivateKey) -> None:
        write_whole(self._path(name), private_text(key), 0o600, durable=True)

    def _write(self, name: str, text: str) -> None:
        write_whole(self._path(name), text, 0o644, durable=True)

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return locked(self.folder / ".lock")
