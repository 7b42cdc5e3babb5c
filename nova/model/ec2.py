"""How EC2 names things: a prefix for the kind, and eight hexadecimal digits of a number that the cloud gave once.

Source: EC2 API of nova (ids by mapping tables); the user guide's "Resource IDs".
"""

from __future__ import annotations

from collections.abc import Mapping

INSTANCE, VOLUME, SNAPSHOT, IMAGE = "instance", "volume", "snapshot", "image"
GROUP, ADDRESS, KEY_PAIR = "security-group", "elastic-ip", "key-pair"
NETWORK, SUBNET, INTERFACE, RULE = "vpc", "subnet", "network-interface", "security-group-rule"

LONGEST_ID = 64  # characters of what has a number: an image's owner may write anything where an id is to be

#: An image's prefix follows its container format; the three share one row of numbers.
IMAGE_PREFIXES = {"aki": "aki", "ari": "ari"}
MACHINE = "ami"
#: prefix of an id -> the kind that it names
KINDS: Mapping[str, str] = {
    "i": INSTANCE, "vol": VOLUME, "snap": SNAPSHOT, MACHINE: IMAGE, "aki": IMAGE, "ari": IMAGE, "sg": GROUP,
    "eipalloc": ADDRESS, "eipassoc": ADDRESS, "key": KEY_PAIR, "vpc": NETWORK, "subnet": SUBNET, "eni": INTERFACE,
    "sgr": RULE}


def ec2_id(prefix: str, number: int) -> str:
    """``i-0000000a`` of ("i", 10)."""
    return f"{prefix}-{number:08x}"


def may_be_id(text: object) -> bool:
    """Whether it can be the id of something, and have a number."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_ID


def image_prefix(container_format: str | None) -> str:
    """``aki``, ``ari``, or ``ami`` for all else."""
    return IMAGE_PREFIXES.get(container_format or "", MACHINE)
