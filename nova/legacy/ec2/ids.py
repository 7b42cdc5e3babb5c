"""Translation between UUIDs and EC2 ids. A mapping never changes, so it is cached; the cache is bounded, since most
entries are of servers that no longer exist."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping

from nova.legacy.ec2.faults import absent, malformed
from nova.model.ec2 import KINDS, ec2_id, may_be_id
from nova.rpc.contracts.conductor import ConductorRPC

MOST_KEPT = 20_000  # then the cache is cleared; about 10 MB
_FORM = re.compile(r"([a-z]+)-([0-9a-f]{1,15})", re.ASCII)


class IdCache:
    """The id cache of one process. ``conductor``: a client of ConductorRPC."""

    def __init__(self, conductor: ConductorRPC) -> None:
        self._conductor = conductor
        self._numbers: dict[tuple[str, str], int] = {}
        self._meant: dict[tuple[str, int], str] = {}
        self._lock = threading.Lock()

    def of(self, prefix: str, ids: Iterable[str]) -> Mapping[str, str]:
        """Map the valid ids to their EC2 ids, with at most one RPC call, for ids that are not cached."""
        kind, wanted = KINDS[prefix], tuple(dict.fromkeys(one for one in ids if may_be_id(one)))
        known = self._numbers
        new = tuple(one for one in wanted if (kind, one) not in known)
        if not new:
            return {one: ec2_id(prefix, known[kind, one]) for one in wanted}
        given = self._conductor.assign_ec2_numbers(kind, new)
        self._keep(kind, given)
        return {one: ec2_id(prefix, given[one] if one in given else known[kind, one]) for one in wanted}

    def meant(self, prefix: str, shown: Iterable[str]) -> Mapping[str, str]:
        """Map EC2 ids to ids. An image id may have any image prefix.

        Raises the resource type's Ec2Error if an id is malformed or absent.
        """
        kind, wanted = KINDS[prefix], {one: _number(prefix, one) for one in shown}
        known = self._meant  # snapshot: another request may replace the cache
        new = tuple(number for number in wanted.values() if (kind, number) not in known)
        given = self._conductor.get_ec2_ids(kind, new) if new else {}
        self._keep(kind, {one: number for number, one in given.items()})
        found = {}
        for one, number in wanted.items():
            id = given.get(number) or known.get((kind, number))
            if id is None:
                raise absent(kind, one)
            found[one] = id
        return found

    def _keep(self, kind: str, numbers: Mapping[str, int]) -> None:
        with self._lock:
            if len(self._numbers) > MOST_KEPT:
                self._numbers, self._meant = {}, {}
            for id, number in numbers.items():
                self._numbers[kind, id] = number
                self._meant[kind, number] = id


def _number(prefix: str, shown: str) -> int:
    match = _FORM.fullmatch(shown.strip().lower())
    if match is None or KINDS.get(match[1]) != KINDS[prefix]:
        raise malformed(KINDS[prefix], shown)
    return int(match[2], 16)
