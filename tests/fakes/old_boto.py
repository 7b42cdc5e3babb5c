"""boto 2 on newer Python versions: a client that users still have, whose last release was for Python 3.6."""

from __future__ import annotations

import sys
import types

import six

#: Modules of its copy of six, whose import hook does not work since Python 3.12; six itself still works.
MOVES = ("_thread", "configparser", "http_client", "queue", "urllib", "urllib.error", "urllib.parse", "urllib.request")


def make_importable() -> None:
    """Replace its copy of six by six, and provide an empty ``imp``, which it only uses to load plugins."""
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
