"""Standard names of what providers have: traits and resource classes, of the libraries that all of OpenStack takes them
from. Anybody may add names that begin with CUSTOM_.
"""

from __future__ import annotations

import re

import os_resource_classes
import os_traits

TRAITS = frozenset(os_traits.get_traits())
RESCUE_BFV = "COMPUTE_RESCUE_BFV"  # of hosts that rescue servers which boot from volumes
RESOURCE_CLASSES = frozenset(os_resource_classes.STANDARDS)

#: Stricter than the libraries' own ``is_custom``, which looks at the beginning only.
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


def is_trait(name: str) -> bool:
    """Whether it is a standard trait, or could be a custom one: CUSTOM_, then A-Z, 0-9 and _."""
    return name in TRAITS or _CUSTOM.fullmatch(name) is not None


def is_resource_class(name: str) -> bool:
    """Whether it is a standard class, or could be a custom one: CUSTOM_, then A-Z, 0-9 and _."""
    return name in RESOURCE_CLASSES or _CUSTOM.fullmatch(name) is not None
