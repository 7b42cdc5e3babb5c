"""What servers should hold of hosts against what they hold: pure, for ``nova-manage placement``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

#: Kinds of differences. ORPHAN: of a consumer that is gone. EXTRA: of a server that has nothing there (any more).
#: MISSING: nothing is held where the server is. WRONG: other amounts than it needs.
ORPHAN, EXTRA, MISSING, WRONG = "orphan", "extra", "missing", "wrong"
#: Kinds that are cured by giving back.
TOO_MUCH = (ORPHAN, EXTRA)


class NodeHolder(NamedTuple):
    """A node of a host, and who holds something of it: a server, or a move of one."""

    host: str
    node: str
    consumer: str


Amounts = Mapping[str, int]  # resource class -> how much, over the node's whole tree


class KnownServer(NamedTuple):
    """What is true of a server. ``gone``: it is no more, or never was. ``unsure``: nothing is said of it now, for
    something works on it, or failed half-way. ``cleanup_hosts``: hosts with a cleanup for it: what it
    holds there stays until they did it."""

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
        """The difference in one line for an operator: host, server, what is held and what is needed."""
        what = {ORPHAN: "is gone", EXTRA: "is not there", MISSING: "holds nothing there", WRONG: "holds other amounts"}
        amounts = [f"{word} {_listed(amounts)}" for word, amounts in (("held", self.held), ("needed", self.needed))
                   if amounts]
        of_move = "" if self.place.consumer == self.server else f" (by its move {self.place.consumer})"
        return f"{self.place.host} ({self.place.node}): server {self.server}{of_move} {what[self.kind]}: " \
               f"{'; '.join(amounts)}"


def compare(known: KnownServer, held: Mapping[NodeHolder, Amounts]) -> list[Difference]:
    """Nothing of what is unsure."""
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
    """How many differences of each kind there are, such as ``2 orphan, 1 wrong``; ``nothing`` without any."""
    counts = {kind: sum(one.kind == kind for one in found) for kind in (ORPHAN, EXTRA, MISSING, WRONG)}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def _listed(amounts: Amounts) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items()))


__all__ = ["EXTRA", "MISSING", "ORPHAN", "TOO_MUCH", "WRONG", "Amounts", "Difference", "KnownServer", "NodeHolder",
           "compare",
           "summary"]
