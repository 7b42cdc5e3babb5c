"""The version of the installed package."""

from __future__ import annotations

import importlib.metadata


def release() -> str:
    """The version of the installed package, as ``nova-manage version`` says it; 0.1.0 in a checkout that is not
    installed."""
    try:
        return importlib.metadata.version("nova-iaas")
    except importlib.metadata.PackageNotFoundError:
        return "0.1.0"
