"""Signed requests, their signatures, and the reasons for which a signature is refused."""

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
from wsgiref.types import WSGIEnvironment

from nova import failures

Pairs = Sequence[tuple[str, str]]

SKEW_S = 900  # maximum clock skew of a client, either way
LONGEST_LIFE_S = 604800  # maximum validity of a request with its own expiry: AWS's limit for presigned URLs
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
FORM = "application/x-www-form-urlencoded"


class SignatureFault(enum.Enum):
    """The reasons for which a signature is refused. The value is the message for the client."""

    UNSIGNED = "The request is not signed."
    MISSING = "The request lacks a value that its signature requires."
    MALFORMED = "A signature parameter of the request is malformed."
    UNKNOWN = "The version or method of the signature is not supported."
    NOT_TAKEN = "Signatures of this version are disabled: use version 4."
    DUPLICATE = "A parameter of a signed request occurs more than once."
    NOT_COVERED = "The request has headers or parameters that must be signed but are not."
    TOO_OLD = "The request has expired."
    TOO_NEW = "The time of the request is in the future."
    TOO_LONG = "The validity of the request exceeds the limit."
    REPEATED = "The same signed request was already used: sign it again."
    TOO_MANY = "Too many requests with wrong signatures from your address: wait, and send fewer."
    NO_SUCH_KEY = "The access key does not exist."
    MISMATCH = "The signature does not match: check the secret key and the signing method."


class AwsError(NamedTuple):
    """The HTTP status and the error code for AWS clients."""

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
    """A signature is refused. ``what``: the name of the wrong parameter, header or part, never its value, which may be
    a signature."""

    def __init__(self, fault: SignatureFault, what: str = "") -> None:
        super().__init__(f"{fault.value} ({what})" if what else fault.value)
        self.fault, self.what = fault, what


@dataclass(frozen=True)
class SignedRequest:
    """A request as it was signed.

    ``path`` and ``query`` are percent-encoded as sent; ``query`` is without its ``?``. ``form``: the decoded pairs of a
    form body, in order. ``headers``: lower-case name -> value; values of a repeated name are joined by commas.
    ``body_hash``: SHA-256 of the body's raw bytes in hexadecimal. Bytes that are not UTF-8 are surrogates, as in
    ``os.fsdecode``. ``peer``: the sender's address, which is not signed.
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
        """The query's decoded pairs, in order; a name without a value has an empty value."""
        return decoded_pairs(self.query)


class Scope4(NamedTuple):
    """The scope of a version 4 signing key. ``date``: ``yyyymmdd``."""

    date: str
    region: str
    service: str

    @property
    def text(self) -> str:
        """The scope as in a string to sign."""
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


@dataclass(frozen=True)
class Signature:
    """The signature of a request.

    ``value`` is as sent: hexadecimal in version 4, base64 in the others. ``strings_to_sign``: the strings that the
    client may have signed, since clients serialize a request in different ways; exactly one for S3. ``digest``:
    ``sha1`` or ``sha256``. Only in version 4: ``scope``, ``timestamp`` (``yyyymmddThhmmssZ``), ``payload`` (the
    client's hash or mode of the body), and the names of ``signed_headers``. ``until``: Unix time in seconds at which
    the request expires.
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


def signed_request(environ: WSGIEnvironment, body: bytes = b"", body_hash: str | None = None) -> SignedRequest:
    """Build a SignedRequest from a WSGI environment and the body, or the body's hash unless it is a form.

    The path is the raw path if the server provides it (``RAW_URI`` or ``REQUEST_URI``), else it is encoded again.
    """
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
    """Decode WSGI's Latin-1 representation of bytes as UTF-8."""
    return latin.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def decoded_pairs(text: str) -> list[tuple[str, str]]:
    """Return the decoded pairs of a query or form, in order."""
    return urllib.parse.parse_qsl(text, keep_blank_values=True, errors="surrogateescape")


