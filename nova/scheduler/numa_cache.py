"""Cached verdicts on whether servers with NUMA cells and devices fit on hosts, shared by equal hosts.

The rule is the same as the claim's (:mod:`nova.model.numa.fit`), and counts the guests there and pending ones.
"""

from __future__ import annotations

import msgspec

from nova.model.numa.fit import why_not
from nova.model.numa.topology import HostTopology, Wanted
from nova.scheduler.provider_fit import topology_claims_of
from nova.scheduler.views import HostView

MOST = 4096  # cached verdicts on empty hosts
MOST_HOSTS = 65536  # hosts with a known topology


class NumaFitCache:
    """Verdicts of one filter. A host's last verdict is stored in its view, which is replaced when the host changes.
    Verdicts on empty hosts are stored by topology, because many hosts of a fleet are equal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[int, tuple[HostTopology, int]] = {}  # by provider id
        self._numbers: dict[bytes, int] = {}  # topology -> number
        self._empty: dict[tuple[int, bytes], str] = {}  # (topology, wanted) -> why not, or ""
        self._key: tuple[Wanted, bytes] = (Wanted(), b"")

    def why_not(self, host: HostView, wanted: Wanted) -> str | None:
        """Return the reason in a few words without the host's name; None if the server fits."""
        kept = host.kept.get(self._name)
        if kept is not None and (kept[0] is wanted or kept[0] == wanted):
            return kept[1] or None
        guests = topology_claims_of(host)
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
        """Return a number that is the same for hosts with equal topologies."""
        topology, key = host.state.topology, host.provider_id
        found = self._kinds.get(key)
        if topology is not None and (found is None or found[0] is not topology):
            if max(len(self._kinds), len(self._numbers)) >= MOST_HOSTS:
                for known in (self._kinds, self._numbers, self._empty):
                    known.clear()  # together: the numbers start again
            number = self._numbers.setdefault(msgspec.msgpack.encode(topology), len(self._numbers))
            found = self._kinds[key] = (topology, number)
        return found[1] if found else -1

    def _encoded(self, wanted: Wanted) -> bytes:
        """Return the encoded requirements, encoded once per decision, which passes the same object for all hosts."""
        last = self._key
        if last[0] is not wanted:
            last = self._key = (wanted, msgspec.msgpack.encode(wanted))
        return last[1]


def _verdict(host: HostView, wanted: Wanted) -> str:
    return why_not(host.state.topology, topology_claims_of(host), wanted) or ""


__all__ = ["NumaFitCache"]
