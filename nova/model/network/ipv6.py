"""IPv6 addresses that guests configure themselves: computed, not allocated."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable


def _eui64(mac: str, _project: str) -> int:
    """Return the interface id of RFC 2462 and RFC 4291, appendix A: the MAC with ff:fe inserted and the universal bit
    inverted."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return int.from_bytes(bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:])


def _of_account(mac: str, project: str) -> int:
    """Return the interface id made of 32 bits of the project's digest, ff, and the last three octets of the MAC."""
    digest = hashlib.sha1(project.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4] + b"\xff" + bytes.fromhex(mac.replace(":", ""))[3:])


#: ``ipv6_backend`` -> the lower 64 bits from MAC and project
BACK_ENDS: dict[str, Callable[[str, str], int]] = {"rfc2462": _eui64, "account_identifier": _of_account}


def address(cidr: str, mac: str, project_id: str = "", back_end: str = "rfc2462") -> str:
    """Return the address of a MAC in a range (/64, or shorter)."""
    prefix = int(ipaddress.IPv6Network(cidr, strict=False).network_address)
    return str(ipaddress.IPv6Address(prefix | BACK_ENDS[back_end](mac, project_id)))