def encoded(text: str, safe: str = "") -> str:
    """Percent-encode text as AWS's versions 2 and 4 require: everything except letters, digits and ``-_.~``."""
    return urllib.parse.quote(text, safe="-_.~" + safe, errors="surrogateescape")


def decoded(text: str) -> str:
    """Percent-decode a path component; a plus stays a plus."""
    return urllib.parse.unquote(text, errors="surrogateescape")


def sole_values(pairs: Pairs) -> dict[str, str]:
    """Map names to values. Raises SignatureRefused (DUPLICATE) for a repeated name: a signature might cover one value
    while the API uses the other."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise SignatureRefused(SignatureFault.DUPLICATE, name)
        found[name] = value
    return found


def needed(given: Mapping[str, str], name: str) -> str:
    """Return a required value. Raises SignatureRefused (MISSING) if it is absent or empty."""
    if not given.get(name):
        raise SignatureRefused(SignatureFault.MISSING, name)
    return given[name]


def is_signed(signature: Signature, secret: str) -> bool:
    """Return whether the signature was made with this secret, in constant time."""
    matches = [hmac.compare_digest(_bytes(signed(signature, secret, text)), _bytes(signature.value))
               for text in signature.strings_to_sign]
    return any(matches)


def signed(signature: Signature, secret: str, text: str) -> str:
    """Return the signature of ``text`` with the secret, by the method of ``signature``."""
    if signature.scope:
        return hmac.digest(signing_key(secret, signature.scope), _bytes(text), "sha256").hex()
    return base64.b64encode(hmac.digest(_bytes(secret), _bytes(text), signature.digest)).decode()


def signing_key(secret: str, scope: Scope4) -> bytes:
    """Return the version 4 signing key, which is valid for one day, region and service."""
    key = _bytes(f"AWS4{secret}")
    for part in (*scope, "aws4_request"):
        key = hmac.digest(key, _bytes(part), "sha256")
    return key


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def check_age(at: float, now: float, what: str, skew_s: float = SKEW_S) -> float:
    """Check a request's time; return the time at which it expires. Times are in seconds since 1970.

    Raises SignatureRefused (TOO_OLD, TOO_NEW) with ``what``, the name of the parameter.
    """
    if at < now - skew_s:
        raise SignatureRefused(SignatureFault.TOO_OLD, what)
    if at > now + skew_s:
        raise SignatureRefused(SignatureFault.TOO_NEW, what)
    return at + skew_s


def check_end(end: float, now: float, what: str, longest_s: float = LONGEST_LIFE_S) -> None:
    """Check a request's expiry. Raises SignatureRefused: TOO_OLD if it has passed, TOO_LONG if it is more than
    ``longest_s`` seconds from now."""
    if end < now:
        raise SignatureRefused(SignatureFault.TOO_OLD, what)
    if end > now + longest_s:
        raise SignatureRefused(SignatureFault.TOO_LONG, what)


#: The ISO 8601 times that clients send; fractions of seconds are ignored.
_ISO = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def iso_time(text: str, what: str) -> float:
    """Parse an ISO 8601 time to seconds since 1970; without a zone it is UTC.

    Raises SignatureRefused (MALFORMED) with ``what``, the name of the parameter.
    """
    match = _ISO.fullmatch(text)
    with failures.replaced((ValueError, OverflowError), lambda _: SignatureRefused(SignatureFault.MALFORMED, what)):
        if match is None:
            raise ValueError(text)
        *numbers, zone = match.groups()
        parsed = datetime.datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*numbers) + (zone or "Z"))
        return parsed.timestamp()


def http_time(text: str, what: str) -> float:
    """Parse a time in the format of HTTP's ``Date`` header, as ``iso_time`` does."""
    with failures.replaced((ValueError, OverflowError, TypeError),
            lambda _: SignatureRefused(SignatureFault.MALFORMED, what)):
        parsed = email.utils.parsedate_to_datetime(text)
        return parsed.replace(tzinfo=parsed.tzinfo or datetime.UTC).timestamp()
