"""Signature version 4 of EC2 and S3, in the ``Authorization`` header or in the query (a presigned URL).

The region and the service of the scope may be any text: boto 2 derives them from the host name.
"""

from __future__ import annotations

import calendar
import dataclasses
import hashlib
import posixpath
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from nova import failures
from nova.legacy.signatures.request import (
    EMPTY_SHA256,
    LONGEST_LIFE_S,
    SKEW_S,
    Scope4,
    Signature,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    check_age,
    decoded,
    encoded,
    http_time,
    needed,
    sole_values,
)

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
STREAM_SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
STREAM_SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
STREAM_UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
#: The values that S3 accepts in place of a body's hash.
PAYLOADS = {UNSIGNED_PAYLOAD, STREAM_SIGNED, STREAM_SIGNED_TRAILER, STREAM_UNSIGNED_TRAILER}
CONTENT_HASH = "x-amz-content-sha256"


class _Claimed(NamedTuple):
    """The unverified signature parameters of a request. ``life_s``: validity of a presigned URL, in seconds."""

    credential: str
    signed_headers: str
    value: str
    timestamp: str
    life_s: int | None


def is_header_signed(request: SignedRequest) -> bool:
    """Return whether the ``Authorization`` header has a version 4 signature."""
    return request.headers.get("authorization", "").lstrip().startswith(ALGORITHM)


def is_presigned(request: SignedRequest) -> bool:
    """Return whether the query has a version 4 signature."""
    return any(name == "X-Amz-Algorithm" or name == "X-Amz-Signature" for name, _ in request.query_pairs)


