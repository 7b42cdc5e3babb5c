"""What may be asked of nova-cert, which alone has the cloud's private keys."""

from __future__ import annotations

from nova.model.security.certificates import SignedCertificate, VpnCredentials
from nova.rpc.interface import Contract, call


class CertRPC(Contract):
    """Certificates of the cloud and its projects."""

    topic, version = "cert", "1.1"

    @call()
    def fetch_ca(self, project_id: str) -> str:
        """The authority's certificate: with ``use_project_ca`` the project's own, else the cloud's. PEM."""

    @call()
    def fetch_crl(self, project_id: str) -> str:
        """What that authority revoked. PEM."""

    @call(sensitive=True)
    def vpn_credentials(self, project_id: str) -> VpnCredentials:
        """All that a project's VPN server needs; made at the first asking, the same ever after."""

    @call(sensitive=True, since="1.1")
    def decrypt_text(self, project_id: str, text: str) -> str:
        """What ``text`` (base64; RSA, PKCS#1 v1.5) says, decrypted with the key of the authority of ``fetch_ca``.
        cert.Decryption, one error for all reasons; cert.NoProject: there is no such authority."""

    @call(sensitive=True, since="1.1")
    def generate_x509_cert(self, user_id: str, project_id: str) -> SignedCertificate:
        """A certificate of a new key for a user in a project. Unavailable: the conductor, or the authority's files."""

    @call(since="1.1")
    def revoke_certs_by_user(self, user_id: str) -> int:
        """All of a user's certificates; how many were not revoked before. May be repeated. Unavailable as above."""

    @call(since="1.1")
    def revoke_certs_by_project(self, project_id: str) -> int:
        """The same of a project's. cert.NoProject: with ``use_project_ca``, a project that never had one."""

    @call(since="1.1")
    def revoke_certs_by_user_and_project(self, user_id: str, project_id: str) -> int:
        """The same of a user's in a project."""
