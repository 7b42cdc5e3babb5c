"""Former name of :mod:`nova.devel`: conftest.py files that import from here work for one more release."""

from __future__ import annotations

import sys

from nova import devel
from nova.devel import running

sys.modules[f"{__name__}.running"] = running


def __getattr__(name: str) -> object:
    return getattr(devel, name)
