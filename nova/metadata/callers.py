"""Identification of the calling guest: by its source address, or by the headers of a signing proxy."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Mapping

from nova import errors
from nova.errors import NotFound
from nova.metadata.options import MetadataOptions
from nova.model.guest.guests import GuestQuery

Caller = Callable[[Mapping[str, str]], GuestQuery]  # from a WSGI environment

LONGEST_HEADER = 255
NAMING = ("X-Instance-ID", "X-Tenant-ID", "X-Metadata-Provider")  # headers that identify the caller


def caller_of(options: MetadataOptions) -> Caller:
    """Return the configured identification. Its errors are Invalid 400, Forbidden 403, NotFound 404."""
    if options.behind_proxy:
        return _Signed(options.secret)
    return by_forwarded_address if options.forwarded_for else by_address


def by_address(environ: Mapping[str, str]) -> GuestQuery:
    """Identify the guest by its source address; no header can override it."""
    address = _address(environ.get("REMOTE_ADDR", ""))
    if address is None:
        raise NotFound()
    return GuestQuery(address=address)


def by_forwarded_address(environ: Mapping[str, str]) -> GuestQuery:
    """Identify the guest by the address in an operator's proxy header; for direct requests by their source address."""
    if not environ.get("HTTP_X_FORWARDED_FOR", "").strip():
        return by_address(environ)
    return GuestQuery(address=_forwarded(environ))


def _address(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address)


def _forwarded(environ: Mapping[str, str]) -> str:
    """Return the single address in the header. In a list of addresses, a guest could have written parts."""
    address = _address(_header(environ, "X-Forwarded-For"))
    if address is None:
        raise errors.metadata.DoubtfulHeader(header="X-Forwarded-For")
    return address


class _Signed:
    """Identification by a signed server id: accepted only if server and project match one server (OSSA-2013-033)."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def __call__(self, environ: Mapping[str, str]) -> GuestQuery:
        if environ.get("HTTP_X_METADATA_PROVIDER"):
            provider = _header(environ, "X-Metadata-Provider")
            signature = _header(environ, "X-Metadata-Provider-Signature")
            address = _forwarded(environ)
            self._check(provider, signature)
            return GuestQuery(provider_id=provider, address=address)
        server = _header(environ, "X-Instance-ID")
        project = _header(environ, "X-Tenant-ID")
        signature = _header(environ, "X-Instance-ID-Signature")
        _header(environ, "X-Forwarded-For")
        self._check(server, signature)
        return GuestQuery(server_uuid=server, project_id=project)

    def _check(self, signed: str, signature: str) -> None:
        expected = hmac.new(self._secret, signed.encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), signature.encode()):  # in constant time (OSSA-2014-024)
            raise errors.metadata.BadSignature()


def _header(environ: Mapping[str, str], name: str) -> str:
    value = environ.get("HTTP_" + name.upper().replace("-", "_"), "").strip()
    if not value:
        raise errors.metadata.MissingHeader(header=name)
    if name in NAMING and ("," in value or len(value) > LONGEST_HEADER or not value.isascii()):
        raise errors.metadata.DoubtfulHeader(header=name)  # a comma means that the header was sent twice
    return value
