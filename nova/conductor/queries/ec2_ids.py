"""Numeric ids of the EC2 API."""

from __future__ import annotations

from collections.abc import Mapping

from nova.conductor import ec2_numbers
from nova.conductor.engine.deps import Deps
from nova.db.server import ec2_ids


class Ec2Ids:
    """EC2 id calls of ConductorRPC. Ids never change, so callers may cache every response."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def assign_ec2_numbers(self, kind: str, ids: tuple[str, ...]) -> Mapping[str, int]:
        """Return id -> number for all of the ids."""
        return ec2_numbers.numbers(self.deps, kind, ids)

    def get_ec2_ids(self, kind: str, wanted: tuple[int, ...]) -> Mapping[int, str]:
        """Return number -> id; unassigned numbers are left out."""
        with self.deps.api.reading() as tx:
            return ec2_ids.meant(tx, kind, wanted)
