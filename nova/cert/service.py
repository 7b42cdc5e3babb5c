"""Serves the contract ``cert``: the cloud's authority, and one for each project that has a VPN."""

from __future__ import annotations

import base64
import logging
import re
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from nova import errors
from nova.cert.authority import KEY_BITS, Authority, AuthorityFiles, Clock, now, private_text
from nova.conf.base import Options
from nova.model.certificates import VpnCredentials
from nova.privileged.files import locked, write_whole

LOG = logging.getLogger(__name__)

ROOT_SUBJECT = "/O=NOVA ROOT/L=Mountain View/ST=California/C=US"
LONGEST_WORD = 64  # of a subject's parts (RFC 5280, ub-common-name)


class CertService:
    """``options`` is the group that has ``ca_path`` and its like."""

    def __init__(self, options: Options, clock: Clock = now) -> None:
        self._options, self._clock, self._folder = options, clock, Path(options.ca_path)
        self._files = AuthorityFiles(options.ca_file, options.key_file, options.crl_file)
        self.root = Authority(self._folder, ROOT_SUBJECT, self._files, clock)

    def start(self) -> None:
        """The root is made when there is none."""
        self.renew()

    def renew(self) -> None:
        """What of all authorities is to end soon, as others may read the files; one that fails keeps no other."""
        self.root.ensure()
        for folder in sorted((self._folder / "projects").glob("*/")):
            try:
                self._project(folder.name)
            except (errors.NovaError, OSError, ValueError) as error:
                LOG.error("the authority in %s could not be renewed: %s", folder, error)

    def fetch_ca(self, project_id: str) -> str:
        """The authority is made, or its certificate renewed, first. cert.Project: with ``use_project_ca`` an id
        that can not name a folder."""
        return self._of(project_id).certificate

    def fetch_crl(self, project_id: str) -> str:
        """The authority is made, and its list renewed, where that is due. cert.Project: with
        ``use_project_ca`` an id that can not name a folder."""
        return self._of(project_id).revoked()

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

    def vpn_credentials(self, project_id: str) -> VpnCredentials:
        """Keys are made once; certificates that end soon are made anew. cert.Project: an id that can
        not name a folder."""
        authority = self._project(project_id)
        key, certificate = authority.server_pair("server", f"/C=US/O=OpenStack/CN={_word(f'vpn-{project_id}')}")
        return VpnCredentials(authority=authority.certificate, revoked=authority.revoked(), server_key=key,
                              server_certificate=certificate, public_key=self._login(project_id))

    def _login(self, project_id: str) -> str:
        """The public half of the pair in ``keys_path`` by which an operator enters the project's VPN server."""
        path = Path(self._options.keys_path) / f"{project_id}{self._options.vpn_key_suffix}.pem"
        with locked(path.parent / ".lock"):
            if not path.exists():
                write_whole(path, private_text(rsa.generate_private_key(65537, KEY_BITS)), 0o600)
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        return key.public_key().public_bytes(serialization.Encoding.OpenSSH,
                                             serialization.PublicFormat.OpenSSH).decode()

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
        subject = f"/C=US/ST=California/O=OpenStack/OU=NovaDev/CN={_word(f'project-ca-{project_id[:16]}')}"
        return Authority(self._folder / "projects" / project_id, subject, self._files, self._clock)


def _word(text: str) -> str:
    return text[:LONGEST_WORD]
