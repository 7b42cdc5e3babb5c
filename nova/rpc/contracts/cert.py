"""Calls to nova-cert, the only daemon with the cloud's private keys."""

from __future__ import annotations

from nova.model.security.certificates import SignedCertificate, VpnCredentials
from nova.rpc.interface import Contract, call


class CertRPC(Contract):
    """Certificates of the cloud and its projects."""

    topic, version = "cert", "1.1"

    @call()
    def fetch_ca(self, project_id: str) -> str:
        """Return the authority's certificate, as PEM: with ``use_project_ca`` the project's own authority, else the
        cloud's."""

    @call()
    def fetch_crl(self, project_id: str) -> str:
        """Return that authority's revocation list, as PEM."""

    @call(sensitive=True)
    def vpn_credentials(self, project_id: str) -> VpnCredentials:
        """Return all files of a project's VPN server. The first call creates them; they never change."""

    @call(sensitive=True, since="1.1")
    def decrypt_text(self, project_id: str, text: str) -> str:
        """Decrypt ``text`` (base64; RSA, PKCS#1 v1.5) with the key of the authority of ``fetch_ca``. Raises
        cert.Decryption for every failure, and cert.NoProject if there is no such authority."""

    @call(sensitive=True, since="1.1")
    def generate_x509_cert(self, user_id: str, project_id: str) -> SignedCertificate:
        """Create a key and a certificate for a user in a project. Raises Unavailable for the conductor, or the
        authority's files."""

    @call(since="1.1")
    def revoke_certs_by_user(self, user_id: str) -> int:
        """Revoke all of a user's certificates, and return the number that were not revoked before. Idempotent. Raises
        Unavailable as above."""

    @call(since="1.1")
    def revoke_certs_by_project(self, project_id: str) -> int:
        """Revoke a project's certificates, likewise. Raises cert.NoProject if ``use_project_ca`` is set and the project
        never had an authority."""

    @call(since="1.1")
    def revoke_certs_by_user_and_project(self, user_id: str, project_id: str) -> int:
        """Revoke a user's certificates in a project, likewise."""
