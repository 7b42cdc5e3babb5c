"""Serves the contract ``cert``: the cloud's authority, and one for each project that has a VPN or (with
``use_project_ca``) a certificate.

Whose a certificate is stands in a row before it is signed, and the row goes after its number is in the list of what was
revoked. So whoever is killed in between leaves a row too many, which the next revocation removes, and never a
certificate that no revocation finds.
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

from nova import concurrency, errors
from nova.conf.base import Options
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
LONGEST_WORD = 64  # of a subject's parts (RFC 5280, ub-common-name)
SUBJECTS = {"user_cert_subject": 3, "project_cert_subject": 2}  # how many words it takes
USUAL_WORD = "0" * 32  # an id of Keystone's


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """cert.Files for what the disk refuses; the whole path is for the log alone."""
    try:
        yield
    except OSError as error:
        LOG.error("the files of an authority cannot be used: %s", error)
        raise errors.cert.Files(reason=error.strerror or type(error).__name__) from None


class CertService:
    """``options`` is the group that has ``ca_path`` and its like. cert.Subject: one of its subjects. All calls:
    cert.Files; cert.Damaged names a file."""

    def __init__(self, options: Options, conductor: ConductorRPC, clock: Clock = now) -> None:
        self._options, self._conductor, self._clock, self._folder = options, conductor, clock, Path(options.ca_path)
        self._files = AuthorityFiles(options.ca_file, options.key_file, options.crl_file)
        for option, count in SUBJECTS.items():
            self._subject(option, *[USUAL_WORD] * (count - 1), _time(clock()))
        self.root = Authority(self._folder, ROOT_SUBJECT, self._files, clock)

    def start(self) -> None:
        """The root is made when there is none."""
        self.renew()

    @_explained()
    def renew(self) -> None:
        """What of all authorities is to end soon, as others may read the files, and what a crash left half done; one
        that fails keeps no other."""
        self.root.ensure()
        self.root.revoked()
        for folder in sorted((self._folder / "projects").glob("*/")):
            try:
                self._project(folder.name).revoked()
            except (errors.NovaError, OSError, ValueError) as error:
                LOG.error("the authority in %s could not be renewed: %s", folder, error)

    @_explained()
    def fetch_ca(self, project_id: str) -> str:
        """The authority is made, or its certificate renewed, first. cert.Project: with ``use_project_ca`` an id
        that cannot name a folder."""
        return self._of(project_id).certificate

    @_explained()
    def fetch_crl(self, project_id: str) -> str:
        """The authority is made, and its list renewed, where that is due. cert.Project: with ``use_project_ca`` an id
        that cannot name a folder."""
        return self._of(project_id).revoked()

    @_explained()
    def decrypt_text(self, project_id: str, text: str) -> str:
        """cert.NoProject: it has no authority with a key, which is not made for this. cert.Decryption: all else."""
        authority = self._present(project_id)
        # One error for all that can be wrong with the text. Wrong padding is no error at all where OpenSSL rejects
        # it implicitly (3.2 and later): it gives random bytes, which are then mostly no UTF-8. So neither the error
        # nor its time tells a tenant whether the padding was right (Bleichenbacher's attack).
        try:
            return authority.decrypt(base64.b64decode(text, validate=True)).decode()
        except ValueError:
            raise errors.cert.Decryption from None

    @_explained()
    def generate_x509_cert(self, user_id: str, project_id: str) -> SignedCertificate:
        """The number, then its row, then the certificate. cert.Project as above; cert.Revoked: somebody revoked the
        user's certificates meanwhile; Unavailable: no conductor keeps the row."""
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
        """In all projects."""
        return self._revoke(CertificateQuery(user_id=user_id))

    @_explained()
    def revoke_certs_by_project(self, project_id: str) -> int:
        """Of all users. cert.NoProject."""
        return self._revoke(CertificateQuery(project_id=project_id)) or self._none_of(project_id)

    @_explained()
    def revoke_certs_by_user_and_project(self, user_id: str, project_id: str) -> int:
        """cert.NoProject."""
        return (self._revoke(CertificateQuery(user_id=user_id, project_id=project_id))
                or self._none_of(project_id))

    @_explained()
    def vpn_credentials(self, project_id: str) -> VpnCredentials:
        """Keys are made once; certificates that end soon are made anew. cert.Project: an id that can
        not name a folder."""
        authority = self._project(project_id)
        key, certificate = authority.server_pair("server", f"/C=US/O=OpenStack/CN={_word(f'vpn-{project_id}')}")
        return VpnCredentials(authority=authority.certificate, revoked=authority.revoked(), server_key=key,
                              server_certificate=certificate, public_key=self._login(project_id))

    # -- inside

    def _login(self, project_id: str) -> str:
        """The public half of the pair in ``keys_path`` by which an operator enters the project's VPN server."""
        path = Path(self._options.keys_path) / f"{project_id}{self._options.vpn_key_suffix}.pem"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(path.parent / ".lock"):
            if not path.exists():
                write_whole(path, private_text(new_key()), 0o600, durable=True)
            try:
                key = serialization.load_pem_private_key(path.read_bytes(), password=None)
            except (ValueError, TypeError) as error:
                raise errors.cert.Damaged(file=path.name, reason=str(error).partition(". ")[0].rstrip(".")) from None
        return key.public_key().public_bytes(serialization.Encoding.OpenSSH,
                                             serialization.PublicFormat.OpenSSH).decode()

    def _revoke(self, query: CertificateQuery) -> int:
        """Page after page, as rows go with each."""
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
        if not authority.has_key:  # nothing that it signed is believed any more
            LOG.warning("the authority in %s is gone: its %d certificates need no revocation", folder, len(records))
            return
        authority.ensure()
        authority.revoke([int(Path(one.file_name).stem, 16) for one in records])
        LOG.info("revoked %d certificates of the authority in %s", len(records), folder)

    def _folder_of(self, record: CertificateRecord) -> Path:
        """The authority's, wherever ``ca_path`` was when it signed."""
        path = Path(record.file_name)
        if path.parent.name != CERTIFICATES or not re.fullmatch(r"[0-9A-F]+", path.stem):
            raise errors.cert.Damaged(file=record.file_name, reason="a row of the table certificates names it, and it "
                                      "is no file of a certificate")
        folder = path.parent.parent
        if folder.name == record.project_id and folder.parent.name == "projects":
            return self._folder / "projects" / folder.name
        return self._folder

    def _none_of(self, project_id: str) -> int:
        """Nothing was revoked. cert.NoProject: nothing could ever be."""
        self._present(project_id)
        return 0

    def _of(self, project_id: str) -> Authority:
        if self._options.use_project_ca:
            return self._project(project_id)
        self.root.ensure()  # it may have come to its end since the start
        return self.root

    def _present(self, project_id: str) -> Authority:
        """cert.NoProject: it was never made."""
        authority = self._at(project_id) if self._options.use_project_ca else self.root
        if not authority.has_key:
            raise errors.cert.NoProject(project_id=project_id)
        return authority

    def _project(self, project_id: str) -> Authority:
        authority = self._at(project_id)
        authority.ensure()
        return authority

    def _at(self, project_id: str) -> Authority:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", project_id):  # it names a folder
            raise errors.cert.Project(project_id=project_id)
        subject = self._subject("project_cert_subject", project_id, _time(self._clock()))
        return Authority(self._folder / "projects" / project_id, subject, self._files, self._clock)

    def _subject(self, option: str, *words: str) -> str:
        """The option's, with these in it; what would end a part, or a line of ``index.txt``, is ``_``. cert.Subject."""
        value = str(getattr(self._options, option))
        try:
            made = value % tuple(re.sub(r"[^A-Za-z0-9_.:@-]", "_", word) for word in words)
            name_of(made)
        except (ValueError, TypeError) as error:
            raise errors.cert.Subject(option=option, value=value, reason=error) from None
        return made


def _word(text: str) -> str:
    return text[:LONGEST_WORD]


def _time(when: datetime.datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
