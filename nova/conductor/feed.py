"""What schedulers know of hosts: states, not deltas, sent as they change and whenever they are asked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from nova import errors
from nova.conductor.world import World
from nova.db import hosts as host_rows
from nova.db.ledger import DISK_GB, MEMORY_MB, VCPU, Usage
from nova.db.services import as_time
from nova.model.base import Time
from nova.model.hosts import HostState, HostStates, Stamp

LOG = logging.getLogger(__name__)

_AMOUNTS = ((VCPU, "vcpus"), (MEMORY_MB, "memory_mb"), (DISK_GB, "disk_gb"))


class Feed:
    """Reads states from both databases, and casts them to every scheduler."""

    def __init__(self, world: World) -> None:
        self.world = world

    def states(self, known: Sequence[Stamp] = (), everything: bool = True) -> HostStates:
        """States newer than the stamps; all of them for ``everything``."""
        rows, found = self._read()
        stamps = {(stamp.host, stamp.node): stamp for stamp in known}
        alive = tuple((row.host, row.last_seen_at) for row in rows if row.last_seen_at is not None)
        gone = tuple(sorted(set(stamps) - {(one.host, one.node) for one in found}))
        if not everything:
            found = [one for one in found if _newer(one, stamps.get((one.host, one.node)))]
        return HostStates(states=tuple(found), now=as_time(rows[0].clock) if rows else None, complete=everything,
                          alive=alive, gone=gone)

    def _read(self, host: str | None = None) -> tuple[list[Any], list[HostState]]:
        """Rows of nodes and their states, of all hosts or of one."""
        with self.world.cell.reading() as tx:
            rows = host_rows.node_rows(tx, host)
        with self.world.api.reading() as tx:
            providers = host_rows.provider_rows(tx, host=host)
        return rows, [state(row, providers[row.uuid], self.world.settings.default_availability_zone)
                      for row in rows if row.uuid in providers]

    def after_claims(self, usages: Sequence[Usage], claimed: Sequence[str]) -> None:
        """Tell the schedulers a provider's new amounts, and which servers' claims are in them. No host is named: what
        else belongs to the generation (totals, guests) is not known here, and comes with the next sweep."""
        if usages:
            self._cast(HostStates(states=tuple(self._resources(usage) for usage in usages), claimed=tuple(claimed)))

    def after_release(self, providers: Sequence[int]) -> None:
        """The same, for providers whose numbers must be read again."""
        if not providers:
            return
        with self.world.api.reading() as tx:
            rows = host_rows.provider_rows(tx, providers)
        self._cast(HostStates(states=tuple(
            HostState(host=row["host"], node=row["name"], provider_id=row["id"], generation=row["generation"],
                      instances=row["consumers"], **_resources(row["classes"])) for row in rows.values())))

    def host_changed(self, host: str | None = None) -> None:
        """A host was registered, changed, enabled, disabled: send what is known of it (of all, for None)."""
        if host is None:
            self._cast(self.states())
            return
        rows, found = self._read(host)
        if rows:
            alive = tuple((row.host, row.last_seen_at) for row in rows if row.last_seen_at is not None)
            self._cast(HostStates(states=tuple(found), now=as_time(rows[0].clock), alive=alive))

    def alive(self, beats: Sequence[tuple[str, Time]], now: Time | None) -> None:
        self._cast(HostStates(alive=tuple(beats), now=now))

    def _resources(self, usage: Usage) -> HostState:
        numbers: dict[str, Any] = {}
        for name, field in _AMOUNTS:
            capacity, used = usage.amounts.get(name, (0, 0))
            numbers |= {f"{field}_capacity": capacity, f"{field}_used": used}
        return HostState(host="", node="", provider_id=usage.provider_id, generation=usage.generation, **numbers)

    def _cast(self, states: HostStates) -> None:
        try:
            self.world.scheduler.update_hosts(states)
        except errors.NovaError as error:  # the periodic sweep repairs what was lost
            LOG.debug("schedulers were not told: %s", error)


def state(row: Any, provider: dict[str, Any], zone: str) -> HostState:
    """A node's whole state from its row (of ``node_rows``) and its provider's."""
    facts = row.facts
    return HostState(
        host=row.host, node=row.name, provider_id=provider["id"], generation=provider["generation"],
        instances=provider["consumers"], **_resources(provider["classes"]), service_version=row.service_version,
        enabled=not row.disabled, forced_down=row.forced_down, disabled_reason=row.disabled_reason,
        last_seen_at=row.last_seen_at, hypervisor_type=facts.hypervisor_type,
        hypervisor_version=facts.hypervisor_version, supported=facts.supported, capabilities=facts.capabilities,
        traits=facts.traits, aggregates_version=1, zone=zone)


def _resources(classes: dict[str, tuple[int, int, float, int]]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, field in _AMOUNTS:
        total, reserved, ratio, used = classes.get(name, (0, 0, 1.0, 0))
        numbers |= {f"{field}_total": total, f"{field}_capacity": int((total - reserved) * ratio),
                    f"{field}_used": used}
    return numbers


def _newer(one: HostState, known: Stamp | None) -> bool:
    return known is None or (one.generation, one.service_version, one.aggregates_version) != \
        (known.generation, known.service_version, known.aggregates_version)


__all__ = ["Feed", "state"]
