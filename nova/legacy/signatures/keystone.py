"""Request bodies for Keystone, which has the secrets, to verify a signature."""

from __future__ import annotations

import base64
from typing import TypedDict

from nova.legacy.signatures.request import Signature, SignatureFault, SignatureRefused, SignedRequest, sole_values
from nova.legacy.signatures.v4 import canonical_path, is_header_signed


class Ec2Credentials(TypedDict):
    """The credentials of ``ec2tokens``. ``path``: the signed path. ``params``: the signed parameters, name -> value."""

    access: str
    signature: str
    host: str
    verb: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body_hash: str


class Ec2TokensBody(TypedDict):
    """The body of ``POST /v3/ec2tokens``."""

    credentials: Ec2Credentials


class S3Credentials(TypedDict):
    """The credentials of ``s3tokens``. ``token``: the string to sign, in base64."""

    access: str
    signature: str
    token: str


class S3TokensBody(TypedDict):
    """The body of ``POST /v3/s3tokens``."""

    credentials: S3Credentials


def ec2tokens_body(request: SignedRequest, signature: Signature) -> Ec2TokensBody:
    """Return the body for an EC2 request and its signature. Keystone supports version 2 only with HmacSHA256.

    Raises SignatureRefused: DUPLICATE for a repeated name, since Keystone accepts one value; NOT_COVERED for a version
    4 POST with a query, which Keystone would ignore.
    """
    is_v4 = signature.version == "4"
    if is_v4 and request.method.upper() == "POST" and request.query:
        raise SignatureRefused(SignatureFault.NOT_COVERED, "query")
    params = sole_values(request.query_pairs if is_v4 else [*request.query_pairs, *request.form])
    for name in ("Signature", "X-Amz-Signature"):
        params.pop(name, None)
    if not is_v4:
        params["SignatureVersion"] = signature.version  # optional in version 0
    return {"credentials": {
        "access": signature.access, "signature": signature.value, "host": request.headers.get("host", "").lower(),
        "verb": request.method, "path": canonical_path(request) if is_v4 else request.path or "/", "params": params,
        "headers": _headers(request, signature), "body_hash": request.body_hash}}


def _headers(request: SignedRequest, signature: Signature) -> dict[str, str]:
    """Return the signed headers, capitalized as Keystone expects. Unsigned headers are omitted, since Keystone might
    trust them."""
    names = set(signature.signed_headers)
    if is_header_signed(request):
        names |= {"authorization", "x-amz-date"}
    return {name.title(): value for name, value in request.headers.items() if name in names}


def s3tokens_body(signature: Signature) -> S3TokensBody:
    """Return the body for an S3 request, which has exactly one string to sign. Keystone cannot verify chunk signatures.
    """
    text, = signature.strings_to_sign
    return {"credentials": {"access": signature.access, "signature": signature.value, "token": _urlsafe(text)}}


def _urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogateescape")).decode()
