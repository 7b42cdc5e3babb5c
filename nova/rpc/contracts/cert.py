"""What may be asked of nova-cert, which alone has the cloud's private keys."""

from __future__ import annotations

from nova.model.certificates import VpnCredentials
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
