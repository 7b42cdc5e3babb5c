"""Detection of the version of a request's signature."""

from __future__ import annotations

from nova.legacy.signatures import ec2_query, s3_v2, v4
from nova.legacy.signatures.request import SKEW_S, Signature, SignatureFault, SignatureRefused, SignedRequest


def ec2_signature(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """Return the signature of an EC2 request. ``now``: seconds since 1970.

    Raises SignatureRefused: UNSIGNED without a signature, DUPLICATE if there are two.
    """
    is_v4 = v4.is_header_signed(request) or v4.is_presigned(request)
    is_query = ec2_query.is_query_signed(request)
    if is_v4 and is_query:
        raise SignatureRefused(SignatureFault.DUPLICATE, "Signature")
    if is_v4:
        return v4.ec2_v4(request, now, skew_s)
    if is_query:
        return ec2_query.query_signature(request, now, skew_s)
    raise _unsigned(request)


def s3_signature(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """Return the signature of an S3 request, as ``ec2_signature`` does."""
    is_v4 = v4.is_header_signed(request) or v4.is_presigned(request)
    is_v2 = s3_v2.is_s3_header_signed(request) or s3_v2.is_s3_presigned(request)
    if is_v4 and is_v2:
        raise SignatureRefused(SignatureFault.DUPLICATE, "Signature")
    if is_v4:
        return v4.s3_v4(request, now, skew_s)
    if is_v2:
        return s3_v2.s3_v2(request, now, skew_s)
    raise _unsigned(request)


def is_s3_link(request: SignedRequest) -> bool:
    """Return whether an S3 request uses a presigned URL, which may be used repeatedly until it expires."""
    return v4.is_presigned(request) or s3_v2.is_s3_presigned(request)


def _unsigned(request: SignedRequest) -> SignatureRefused:
    if "authorization" in request.headers:
        return SignatureRefused(SignatureFault.UNKNOWN, "Authorization")
    return SignatureRefused(SignatureFault.UNSIGNED)
