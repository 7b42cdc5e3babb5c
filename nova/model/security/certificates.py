"""Certificates of users, and credentials that a VPN guest gets from its project's certificate authority. PEM texts."""

from __future__ import annotations

from nova.model.base import Time, Value


class SignedCertificate(Value):
    """A new certificate. ``private_key`` is a secret for its user only, and is not stored."""

    certificate: str  # openssl's output: a text description, then the PEM block
    private_key: str


class CertificateRecord(Value):
    """Owner of a certificate file of nova-cert. ``file_name``: the path of ``newcerts/<serial>.pem`` on its host."""

    user_id: str
    project_id: str
    file_name: str
    ends_at: Time


class CertificateQuery(Value):
    """Query for certificates of a user, of a project, or of a user in a project; None matches all."""

    user_id: str | None = None
    project_id: str | None = None


class VpnCredentials(Value):
    """Credentials of a VPN guest. ``server_key`` is a secret: only for the guest's user data, never for a log."""

    authority: str
    revoked: str
    server_key: str
    server_certificate: str
    public_key: str = ""  # key pair for an operator's access to the guest; nova-cert keeps the private key


class Cloudpipe(Value):
    """A project's VPN server. ``state``: pending, running, down, or invalid (its project no longer has a network)."""

    project_id: str
    server_uuid: str
    state: str
    internal_address: str | None = None
    public_address: str | None = None
    public_port: int | None = None
    created_at: Time | None = None
