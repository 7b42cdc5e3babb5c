"""Named formats of texts in request bodies and queries: name -> (accepts the text?, what would be accepted)."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable

_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_TRUE = ("True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t")
_FALSE = ("False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f")

#: Every spelling of a boolean that the API takes, and what it means.
BOOLEANS: dict[object, bool] = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}


def is_uuid(text: str) -> bool:
    """32 hexadecimal digits, in any case, with or without hyphens where RFC 9562 has them."""
    return _UUID.fullmatch(text) is not None


def is_printable(text: str) -> bool:
    """No control characters, no line ends, nothing unassigned."""
    return text.isprintable() or not any(
        category[0] == "C" or category in ("Zl", "Zp") for category in map(unicodedata.category, text))


def is_name(text: str) -> bool:
    """Printable, not empty, and with no blank at either end."""
    return is_printable(text) and text == text.strip() and text != ""


def is_loose_name(text: str) -> bool:
    """Under /v2: blanks at the ends are allowed, but not nothing else."""
    return is_printable(text) and text.strip() != ""


def is_zone_name(text: str) -> bool:
    """A name without a colon, which stands between zone and host in a create."""
    return is_name(text) and ":" not in text


def is_ipv4(text: str) -> bool:
    """Four numbers with dots (RFC 791); no prefix, no leading zeros."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    """An address in any form of RFC 4291; no prefix, and no zone (``%eth0``)."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def canonical_address(text: str | None) -> str | None:
    """An accepted IP address in its one short form, of at most 39 characters; "no address" stays as it is."""
    return str(ipaddress.ip_address(text)) if text else text


def is_cidr(text: str) -> bool:
    """An address with a prefix or mask, of IPv4 or IPv6; bits of hosts may be set."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_base64(text: str) -> bool:
    """The standard alphabet with its padding (RFC 4648); white space is ignored."""
    try:
        base64.b64decode(re.sub(r"\s", "", text).encode(), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_regex(text: str) -> bool:
    """A regular expression that Python takes, and not empty."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return text != ""


def is_time(text: str) -> bool:
    """A date, or date and time, that :func:`to_time` takes."""
    try:
        to_time(text)
    except ValueError:
        return False
    return True


def is_mac(text: str) -> bool:
    """Six pairs of hexadecimal digits with colons, in any case."""
    return _MAC.fullmatch(text) is not None


def to_time(text: str) -> datetime.datetime:
    """ISO 8601 -> UTC without zone. ValueError when it is no time. A ``+`` lost to URL decoding is a blank."""
    text = text.strip()
    if len(text) < 10:
        raise ValueError(f"{text} is no ISO 8601 date and time")
    time = datetime.datetime.fromisoformat(re.sub(r" (\d\d:?\d\d)$", r"+\1", text) if "T" in text else text)
    if time.tzinfo is None:
        return time
    try:
        return time.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"{text} is before the first year, or after the last") from None


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
