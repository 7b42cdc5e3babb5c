"""Comparison of servers' expected allocations with the existing ones: pure, for ``nova-manage placement``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

#: Kinds of differences. ORPHAN: the consumer does not exist. EXTRA: the server is not there (any more). MISSING: the
#: server has no allocation where it is. WRONG: the amounts differ from the needed ones.
ORPHAN, EXTRA, MISSING, WRONG = "orphan", "extra", "missing", "wrong"
#: Kinds that are repaired by deleting the allocation.
TOO_MUCH = (ORPHAN, EXTRA)


class NodeHolder(NamedTuple):
    """A node of a host, and a consumer with an allocation there: a server, or a migration of one."""

    host: str
    node: str
    consumer: str


Amounts = Mapping[str, int]  # resource class -> amount, over the node's whole provider tree


class KnownServer(NamedTuple):
    """State of a server. ``gone``: it was deleted, or never existed. ``unsure``: the server is not compared, as an
    operation is in progress or failed half-way. ``cleanup_hosts``: hosts with pending cleanup for it, which keep its
    allocations until then."""

    server: str
    gone: bool = False
    unsure: str = ""
    needs: Mapping[NodeHolder, Amounts] = {}
    cleanup_hosts: Collection[str] = ()


class Difference(NamedTuple):
    kind: str
    server: str
    place: NodeHolder
    held: Amounts
    needed: Amounts

    def words(self) -> str:
        """Return the difference as one line for an operator: host, server, held and needed amounts."""
        what = {ORPHAN: "does not exist", EXTRA: "is not on this host", MISSING: "has no allocation",
                WRONG: "has a wrong allocation"}
        amounts = [f"{word} {_listed(amounts)}" for word, amounts in (("held", self.held), ("needed", self.needed))
                   if amounts]
        of_move = "" if self.place.consumer == self.server else f" (by its migration {self.place.consumer})"
        return f"{self.place.host} ({self.place.node}): server {self.server}{of_move} {what[self.kind]}: " \
               f"{'; '.join(amounts)}"


def compare(known: KnownServer, held: Mapping[NodeHolder, Amounts]) -> list[Difference]:
    """Return the differences of a server; none if its state is unsure."""
    return [] if known.unsure else list(_differences(known, held))


def _differences(known: KnownServer, held: Mapping[NodeHolder, Amounts]) -> Iterator[Difference]:
    for place, needed in known.needs.items():
        needed = {name: amount for name, amount in needed.items() if amount}
        have = held.get(place, {})
        if not needed or have == needed:
            continue
        yield Difference(WRONG if have else MISSING, known.server, place, have, needed)
    for place, have in held.items():
        if place not in known.needs and place.host not in known.cleanup_hosts:
            yield Difference(ORPHAN if known.gone else EXTRA, known.server, place, have, {})


def summary(found: Sequence[Difference]) -> str:
    """Return the number of differences of each kind, such as ``2 orphan, 1 wrong``; ``nothing`` without any."""
    counts = {kind: sum(one.kind == kind for one in found) for kind in (ORPHAN, EXTRA, MISSING, WRONG)}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def _listed(amounts: Amounts) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items()))


__all__ = ["EXTRA", "MISSING", "ORPHAN", "TOO_MUCH", "WRONG", "Amounts", "Difference", "KnownServer", "NodeHolder",
           "compare",
           "summary"]
