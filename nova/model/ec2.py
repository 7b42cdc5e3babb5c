"""EC2 identifiers: a prefix for the kind, and eight hexadecimal digits of a number that the cloud assigns once.

Source: EC2 API of nova (ids by mapping tables); the user guide's "Resource IDs".
"""

from __future__ import annotations

from collections.abc import Mapping

INSTANCE, VOLUME, SNAPSHOT, IMAGE = "instance", "volume", "snapshot", "image"
GROUP, ADDRESS, KEY_PAIR = "security-group", "elastic-ip", "key-pair"
NETWORK, SUBNET, INTERFACE, RULE = "vpc", "subnet", "network-interface", "security-group-rule"

LONGEST_ID = 64  # characters of an id that may have a number: image owners may write any text in place of an id

#: An image's prefix follows its container format; all three kinds of image share one number sequence.
IMAGE_PREFIXES = {"aki": "aki", "ari": "ari"}
MACHINE = "ami"
#: prefix of an id -> its kind
KINDS: Mapping[str, str] = {
    "i": INSTANCE, "vol": VOLUME, "snap": SNAPSHOT, MACHINE: IMAGE, "aki": IMAGE, "ari": IMAGE, "sg": GROUP,
    "eipalloc": ADDRESS, "eipassoc": ADDRESS, "key": KEY_PAIR, "vpc": NETWORK, "subnet": SUBNET, "eni": INTERFACE,
    "sgr": RULE}


def ec2_id(prefix: str, number: int) -> str:
    """Return an EC2 id, such as ``i-0000000a`` for ("i", 10)."""
    return f"{prefix}-{number:08x}"


def may_be_id(text: object) -> bool:
    """Return whether the value can be the id of a resource, which has an EC2 number."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_ID


def image_prefix(container_format: str | None) -> str:
    """Return ``aki`` or ``ari`` for these formats, otherwise ``ami``."""
    return IMAGE_PREFIXES.get(container_format or "", MACHINE)
