"""Bodies of the calls by which Keystone, which has the secrets, checks a signature."""

from __future__ import annotations

import base64
from typing import TypedDict

from nova.legacy.signatures.request import Signature, SignatureFault, SignatureRefused, SignedRequest, sole_values
from nova.legacy.signatures.v4 import canonical_path, is_header_signed


class Ec2Credentials(TypedDict):
    """``path`` is the one that was signed. ``params``: name -> value of what was signed as parameters."""

    access: str
    signature: str
    host: str
    verb: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body_hash: str


class Ec2TokensBody(TypedDict):
    """Of ``POST /v3/ec2tokens``."""

    credentials: Ec2Credentials


class S3Credentials(TypedDict):
    """``token``: the string to sign, in base64."""

    access: str
    signature: str
    token: str


class S3TokensBody(TypedDict):
    """Of ``POST /v3/s3tokens``."""

    credentials: S3Credentials


def ec2tokens_body(request: SignedRequest, signature: Signature) -> Ec2TokensBody:
    """Of a request to EC2 and the signature that was found in it. Keystone knows version 2 with HmacSHA256 alone.

    SignatureRefused: DUPLICATE, since Keystone takes one value of a name. NOT_COVERED where a POST of version 4 has a
    query: Keystone would not look at that.
    """
    is_v4 = signature.version == "4"
    if is_v4 and request.method.upper() == "POST" and request.query:
        raise SignatureRefused(SignatureFault.NOT_COVERED, "query")
    params = sole_values(request.query_pairs if is_v4 else [*request.query_pairs, *request.form])
    for name in ("Signature", "X-Amz-Signature"):
        params.pop(name, None)
    if not is_v4:
        params["SignatureVersion"] = signature.version  # version 0 needs not say so
    return {"credentials": {
        "access": signature.access, "signature": signature.value, "host": request.headers.get("host", "").lower(),
        "verb": request.method, "path": canonical_path(request) if is_v4 else request.path or "/", "params": params,
        "headers": _headers(request, signature), "body_hash": request.body_hash}}


def _headers(request: SignedRequest, signature: Signature) -> dict[str, str]:
    """With the capitals by which Keystone looks for them. A header that is not signed is left out, as Keystone might
    believe it."""
    names = set(signature.signed_headers)
    if is_header_signed(request):
        names |= {"authorization", "x-amz-date"}
    return {name.title(): value for name, value in request.headers.items() if name in names}


def s3tokens_body(signature: Signature) -> S3TokensBody:
    """Of a request to S3, by the only way in which its client signs one. Keystone checks no signature of a chunk."""
    text, = signature.strings_to_sign
    return {"credentials": {"access": signature.access, "signature": signature.value, "token": _urlsafe(text)}}


def _urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogateescape")).decode()
