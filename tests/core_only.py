"""Tests of the core run where neither ``nova.legacy`` nor ``nova.devel`` can be imported: the core does without them.

The fake driver alone is there, as a driver that nova-compute loads by its name.
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
    """Finds no module of the extras."""

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if is_extra(name):
            raise ImportError(f"{name} is not part of the core: this process has only that ({SWITCH})", name=name)
        return None


def is_extra(name: str) -> bool:
    """Whether a module is in ``nova.legacy`` or ``nova.devel``, and no part of the fake driver."""
    if name == "nova.devel" or name == DRIVER or name.startswith(f"{DRIVER}."):
        return False
    return any(name == one or name.startswith(f"{one}.") for one in EXTRAS)


def install() -> None:
    """Refuse them from here on, where the environment says so."""
    if os.environ.get(SWITCH):
        sys.meta_path.insert(0, Refusing())
