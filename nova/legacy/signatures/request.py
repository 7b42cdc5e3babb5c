"""A request as it was signed, the signature that it carries, and why one is refused."""

from __future__ import annotations

import base64
import datetime
import email.utils
import enum
import hashlib
import hmac
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nova.model.base import Json

Pairs = Sequence[tuple[str, str]]

SKEW_S = 900  # how far the clock of a client may be from ours, either way
LONGEST_LIFE_S = 604800  # of a request that says itself when it ends: AWS's bound of presigned URLs
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
FORM = "application/x-www-form-urlencoded"


class SignatureFault(enum.Enum):
    """Why no signature was found, or it does not hold. The value says it to a client."""

    UNSIGNED = "The request is not signed."
    MISSING = "The request lacks what its signature needs."
    MALFORMED = "What the request says of its signature is malformed."
    UNKNOWN = "The version or method of the signature is not supported."
    NOT_TAKEN = "Signatures of this version are not taken here: sign by version 4."
    DUPLICATE = "A parameter of a signed request is given more than once."
    NOT_COVERED = "The request has headers or parameters that must be signed and are not."
    TOO_OLD = "The request has expired."
    TOO_NEW = "The request is of a time that is still to come."
    TOO_LONG = "The request is valid for longer than is allowed."
    REPEATED = "The same signed request was taken already: sign it anew."
    TOO_MANY = "Too many requests with wrong signatures come from here: wait, and send fewer."
    NO_SUCH_KEY = "The access key does not exist."
    MISMATCH = "The signature does not match: check the secret key and the method of signing."


class AwsError(NamedTuple):
    """How AWS's clients are told."""

    status: int
    code: str


EC2_ERRORS = {
    SignatureFault.UNSIGNED: AwsError(400, "AuthFailure"),
    SignatureFault.MISSING: AwsError(400, "MissingParameter"),
    SignatureFault.MALFORMED: AwsError(400, "InvalidParameterValue"),
    SignatureFault.UNKNOWN: AwsError(400, "InvalidParameterValue"),
    SignatureFault.NOT_TAKEN: AwsError(400, "InvalidParameterValue"),
    SignatureFault.DUPLICATE: AwsError(400, "InvalidParameterCombination"),
    SignatureFault.NOT_COVERED: AwsError(403, "SignatureDoesNotMatch"),
    SignatureFault.TOO_OLD: AwsError(403, "RequestExpired"),
    SignatureFault.TOO_NEW: AwsError(403, "RequestExpired"),
    SignatureFault.TOO_LONG: AwsError(400, "InvalidParameterValue"),
    SignatureFault.REPEATED: AwsError(503, "RequestLimitExceeded"),
    SignatureFault.TOO_MANY: AwsError(503, "RequestLimitExceeded"),
    SignatureFault.NO_SUCH_KEY: AwsError(401, "AuthFailure"),
    SignatureFault.MISMATCH: AwsError(401, "AuthFailure"),
}
S3_ERRORS = {
    SignatureFault.UNSIGNED: AwsError(403, "AccessDenied"),
    SignatureFault.MISSING: AwsError(403, "AccessDenied"),
    SignatureFault.MALFORMED: AwsError(400, "AuthorizationHeaderMalformed"),
    SignatureFault.UNKNOWN: AwsError(400, "InvalidRequest"),
    SignatureFault.NOT_TAKEN: AwsError(400, "InvalidRequest"),
    SignatureFault.DUPLICATE: AwsError(400, "InvalidRequest"),
    SignatureFault.NOT_COVERED: AwsError(403, "AccessDenied"),
    SignatureFault.TOO_OLD: AwsError(403, "RequestTimeTooSkewed"),
    SignatureFault.TOO_NEW: AwsError(403, "RequestTimeTooSkewed"),
    SignatureFault.TOO_LONG: AwsError(400, "AuthorizationQueryParametersError"),
    SignatureFault.REPEATED: AwsError(503, "SlowDown"),
    SignatureFault.TOO_MANY: AwsError(503, "SlowDown"),
    SignatureFault.NO_SUCH_KEY: AwsError(403, "InvalidAccessKeyId"),
    SignatureFault.MISMATCH: AwsError(403, "SignatureDoesNotMatch"),
}


class SignatureRefused(Exception):
    """``what`` names the parameter, header or part that it is about; never its value, which may be a signature."""

    def __init__(self, fault: SignatureFault, what: str = "") -> None:
        super().__init__(f"{fault.value} ({what})" if what else fault.value)
        self.fault, self.what = fault, what


@dataclass(frozen=True)
class SignedRequest:
    """``path`` and ``query`` are as they were sent, percent-encoded; ``query`` is without its ``?``. ``form``: the
    decoded pairs of a form body, in order. ``headers``: name in lower case -> value; values of a repeated name are
    joined by commas. ``body_hash``: SHA-256 of the body's raw bytes in hexadecimal. Bytes that are no UTF-8 are
    surrogates, as of ``os.fsdecode``. ``peer``: the address that it came from, which nobody signed.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    form: Pairs = ()
    body_hash: str = EMPTY_SHA256
    peer: str = ""

    @property
    def query_pairs(self) -> list[tuple[str, str]]:
        """The query's decoded pairs, in order; a name without a value has an empty one."""
        return decoded_pairs(self.query)


class Scope4(NamedTuple):
    """What a key of version 4 is derived for. ``date``: ``yyyymmdd``."""

    date: str
    region: str
    service: str

    @property
    def text(self) -> str:
        """As it stands in a string to sign."""
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


