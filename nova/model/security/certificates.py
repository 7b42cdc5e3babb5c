"""Users' certificates, and what a VPN guest needs of its project's certificate authority. PEM texts."""

from __future__ import annotations

from nova.model.base import Time, Value


class SignedCertificate(Value):
    """``private_key`` is a secret that nobody else has: it is made for its user, and kept nowhere."""

    certificate: str  # as openssl prints it: words, then the PEM block
    private_key: str


class CertificateRecord(Value):
    """Whose certificate a file of nova-cert's is. ``file_name``: the path of ``newcerts/<serial>.pem`` on its host."""

    user_id: str
    project_id: str
    file_name: str
    ends_at: Time


class CertificateQuery(Value):
    """Of a user, of a project, or of a user in a project; None does not matter."""

    user_id: str | None = None
    project_id: str | None = None


class VpnCredentials(Value):
    """``server_key`` is a secret: it goes into the guest's user data, and into no log."""

    authority: str
    revoked: str
    server_key: str
    server_certificate: str
    public_key: str = ""  # of the pair by which an operator enters the guest; its other half stays with nova-cert


class Cloudpipe(Value):
    """A project's VPN server. ``state``: pending, running, down, or invalid (its project has no network any more)."""

    project_id: str
    server_uuid: str
    state: str
    internal_address: str | None = None
    public_address: str | None = None
    public_port: int | None = None
    created_at: Time | None = None
