"""The RPC service ``cert``: the cloud's authority, and one for each project that has a VPN or (with ``use_project_ca``)
a certificate.

The database row of a certificate is written before it is signed, and deleted after its number is in the revocation
list. So a kill in between may leave an extra row, which the next revocation removes, but never a certificate that
cannot be revoked.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from nova import concurrency, errors, failures
from nova.conf._options import Options
from nova.legacy.cert.authority import (
    CERTIFICATES,
    Authority,
    AuthorityFiles,
    Clock,
    name_of,
    new_key,
    now,
    private_text,
)
from nova.model.security.certificates import CertificateQuery, CertificateRecord, SignedCertificate, VpnCredentials
from nova.privileged.files import locked, write_whole
from nova.rpc.contracts.conductor import ConductorRPC

LOG = logging.getLogger(__name__)

ROOT_SUBJECT = "/O=NOVA ROOT/L=Mountain View/ST=California/C=US"
LONGEST_WORD = 64  # characters of a subject attribute (RFC 5280, ub-common-name)
SUBJECTS = {"user_cert_subject": 3, "project_cert_subject": 2}  # option -> number of %s placeholders
USUAL_WORD = "0" * 32  # the length of a Keystone id


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Convert OSError to cert.Files; only the log has the full path."""
    try:
        yield
    except OSError as error:
        LOG.error("cannot access the files of a certificate authority: %s", error)
        raise errors.cert.Files(reason=error.strerror or type(error).__name__) from None


