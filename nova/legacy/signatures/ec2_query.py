"""EC2 signature versions 0, 1 and 2, with the signature as a parameter of the query or the form.

Version 0 covers only ``Action`` and the time, by its specification; version 1 does not cover the host and the path.
Callers that require more must check ``Signature.version``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nova.legacy.signatures.request import (
    SKEW_S,
    Signature,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    check_age,
    check_end,
    encoded,
    iso_time,
    needed,
    sole_values,
)

DIGESTS = {"HmacSHA1": "sha1", "HmacSHA256": "sha256"}

Parameters = Mapping[str, str]


def is_query_signed(request: SignedRequest) -> bool:
    """Return whether the request has any signature parameter of these versions."""
    return any(name in ("Signature", "AWSAccessKeyId", "SignatureVersion")
               for name, _ in (*request.query_pairs, *request.form))


def query_signature(request: SignedRequest, now: float, skew_s: float = SKEW_S) -> Signature:
    """Return the signature of a request. ``now``: seconds since 1970. Raises SignatureRefused."""
    parameters = sole_values([*request.query_pairs, *request.form])
    access, value = needed(parameters, "AWSAccessKeyId"), needed(parameters, "Signature")
    version = parameters.get("SignatureVersion", "0")
    if version not in STRINGS_TO_SIGN:
        raise SignatureRefused(SignatureFault.UNKNOWN, "SignatureVersion")
    digest = DIGESTS.get(parameters.get("SignatureMethod", "HmacSHA256" if version == "2" else "HmacSHA1"))
    if digest is None:
        raise SignatureRefused(SignatureFault.UNKNOWN, "SignatureMethod")
    until = _checked_until(parameters, now, skew_s)
    return Signature(version, access, value, STRINGS_TO_SIGN[version](request, parameters), digest, until=until)


def _checked_until(parameters: Parameters, now: float, skew_s: float) -> float:
    """Return the time at which the request expires, from its Timestamp or Expires.

    Expires may be at most ``SKEW_S`` from now, since an eavesdropper could use the request until then.
    """
    if "Timestamp" in parameters and "Expires" in parameters:
        raise SignatureRefused(SignatureFault.DUPLICATE, "Timestamp, Expires")
    if "Expires" in parameters:
        end = iso_time(parameters["Expires"], "Expires")
        check_end(end, now, "Expires", SKEW_S)
        return end
    return check_age(iso_time(needed(parameters, "Timestamp"), "Timestamp"), now, "Timestamp", skew_s)


def _string_0(request: SignedRequest, parameters: Parameters) -> tuple[str, ...]:
    return (needed(parameters, "Action") + (parameters.get("Timestamp") or parameters["Expires"]),)


def _string_1(request: SignedRequest, parameters: Parameters) -> tuple[str, ...]:
    names = sorted((name for name in parameters if name != "Signature"), key=str.lower)
    return ("".join(name + parameters[name] for name in names),)


def _strings_2(request: SignedRequest, parameters: Parameters) -> tuple[str, ...]:
    """Return the strings to sign of version 2: some clients sign the host with its port, some without."""
    host = needed(request.headers, "host").lower()
    pairs = "&".join(f"{encoded(name)}={encoded(value)}" for name, value in
                     sorted(parameters.items(), key=_utf8_order) if name != "Signature")
    return tuple(f"{request.method}\n{name}\n{request.path or '/'}\n{pairs}"
                 for name in dict.fromkeys((host, without_port(host))))


def _utf8_order(pair: tuple[str, str]) -> bytes:
    return pair[0].encode("utf-8", "surrogateescape")


def without_port(host: str) -> str:
    """Return the name or address in a Host header."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and (":" not in name or name.endswith("]")) else host


#: SignatureVersion -> function that returns the strings to sign.
STRINGS_TO_SIGN: Mapping[str, Callable[[SignedRequest, Parameters], tuple[str, ...]]] = {
    "0": _string_0, "1": _string_1, "2": _strings_2}
