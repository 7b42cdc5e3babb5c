"""Users' X.509 certificates, and the cloud's own, for clients that bundle images."""

from __future__ import annotations

from nova import errors
from nova.api.request import Answer, Request
from nova.api.view import answers

ROOT = "root"  # the only id for a GET
SECRET = ("Cache-Control", "no-store")  # proxies and browsers must not store a private key


def _shown(data: str, private_key: str | None) -> dict[str, object]:
    return {"certificate": {"data": data, "private_key": private_key}}


@answers({"certificate": {"data": str, "private_key": str}})
def create(req: Request) -> Answer:
    """Create a key and a certificate for the caller. The certificate has openssl's text form before the PEM block. The
    private key is not stored. Raises Unavailable (503): nova-cert."""
    made = req.certs.generate_x509_cert(req.context.user_id or "", req.project_id)
    return Answer(_shown(made.certificate, made.private_key), headers=(SECRET,))


@answers({"certificate": {"data": str, "private_key": type(None)}})
def show(req: Request, id: str) -> dict[str, object]:
    """Show the cloud's certificate, or the certificate of the caller's project if each has its own; the path's id must
    be ``root``. Raises cert.OnlyRoot (501); Unavailable (503): nova-cert."""
    if id != ROOT:
        raise errors.cert.OnlyRoot
    return _shown(req.certs.fetch_ca(req.project_id), None)