def ec2_v4(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """Return the signature of an EC2 request, which covers the body. ``now``: seconds since 1970.

    Raises SignatureRefused.
    """
    claimed = _claimed(request)
    return _signature(request, claimed, canonical_path(request), request.body_hash, (now, skew_s))


def s3_v4(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """Return the signature of an S3 request.

    It covers the value of ``x-amz-content-sha256``, which is the result's ``payload``: the caller must compare that
    hash with the body. Raises SignatureRefused.
    """
    claimed = _claimed(request)
    payload = _payload(request, claimed)
    return _signature(_as_client_signs(request), claimed, s3_path(request), payload, (now, skew_s))


def _as_client_signs(request: SignedRequest) -> SignedRequest:
    """Return the request with the Host header that the client signed.

    boto 2 signs the port twice: ``host:3333:3333``. Whether it also sends it twice depends on the Python release.
    """
    host = request.headers.get("host", "")
    rest, colon, port = host.rpartition(":")
    is_boto = request.headers.get("user-agent", "").startswith("Boto/2.")
    if not (is_boto and colon and port.isdecimal()) or rest.endswith(f":{port}"):
        return request
    return dataclasses.replace(request, headers={**request.headers, "host": f"{host}:{port}"})


def _payload(request: SignedRequest, claimed: _Claimed) -> str:
    if claimed.life_s is not None:
        payload = request.headers.get(CONTENT_HASH, UNSIGNED_PAYLOAD)
    else:
        payload = needed(request.headers, CONTENT_HASH)
    if payload not in PAYLOADS and not re.fullmatch("[0-9a-f]{64}", payload):
        raise SignatureRefused(SignatureFault.MALFORMED, CONTENT_HASH)
    return payload


def _claimed(request: SignedRequest) -> _Claimed:
    """Return the parameters in the header or the query. Raises SignatureRefused (DUPLICATE) if both have them."""
    if is_header_signed(request):
        if is_presigned(request):
            raise SignatureRefused(SignatureFault.DUPLICATE, "Authorization, X-Amz-Signature")
        return _in_header(request)
    return _in_query(request)


def _in_header(request: SignedRequest) -> _Claimed:
    text = request.headers["authorization"].strip()
    algorithm, _, rest = text.partition(" ")
    if algorithm != ALGORITHM:
        raise SignatureRefused(SignatureFault.UNKNOWN, "Authorization")
    pairs = [part.strip().partition("=") for part in rest.split(",")]
    parts = sole_values([(name, value) for name, _, value in pairs])
    return _Claimed(needed(parts, "Credential"), needed(parts, "SignedHeaders"), needed(parts, "Signature"),
                    _header_time(request), None)


def _header_time(request: SignedRequest) -> str:
    if "x-amz-date" in request.headers:
        return request.headers["x-amz-date"].strip()
    date = request.headers.get("date", "").strip()
    if not date:
        raise SignatureRefused(SignatureFault.MISSING, "X-Amz-Date")
    if re.fullmatch(r"\d{8}T\d{6}Z", date, re.ASCII):
        return date
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(http_time(date, "Date")))


def _in_query(request: SignedRequest) -> _Claimed:
    if "x-amz-date" in request.headers:
        raise SignatureRefused(SignatureFault.DUPLICATE, "X-Amz-Date")
    given = sole_values([pair for pair in request.query_pairs if pair[0].startswith("X-Amz-")])
    if needed(given, "X-Amz-Algorithm") != ALGORITHM:
        raise SignatureRefused(SignatureFault.UNKNOWN, "X-Amz-Algorithm")
    life = needed(given, "X-Amz-Expires")
    if not re.fullmatch("[0-9]{1,9}", life) or int(life) == 0:
        raise SignatureRefused(SignatureFault.MALFORMED, "X-Amz-Expires")
    if int(life) > LONGEST_LIFE_S:
        raise SignatureRefused(SignatureFault.TOO_LONG, "X-Amz-Expires")
    return _Claimed(needed(given, "X-Amz-Credential"), needed(given, "X-Amz-SignedHeaders"),
                    needed(given, "X-Amz-Signature"), needed(given, "X-Amz-Date"), int(life))


def _signature(request: SignedRequest, claimed: _Claimed, path: str, payload: str,
               times: tuple[float, float]) -> Signature:
    access, scope = _credential(claimed.credential)
    until = _checked_until(claimed, scope, *times)
    headers = claimed.signed_headers.split(";")
    _check_covered(request, headers)
    tail = "\n".join([canonical_query(request), *(f"{name}:{_collapsed(request.headers[name])}" for name in headers),
                      "", claimed.signed_headers, payload])
    text = string_to_sign(claimed.timestamp, scope, f"{request.method}\n{path}\n{tail}")
    return Signature("4", access, claimed.value, (text,), "sha256", scope, claimed.timestamp, payload,
                     tuple(headers), until)


def _credential(text: str) -> tuple[str, Scope4]:
    """Split a credential into access key and scope. The access key may have slashes, the scope's parts have none."""
    parts = text.rsplit("/", 4)
    if len(parts) != 5 or not parts[0] or parts[4] != "aws4_request":
        raise SignatureRefused(SignatureFault.MALFORMED, "Credential")
    return parts[0], Scope4(*parts[1:4])


def _checked_until(claimed: _Claimed, scope: Scope4, now: float, skew_s: float) -> float:
    with failures.replaced(ValueError, lambda _: SignatureRefused(SignatureFault.MALFORMED, "X-Amz-Date")):
        at = calendar.timegm(time.strptime(claimed.timestamp, "%Y%m%dT%H%M%SZ"))
    if scope.date != claimed.timestamp[:8]:
        raise SignatureRefused(SignatureFault.MALFORMED, "Credential")
    if claimed.life_s is None:
        return check_age(at, now, "X-Amz-Date", skew_s)
    if at > now + skew_s:
        raise SignatureRefused(SignatureFault.TOO_NEW, "X-Amz-Date")
    if at + claimed.life_s < now:
        raise SignatureRefused(SignatureFault.TOO_OLD, "X-Amz-Expires")
    return at + claimed.life_s


def _check_covered(request: SignedRequest, signed: Sequence[str]) -> None:
    """Check that the signature covers the host and all headers that affect the operation."""
    for name in signed:
        if name not in request.headers:
            raise SignatureRefused(SignatureFault.MISSING, name)
    must = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
    if must - set(signed):
        raise SignatureRefused(SignatureFault.NOT_COVERED, ", ".join(sorted(must - set(signed))))


def _collapsed(value: str) -> str:
    return re.sub("[ \t]+", " ", value.strip(" \t"))


def canonical_query(request: SignedRequest) -> str:
    """Return all query pairs except the signature, encoded again and sorted."""
    return "&".join(f"{name}={value}" for name, value in
                    sorted((encoded(name), encoded(value)) for name, value in request.query_pairs
                           if name != "X-Amz-Signature"))


def s3_path(request: SignedRequest) -> str:
    """Return the path as S3 clients sign it: each component in canonical encoding, regardless of its encoding as sent.
    """
    return "/".join(encoded(decoded(part)) for part in request.path.split("/")) or "/"


def canonical_path(request: SignedRequest) -> str:
    """Return the canonical path of all services except S3: normalized, and encoded once more than it was sent."""
    path = request.path or "/"
    normal = "/" + posixpath.normpath(path).lstrip("/")
    return encoded(normal + ("/" if path.endswith("/") and normal != "/" else ""), "/")


def string_to_sign(timestamp: str, scope: Scope4, canonical_request: str) -> str:
    """Return the string to sign of a canonical request."""
    digest = hashlib.sha256(canonical_request.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{ALGORITHM}\n{timestamp}\n{scope.text}\n{digest}"


def chunk_string_to_sign(signature: Signature, before: str, chunk_hash: str) -> str:
    """Return the string to sign of a chunk in a ``STREAM_SIGNED`` body. ``before``: the signature of the previous
    chunk, or of the request."""
    assert signature.scope is not None
    return "\n".join((f"{ALGORITHM}-PAYLOAD", signature.timestamp, signature.scope.text, before, EMPTY_SHA256,
                      chunk_hash))


def trailer_string_to_sign(signature: Signature, before: str, trailer_hash: str) -> str:
    """Return the string to sign of the trailer of a ``STREAM_SIGNED_TRAILER`` body."""
    assert signature.scope is not None
    return "\n".join((f"{ALGORITHM}-TRAILER", signature.timestamp, signature.scope.text, before, trailer_hash))
