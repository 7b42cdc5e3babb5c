"""Ids as EC2's API has them."""

from __future__ import annotations

from collections.abc import Mapping

from nova.conductor import ec2_numbers
from nova.conductor.engine.deps import Deps
from nova.db.server import ec2_ids


class Ec2Ids:
    """Calls of ConductorRPC. Every answer is true for ever, so that whoever asked may keep it."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def assign_ec2_numbers(self, kind: str, ids: tuple[str, ...]) -> Mapping[str, int]:
        """id -> number, of all of them."""
        return ec2_numbers.numbers(self.deps, kind, ids)

    def get_ec2_ids(self, kind: str, wanted: tuple[int, ...]) -> Mapping[int, str]:
        """number -> id; a number that was never given is left out."""
        with self.deps.api.reading() as tx:
            return ec2_ids.meant(tx, kind, wanted)
