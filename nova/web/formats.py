"""Named formats of texts in request bodies and queries: name -> (predicate, description of valid texts)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable

from nova import failures

_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_TRUE = ("True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t")
_FALSE = ("False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f")

#: Every accepted spelling of a boolean, and its value.
BOOLEANS: dict[object, bool] = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}


def is_uuid(text: str) -> bool:
    """True for 32 hexadecimal digits, in any case, with or without hyphens at the positions of RFC 9562."""
    return _UUID.fullmatch(text) is not None


def is_printable(text: str) -> bool:
    """True for text without control characters, line ends or unassigned characters."""
    return text.isprintable() or not any(
        category[0] == "C" or category in ("Zl", "Zp") for category in map(unicodedata.category, text))


def is_name(text: str) -> bool:
    """True for printable text that is not empty, without a blank at either end."""
    return is_printable(text) and text == text.strip() and text != ""


def is_loose_name(text: str) -> bool:
    """True for a name under /v2: blanks at the ends are allowed, but not only blanks."""
    return is_printable(text) and text.strip() != ""


def is_zone_name(text: str) -> bool:
    """True for a name without a colon, which separates zone and host in a create request."""
    return is_name(text) and ":" not in text


def is_ipv4(text: str) -> bool:
    """True for four numbers with dots (RFC 791), without a prefix or leading zeros."""
    with contextlib.suppress(ValueError):
        ipaddress.IPv4Address(text)
        return True
    return False


def is_ipv6(text: str) -> bool:
    """True for an address in any form of RFC 4291, without a prefix or a zone (``%eth0``)."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def canonical_address(text: str | None) -> str | None:
    """Return the shortest form of a valid IP address, of at most 39 characters; an empty value stays unchanged."""
    return str(ipaddress.ip_address(text)) if text else text


def is_cidr(text: str) -> bool:
    """True for an IPv4 or IPv6 address with a prefix or mask; host bits may be set."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_base64(text: str) -> bool:
    """True for the standard alphabet with padding (RFC 4648); white space is ignored."""
    with contextlib.suppress(binascii.Error, ValueError):
        base64.b64decode(re.sub(r"\s", "", text).encode(), validate=True)
        return True
    return False


def is_regex(text: str) -> bool:
    """True for a regular expression that Python can compile and that is not empty."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return text != ""


def is_time(text: str) -> bool:
    """True for a date, or date and time, that :func:`to_time` can parse."""
    with contextlib.suppress(ValueError):
        to_time(text)
        return True
    return False


def is_mac(text: str) -> bool:
    """True for six pairs of hexadecimal digits with colons, in any case."""
    return _MAC.fullmatch(text) is not None


def to_time(text: str) -> datetime.datetime:
    """Convert ISO 8601 text to UTC without zone. Raises ValueError for any other text. A ``+`` may be a blank, after
    URL decoding."""
    text = text.strip()
    if len(text) < 10:
        raise ValueError(f"{text} is not an ISO 8601 date and time")
    time = datetime.datetime.fromisoformat(re.sub(r" (\d\d:?\d\d)$", r"+\1", text) if "T" in text else text)
    if time.tzinfo is None:
        return time
    with failures.replaced(OverflowError,
            lambda _: ValueError(f"{text} is before the first year or after the last one")):
        return time.astimezone(datetime.UTC).replace(tzinfo=None)


FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "uuid": (is_uuid, "a UUID"),
    "name": (is_name, "printable characters, with no blank at either end"),
    "name_with_leading_trailing_spaces": (is_loose_name, "printable characters, one at least not a blank"),
    "az_name": (is_zone_name, "printable characters without a colon, with no blank at either end"),
    "printable": (is_printable, "printable characters"),
    "ipv4": (is_ipv4, "an IPv4 address"),
    "ipv6": (is_ipv6, "an IPv6 address"),
    "cidr": (is_cidr, "a network such as 192.0.2.0/24"),
    "base64": (is_base64, "base64 text"),
    "regex": (is_regex, "a valid regular expression that is not empty"),
    "date-time": (is_time, "an ISO 8601 date and time"),
    "mac-address": (is_mac, "a MAC address"),
}
