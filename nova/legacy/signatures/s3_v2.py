"""S3's own signature version 2: ``Authorization: AWS KEY:SIGNATURE``, or the same in a query with ``Expires``."""

from __future__ import annotations

import re
import urllib.parse

from nova.legacy.signatures.request import (
    SKEW_S,
    Signature,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    check_age,
    check_end,
    decoded,
    http_time,
    iso_time,
    needed,
    sole_values,
)

#: Query parameters that select a sub-resource, and are signed.
SUBRESOURCES = {
    "accelerate", "acl", "analytics", "cors", "defaultObjectAcl", "delete", "inventory", "lifecycle", "location",
    "logging", "metrics", "notification", "object-lock", "partNumber", "policy", "replication", "requestPayment",
    "response-cache-control", "response-content-disposition", "response-content-encoding",
    "response-content-language", "response-content-type", "response-expires", "restore", "select", "select-type",
    "storageClass", "tagging", "torrent", "uploadId", "uploads", "versionId", "versioning", "versions", "website"}


def is_s3_header_signed(request: SignedRequest) -> bool:
    """Return whether the ``Authorization`` header has a signature of this version."""
    return request.headers.get("authorization", "").lstrip().startswith("AWS ")


def is_s3_presigned(request: SignedRequest) -> bool:
    """Return whether the query has a signature of this version."""
    return any(name in ("AWSAccessKeyId", "Signature") for name, _ in request.query_pairs)


def s3_v2(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """Return the signature of a request. It does not cover the host, and covers the body only by ``Content-MD5``.

    ``now``: seconds since 1970. Raises SignatureRefused.
    """
    if is_s3_header_signed(request):
        if is_s3_presigned(request):
            raise SignatureRefused(SignatureFault.DUPLICATE, "Authorization, Signature")
        access, value = _in_header(request)
        date, until = _checked_date(request, now, skew_s)
    else:
        access, value, date = _in_query(request, now)
        until = float(date)
    return Signature("s3v2", access, value, (string_to_sign(request, date),), "sha1", until=until)


def _in_header(request: SignedRequest) -> tuple[str, str]:
    match = re.fullmatch(r"AWS +(\S+):([A-Za-z0-9+/=]+)", request.headers["authorization"].strip())
    if match is None:
        raise SignatureRefused(SignatureFault.MALFORMED, "Authorization")
    return match[1], match[2]


def _checked_date(request: SignedRequest, now: float, skew_s: float) -> tuple[str, float]:
    """Return the date line to sign, and the time at which the request expires.

    The line is empty if ``x-amz-date`` is present, which is signed with the other headers.
    """
    name = "x-amz-date" if "x-amz-date" in request.headers else "date"
    text = needed(request.headers, name).strip()
    read = iso_time if re.match(r"\d{4}-?\d\d", text) else http_time
    until = check_age(read(text, name), now, name, skew_s)
    return text if name == "date" else "", until


def _in_query(request: SignedRequest, now: float) -> tuple[str, str, str]:
    given = sole_values([pair for pair in request.query_pairs if pair[0] in ("AWSAccessKeyId", "Signature", "Expires")])
    end = needed(given, "Expires")
    if not re.fullmatch("[0-9]{1,12}", end):
        raise SignatureRefused(SignatureFault.MALFORMED, "Expires")
    check_end(int(end), now, "Expires")
    return needed(given, "AWSAccessKeyId"), needed(given, "Signature"), end


def string_to_sign(request: SignedRequest, date: str) -> str:
    """Return the string to sign, with the path as it was sent, as Amazon's manual specifies.

    botocore sends a bucket without a slash and signs it with one. Its presigned URLs are used by other clients, so for
    these every bucket gets the slash.
    """
    headers = [request.headers.get(name, "").strip() for name in ("content-md5", "content-type")]
    amz = [f"{name}:{request.headers[name].strip()}" for name in sorted(request.headers)
           if name.startswith("x-amz-")]
    head = "\n".join([request.method, *headers, date, *amz])
    path = request.path or "/"
    is_bucket = path.count("/") == 1 and path != "/"
    slash = "/" if is_bucket and (is_s3_presigned(request) or _is_of_botocore(request)) else ""
    return f"{head}\n{path}{slash}{_subresources(request.query)}"


def _is_of_botocore(request: SignedRequest) -> bool:
    """Return whether the client is botocore, which aws and boto3 use, too."""
    return "botocore" in request.headers.get("user-agent", "").lower()


def _subresources(query: str) -> str:
    """Return the signed sub-resources with decoded values, as Amazon's manual specifies.

    Raises SignatureRefused (NOT_COVERED) for a sub-resource with an encoded name: it takes effect, but clients that
    sign literal names have not signed it.
    """
    for name in (part.partition("=")[0] for part in query.split("&")):
        if name not in SUBRESOURCES and urllib.parse.unquote_plus(name) in SUBRESOURCES:
            raise SignatureRefused(SignatureFault.NOT_COVERED, urllib.parse.unquote_plus(name))
    parts = sorted((part.partition("=") for part in query.split("&") if part.partition("=")[0] in SUBRESOURCES),
                   key=lambda part: part[0])
    return "?" + "&".join(name + equals + decoded(value) for name, equals, value in parts) if parts else ""