class CertService:
    """The certificate service. ``options``: the group with ``ca_path`` and related options.

    Raises cert.Subject for an invalid subject option. All calls raise cert.Files, and cert.Damaged with the file name.
    """

    def __init__(self, options: Options, conductor: ConductorRPC, clock: Clock = now) -> None:
        self._options, self._conductor, self._clock, self._folder = options, conductor, clock, Path(options.ca_path)
        self._files = AuthorityFiles(options.ca_file, options.key_file, options.crl_file)
        for option, count in SUBJECTS.items():
            self._subject(option, *[USUAL_WORD] * (count - 1), _time(clock()))
        self.root = Authority(self._folder, ROOT_SUBJECT, self._files, clock)

    def start(self) -> None:
        """Create the root authority if it does not exist, and renew all authorities."""
        self.renew()

    @_explained()
    def renew(self) -> None:
        """Renew expiring files of all authorities, and complete interrupted changes.

        Files are renewed here because other programs may read them. A failure of one authority does not affect others.
        """
        self.root.ensure()
        self.root.revoked()
        for folder in sorted((self._folder / "projects").glob("*/")):
            with failures.best_effort(LOG, "the certificate authority in %s could not be renewed: %s", folder,
                    on=(errors.NovaError, OSError, ValueError), level=logging.ERROR):
                self._project(folder.name).revoked()

    @_explained()
    def fetch_ca(self, project_id: str) -> str:
        """Return the authority's certificate; creates the authority or renews the certificate first.

        Raises cert.Project if, with ``use_project_ca``, the id is not valid as a directory name.
        """
        return self._of(project_id).certificate

    @_explained()
    def fetch_crl(self, project_id: str) -> str:
        """Return the authority's revocation list; creates the authority or renews the list first if needed.

        Raises cert.Project if, with ``use_project_ca``, the id is not valid as a directory name.
        """
        return self._of(project_id).revoked()

    @_explained()
    def decrypt_text(self, project_id: str, text: str) -> str:
        """Decrypt base64 text encrypted for the authority's certificate.

        Raises cert.NoProject if the authority does not exist, which this call never creates; cert.Decryption for all
        other failures.
        """
        authority = self._present(project_id)
        # All failures raise the same error. OpenSSL 3.2 and later reject wrong padding implicitly: the result is random
        # bytes, which are almost never valid UTF-8. So neither the error nor its timing reveals to a tenant whether the
        # padding was right (Bleichenbacher's attack).
        with failures.replaced(ValueError, lambda _: errors.cert.Decryption()):
            return authority.decrypt(base64.b64decode(text, validate=True)).decode()

    @_explained()
    def generate_x509_cert(self, user_id: str, project_id: str) -> SignedCertificate:
        """Reserve a number, write its database row, then issue the certificate.

        Raises cert.Project as above, cert.Revoked if the user's certificates were revoked meanwhile, Unavailable if no
        conductor can write the row.
        """
        authority, key = self._of(project_id), concurrency.run_in_thread(new_key)
        number = authority.reserve()
        self._conductor.keep_certificate(CertificateRecord(
            user_id=user_id, project_id=project_id, file_name=str(number.path),
            ends_at=number.end.replace(tzinfo=None)))
        subject = self._subject("user_cert_subject", project_id, user_id, _time(number.begin))
        return SignedCertificate(certificate=authority.issue(number, subject, key.public_key()),
                                 private_key=private_text(key))

    @_explained()
    def revoke_certs_by_user(self, user_id: str) -> int:
        """Revoke a user's certificates in all projects; return their number."""
        return self._revoke(CertificateQuery(user_id=user_id))

    @_explained()
    def revoke_certs_by_project(self, project_id: str) -> int:
        """Revoke the certificates of all users in a project; return their number. Raises cert.NoProject."""
        return self._revoke(CertificateQuery(project_id=project_id)) or self._none_of(project_id)

    @_explained()
    def revoke_certs_by_user_and_project(self, user_id: str, project_id: str) -> int:
        """Revoke a user's certificates in a project; return their number. Raises cert.NoProject."""
        return (self._revoke(CertificateQuery(user_id=user_id, project_id=project_id))
                or self._none_of(project_id))

    @_explained()
    def vpn_credentials(self, project_id: str) -> VpnCredentials:
        """Return the credentials of a project's VPN server. Keys are created once, certificates renewed in time.

        Raises cert.Project if the id is not valid as a directory name.
        """
        authority = self._project(project_id)
        key, certificate = authority.server_pair("server", f"/C=US/O=OpenStack/CN={_word(f'vpn-{project_id}')}")
        return VpnCredentials(authority=authority.certificate, revoked=authority.revoked(), server_key=key,
                              server_certificate=certificate, public_key=self._login(project_id))

    # -- private

    def _login(self, project_id: str) -> str:
        """Return the public key of the SSH key pair in ``keys_path``, with which operators log in to the VPN server."""
        path = Path(self._options.keys_path) / f"{project_id}{self._options.vpn_key_suffix}.pem"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(path.parent / ".lock"):
            if not path.exists():
                write_whole(path, private_text(new_key()), 0o600, durable=True)
            with failures.replaced((ValueError, TypeError), lambda error: errors.cert.Damaged(file=path.name,
                    reason=str(error).partition(". ")[0].rstrip("."))):
                key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        return key.public_key().public_bytes(serialization.Encoding.OpenSSH,
                                             serialization.PublicFormat.OpenSSH).decode()

    def _revoke(self, query: CertificateQuery) -> int:
        """Revoke the certificates of a query page by page; each page's rows are deleted. Returns their number."""
        count = 0
        while found := self._conductor.list_certificates(query):
            by_folder: dict[Path, list[CertificateRecord]] = defaultdict(list)
            for one in found:
                by_folder[self._folder_of(one)].append(one)
            for folder, records in by_folder.items():
                self._revoke_in(folder, records)
            self._conductor.forget_certificates(tuple(one.file_name for one in found))
            count += len(found)
        return count

    def _revoke_in(self, folder: Path, records: list[CertificateRecord]) -> None:
        authority = self.root if folder == self._folder else self._at(folder.name)
        if not authority.has_key:  # its certificates are no longer trusted
            LOG.warning("the certificate authority in %s no longer exists; its %d certificates need no revocation",
                        folder, len(records))
            return
        authority.ensure()
        authority.revoke([int(Path(one.file_name).stem, 16) for one in records])
        LOG.info("revoked %d certificates of the certificate authority in %s", len(records), folder)

    def _folder_of(self, record: CertificateRecord) -> Path:
        """Return the authority's directory, also if ``ca_path`` was different when the certificate was signed."""
        path = Path(record.file_name)
        if path.parent.name != CERTIFICATES or not re.fullmatch(r"[0-9A-F]+", path.stem):
            raise errors.cert.Damaged(file=record.file_name, reason="a row of the table certificates refers to it, but "
                                      "it is not a certificate file")
        folder = path.parent.parent
        if folder.name == record.project_id and folder.parent.name == "projects":
            return self._folder / "projects" / folder.name
        return self._folder

    def _none_of(self, project_id: str) -> int:
        """Return 0, since nothing was revoked. Raises cert.NoProject if the authority does not exist."""
        self._present(project_id)
        return 0

    def _of(self, project_id: str) -> Authority:
        if self._options.use_project_ca:
            return self._project(project_id)
        self.root.ensure()  # its certificate may have expired since the start
        return self.root

    def _present(self, project_id: str) -> Authority:
        """Return an existing authority. Raises cert.NoProject."""
        authority = self._at(project_id) if self._options.use_project_ca else self.root
        if not authority.has_key:
            raise errors.cert.NoProject(project_id=project_id)
        return authority

    def _project(self, project_id: str) -> Authority:
        authority = self._at(project_id)
        authority.ensure()
        return authority

    def _at(self, project_id: str) -> Authority:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", project_id):  # it becomes a directory name
            raise errors.cert.Project(project_id=project_id)
        subject = self._subject("project_cert_subject", project_id, _time(self._clock()))
        return Authority(self._folder / "projects" / project_id, subject, self._files, self._clock)

    def _subject(self, option: str, *words: str) -> str:
        """Return the option's subject with the words filled in.

        Characters that would end an attribute or a line of ``index.txt`` become ``_``. Raises cert.Subject.
        """
        value = str(getattr(self._options, option))
        with failures.replaced((ValueError, TypeError),
                lambda error: errors.cert.Subject(option=option, value=value, reason=error)):
            made = value % tuple(re.sub(r"[^A-Za-z0-9_.:@-]", "_", word) for word in words)
            name_of(made)
        return made


def _word(text: str) -> str:
    return text[:LONGEST_WORD]


def _time(when: datetime.datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
