"""Verdicts on whether servers with cells and devices fit hosts, each found once for hosts that are alike.

The same rule as the claim's (:mod:`nova.model.numa.fit`), beside all that guests hold there and are about to.
"""

from __future__ import annotations

import msgspec

from nova.model.numa.fit import why_not
from nova.model.numa.topology import HostTopology, Wanted
from nova.scheduler.provider_fit import packings_of
from nova.scheduler.views import HostView

MOST = 4096  # verdicts kept on empty hosts
MOST_HOSTS = 65536  # whose topologies are known


class Verdicts:
    """For one filter. A host's last verdict is kept with its view, which goes when anything of the host changes; those
    on empty hosts are kept by what the host is, for a fleet has many of a kind."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[int, tuple[HostTopology, int]] = {}  # by provider
        self._numbers: dict[bytes, int] = {}  # of topologies
        self._empty: dict[tuple[int, bytes], str] = {}  # (topology, wanted) -> why not, or ""
        self._key: tuple[Wanted, bytes] = (Wanted(), b"")

    def why_not(self, host: HostView, wanted: Wanted) -> str | None:
        """In a few words without the host's name; None: it fits."""
        kept = host.kept.get(self._name)
        if kept is not None and (kept[0] is wanted or kept[0] == wanted):
            return kept[1] or None
        guests = packings_of(host)
        if guests or host.state.topology is None:
            verdict = _verdict(host, wanted)
        else:
            verdict = self._on_empty(host, wanted)
        host.kept[self._name] = (wanted, verdict)
        return verdict or None

    def _on_empty(self, host: HostView, wanted: Wanted) -> str:
        key = self._kind(host), self._encoded(wanted)
        verdict = self._empty.get(key)
        if verdict is None:
            if len(self._empty) >= MOST:
                self._empty.clear()
            verdict = self._empty[key] = _verdict(host, wanted)
        return verdict

    def _kind(self, host: HostView) -> int:
        """The same number for hosts whose topologies are alike."""
        topology, key = host.state.topology, host.provider_id
        found = self._kinds.get(key)
        if topology is not None and (found is None or found[0] is not topology):
            if max(len(self._kinds), len(self._numbers)) >= MOST_HOSTS:
                for known in (self._kinds, self._numbers, self._empty):
                    known.clear()  # together: the numbers begin anew
            number = self._numbers.setdefault(msgspec.msgpack.encode(topology), len(self._numbers))
            found = self._kinds[key] = (topology, number)
        return found[1] if found else -1

    def _encoded(self, wanted: Wanted) -> bytes:
        """Made once for a decision, which asks about all hosts with one object."""
        last = self._key
        if last[0] is not wanted:
            last = self._key = (wanted, msgspec.msgpack.encode(wanted))
        return last[1]


def _verdict(host: HostView, wanted: Wanted) -> str:
    return why_not(host.state.topology, packings_of(host), wanted) or ""


__all__ = ["Verdicts"]
