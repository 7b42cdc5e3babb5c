"""Standard names of traits and resource classes, from the libraries that all OpenStack projects use. Every client may
add names that begin with CUSTOM_."""

from __future__ import annotations

import re

import os_resource_classes
import os_traits

TRAITS = frozenset(os_traits.get_traits())
RESCUE_BFV = "COMPUTE_RESCUE_BFV"  # trait of hosts that can rescue servers with a boot volume
RESOURCE_CLASSES = frozenset(os_resource_classes.STANDARDS)

#: Stricter than the libraries' own ``is_custom``, which only checks the prefix.
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


def is_trait(name: str) -> bool:
    """Return whether the name is a standard trait or a valid custom one: CUSTOM_, followed by A-Z, 0-9 and _."""
    return name in TRAITS or _CUSTOM.fullmatch(name) is not None


def is_resource_class(name: str) -> bool:
    """Return whether the name is a standard class or a valid custom one: CUSTOM_, followed by A-Z, 0-9 and _."""
    return name in RESOURCE_CLASSES or _CUSTOM.fullmatch(name) is not None
