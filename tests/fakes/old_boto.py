"""boto 2 on a Python that is younger than it: a client that users still have, whose last release was for Python 3.6."""

from __future__ import annotations

import sys
import types

import six

#: Modules of its own copy of six, which hooks into imports in a way that Python 3.12 took away. six itself goes on.
MOVES = ("_thread", "configparser", "http_client", "queue", "urllib", "urllib.error", "urllib.parse", "urllib.request")


def make_importable() -> None:
    """Give it six in place of its copy, and an empty ``imp``, with which it would load plugins."""
    if sys.version_info < (3, 12):
        return
    sys.modules.setdefault("imp", types.ModuleType("imp"))
    sys.modules["boto.vendored.six"] = six
    sys.modules["boto.vendored.six.moves"] = six.moves
    for name in MOVES:
        module = six.moves
        for part in name.split("."):
            module = getattr(module, part)
        sys.modules[f"boto.vendored.six.moves.{name}"] = module
