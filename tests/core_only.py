"""Import hook for tests of the core, which must not need ``nova.legacy`` and ``nova.devel``: both are blocked.

Only the fake driver can be imported, as a driver that nova-compute loads by its name.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType

SWITCH = "NOVA_TEST_CORE"
EXTRAS = ("nova.legacy", "nova.devel", "nova.testing")
DRIVER = "nova.devel.fake"


class Refusing(importlib.abc.MetaPathFinder):
    """Import finder that refuses the modules of the extras."""

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if is_extra(name):
            raise ImportError(f"{name} is not part of the core, and is blocked in this process ({SWITCH})", name=name)
        return None


def is_extra(name: str) -> bool:
    """Return whether a module is in ``nova.legacy`` or ``nova.devel``, and is not part of the fake driver."""
    if name == "nova.devel" or name == DRIVER or name.startswith(f"{DRIVER}."):
        return False
    return any(name == one or name.startswith(f"{one}.") for one in EXTRAS)


def install() -> None:
    """Block the extras from now on, if the environment variable is set."""
    if os.environ.get(SWITCH):
        sys.meta_path.insert(0, Refusing())