@dataclass(frozen=True)
class Signature:
    """A signature that a request carries. ``value`` is as it was given: of version 4 in hexadecimal, of the others in
    base64. ``strings_to_sign``: what the client may have signed, by the ways in which clients write one request; of S3
    it is one. ``digest``: ``sha1`` or ``sha256``. Of version 4 alone: ``scope``, ``timestamp`` (``yyyymmddThhmmssZ``),
    ``payload``, the hash or mode that the client gave for the body, and the names of ``signed_headers``. ``until``:
    Unix seconds from which the request is too old.
    """

    version: str
    access: str
    value: str
    strings_to_sign: tuple[str, ...]
    digest: str = "sha256"
    scope: Scope4 | None = None
    timestamp: str = ""
    payload: str = ""
    signed_headers: tuple[str, ...] = ()
    until: float = 0.0


def signed_request(environ: Mapping[str, Json], body: bytes = b"", body_hash: str | None = None) -> SignedRequest:
    """Of a WSGI environment, and the body that was read from it, or its hash where it is no form. The path is the raw
    one where the server has it (``RAW_URI`` or ``REQUEST_URI``), or is encoded anew."""
    raw = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or "")
    if raw.startswith("/"):
        path = raw.partition("?")[0]
    else:
        path = encoded(_text(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")), "/")
    headers = {name[5:].replace("_", "-").lower(): _text(value) for name, value in environ.items()
               if name.startswith("HTTP_")}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = _text(environ[name])
    is_form = headers.get("content-type", "").partition(";")[0].strip().lower() == FORM
    form = decoded_pairs(body.decode("utf-8", "surrogateescape")) if is_form else []
    return SignedRequest(str(environ["REQUEST_METHOD"]), _text(path), _text(environ.get("QUERY_STRING", "")), headers,
                         form, body_hash or hashlib.sha256(body).hexdigest(), str(environ.get("REMOTE_ADDR") or ""))


def _text(latin: str) -> str:
    """WSGI's text of bytes as the text that they mean."""
    return latin.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def decoded_pairs(text: str) -> list[tuple[str, str]]:
    """Pairs of a query or form, in order."""
    return urllib.parse.parse_qsl(text, keep_blank_values=True, errors="surrogateescape")


def encoded(text: str, safe: str = "") -> str:
    """Percent-encoded as AWS's versions 2 and 4 want it: all but letters, digits and ``-_.~``."""
    return urllib.parse.quote(text, safe="-_.~" + safe, errors="surrogateescape")


def decoded(text: str) -> str:
    """The reverse, for a path: a plus is a plus."""
    return urllib.parse.unquote(text, errors="surrogateescape")


def sole_values(pairs: Pairs) -> dict[str, str]:
    """name -> value. SignatureRefused (DUPLICATE): of two values, a signature might cover one and an API use the other.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise SignatureRefused(SignatureFault.DUPLICATE, name)
        found[name] = value
    return found


def needed(given: Mapping[str, str], name: str) -> str:
    """SignatureRefused (MISSING) when it is absent or empty."""
    if not given.get(name):
        raise SignatureRefused(SignatureFault.MISSING, name)
    return given[name]


def is_signed(signature: Signature, secret: str) -> bool:
    """Whether the one with this secret made it. It takes as long for a wrong signature as for a right one."""
    matches = [hmac.compare_digest(_bytes(signed(signature, secret, text)), _bytes(signature.value))
               for text in signature.strings_to_sign]
    return any(matches)


def signed(signature: Signature, secret: str, text: str) -> str:
    """``text`` signed with the secret, in the way of ``signature``."""
    if signature.scope:
        return hmac.digest(signing_key(secret, signature.scope), _bytes(text), "sha256").hex()
    return base64.b64encode(hmac.digest(_bytes(secret), _bytes(text), signature.digest)).decode()


def signing_key(secret: str, scope: Scope4) -> bytes:
    """The key of version 4, which is of one day, region and service."""
    key = _bytes(f"AWS4{secret}")
    for part in (*scope, "aws4_request"):
        key = hmac.digest(key, _bytes(part), "sha256")
    return key


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def check_age(at: float, now: float, what: str, skew_s: float = SKEW_S) -> float:
    """When it is too old. Times are in seconds since 1970. SignatureRefused (TOO_OLD, TOO_NEW) names ``what`` gave the
    time."""
    if at < now - skew_s:
        raise SignatureRefused(SignatureFault.TOO_OLD, what)
    if at > now + skew_s:
        raise SignatureRefused(SignatureFault.TOO_NEW, what)
    return at + skew_s


def check_end(end: float, now: float, what: str, longest_s: float = LONGEST_LIFE_S) -> None:
    """SignatureRefused: TOO_OLD past its end, TOO_LONG when that is further away than ``longest_s``."""
    if end < now:
        raise SignatureRefused(SignatureFault.TOO_OLD, what)
    if end > now + longest_s:
        raise SignatureRefused(SignatureFault.TOO_LONG, what)


#: How clients write the times of ISO 8601; seconds may have a fraction, which counts for nothing here.
_ISO = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def iso_time(text: str, what: str) -> float:
    """Seconds since 1970; without a zone it is UTC. SignatureRefused (MALFORMED) names ``what`` gave it."""
    match = _ISO.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        *numbers, zone = match.groups()
        parsed = datetime.datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*numbers) + (zone or "Z"))
        return parsed.timestamp()
    except (ValueError, OverflowError):
        raise SignatureRefused(SignatureFault.MALFORMED, what) from None


def http_time(text: str, what: str) -> float:
    """The same of the form that HTTP's ``Date`` has."""
    try:
        parsed = email.utils.parsedate_to_datetime(text)
        return parsed.replace(tzinfo=parsed.tzinfo or datetime.UTC).timestamp()
    except (ValueError, OverflowError, TypeError):
        raise SignatureRefused(SignatureFault.MALFORMED, what) from None
