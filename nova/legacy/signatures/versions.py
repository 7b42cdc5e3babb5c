"""Which version a request is signed by."""

from __future__ import annotations

from nova.legacy.signatures import ec2_query, s3_v2, v4
from nova.legacy.signatures.request import SKEW_S, Signature, SignatureFault, SignatureRefused, SignedRequest


def ec2_signature(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """The signature of a request to EC2. ``now``: seconds since 1970. SignatureRefused: UNSIGNED when there is none,
    DUPLICATE when there are two."""
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
    """The same of a request to S3."""
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
    """Whether a request to S3 is of a presigned URL, which its maker gave to others to use until its end."""
    return v4.is_presigned(request) or s3_v2.is_s3_presigned(request)


def _unsigned(request: SignedRequest) -> SignatureRefused:
    if "authorization" in request.headers:
        return SignatureRefused(SignatureFault.UNKNOWN, "Authorization")
    return SignatureRefused(SignatureFault.UNSIGNED)
