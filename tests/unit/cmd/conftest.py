"""The conductor's small cloud, for commands that change what it has."""

from __future__ import annotations

from tests.unit.conductor.conftest import cloud, templates

__all__ = ["cloud", "templates"]
