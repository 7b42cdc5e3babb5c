"""Hosts, requests and options with sensible defaults, for tests of the scheduler."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

from nova.model.host.hosts import HostState, HostStates
from nova.model.scheduling.decisions import PlacementRequest, Resources
from nova.scheduler.snapshot import HostTable, Snapshot
from nova.scheduler.views import HostView, Load, view_of

NOW = datetime.datetime(2025, 6, 1, 12, 0, 0)


def later(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


class Clock:
    """A monotonic clock that only tests advance."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def host_state(host: str = "cn1", **fields: Any) -> HostState:
    """Return an empty QEMU host with 16 vcpus, 16 GB memory and 100 GB disk, and a current report."""
    defaults: dict[str, Any] = {
        "node": host, "provider_id": 1, "generation": 1, "service_version": 1, "aggregates_version": 1,
        "vcpus_capacity": 16, "memory_mb_capacity": 16384, "disk_gb_capacity": 100, "vcpus_total": 16,
        "memory_mb_total": 16384, "disk_gb_total": 100, "last_seen_at": NOW, "hypervisor_type": "QEMU",
        "hypervisor_version": 7_002_000, "supported": (("x86_64", "qemu", "hvm"), ("i686", "qemu", "hvm"))}
    return HostState(host=host, **{**defaults, **fields})


def host_view(host: str = "cn1", up: bool = True, **fields: Any) -> HostView:
    """Return the view of a host. ``busy`` and ``pending`` belong to the view, other fields to the state."""
    load = Load(busy=fields.pop("busy", 0), servers=fields.pop("pending", 0))
    return view_of(host_state(host, **fields), up, load)


def snapshot_of(*states: HostState) -> Snapshot:
    return Snapshot(tuple(view_of(state, up=True) for state in states))


def table_of(*states: HostState, clock: Clock | None = None) -> HostTable:
    """Return a table with a complete report of these hosts; a host is down after 90 s."""
    table = HostTable(90, clock or Clock())
    table.update(HostStates(states=states, now=NOW, complete=True))
    return table


def placement_request(count: int = 1, vcpus: int = 1, memory_mb: int = 512, disk_gb: int = 1,
                      **fields: Any) -> PlacementRequest:
    need = Resources(vcpus=vcpus, memory_mb=memory_mb, disk_gb=disk_gb)
    uuids = fields.pop("server_uuids", tuple(f"server-{number}" for number in range(count)))
    return PlacementRequest(server_uuids=uuids, resources=need, **fields)


def filter_options(**fields: Any) -> SimpleNamespace:
    """Return the defaults of ``[filter_scheduler]``, except ``fields``; ``metrics`` and ``scheduler`` are changes of
    these groups."""
    from nova.conf import filter_scheduler, metrics, scheduler

    def group(module: Any, **own: Any) -> SimpleNamespace:
        return SimpleNamespace(**{**{opt.dest: opt.default for opt in module.OPTS}, **own})
    groups = {"metrics": group(metrics, **fields.pop("metrics", {})),
              "scheduler": group(scheduler, **fields.pop("scheduler", {}))}
    return group(filter_scheduler, **groups, **fields)
