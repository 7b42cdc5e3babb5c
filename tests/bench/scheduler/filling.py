"""How full a fleet becomes by each setting of the weighers, until the first server of the mix finds no host.

Beside it the bound that nobody can pass: servers as sand, poured into one host as large as the fleet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nova.model.base import utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.host.hosts import HostState, HostStates
from nova.model.scheduling.decisions import PlacementRequest, Resources
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.snapshot import HostTable
from tests.bench.scheduler import flavors, fleet
from tests.bench.scheduler.clouds import scheduler_settings
from tests.bench.scheduler.report import Report

STACK = -1.0
SETTINGS: dict[str, dict[str, Any]] = {
    "spread (default)": {},
    "memory alone, spread": {"cpu_weight_multiplier": 0.0, "disk_weight_multiplier": 0.0},
    "stack": {"ram_weight_multiplier": STACK, "cpu_weight_multiplier": STACK, "disk_weight_multiplier": STACK,
              "io_ops_weight_multiplier": 0.0},
    "stack by memory": {"ram_weight_multiplier": STACK, "cpu_weight_multiplier": 0.0, "disk_weight_multiplier": 0.0,
                        "io_ops_weight_multiplier": 0.0},
    "stack memory, spread cpu": {"ram_weight_multiplier": STACK, "cpu_weight_multiplier": 1.0,
                                 "disk_weight_multiplier": 0.0, "io_ops_weight_multiplier": 0.0},
}
AMOUNTS = ("vcpus", "memory_mb", "disk_gb")


def measure(report: Report, hosts: int) -> None:
    report.table(f"fill at the first refusal, {hosts} hosts, mixed flavors", "servers", "of bound", "vcpus", "memory",
                 "disk", "setting")
    states = [_state(number, kind) for number, kind in enumerate(fleet.kinds_of(hosts))]
    room = {name: sum(getattr(one, f"{name}_capacity") for one in states) for name in AMOUNTS}
    bound, _ = _poured(room, flavors.mixed(3))
    report.row(bound, 1.0, "", "", "", "bound: one host as large as all")
    for name, fields in SETTINGS.items():
        placed, used = _filled(states, flavors.mixed(3), fields)
        report.row(placed, placed / bound, *[f"{used[one] / room[one]:.0%}" for one in AMOUNTS], name)


def _state(number: int, kind: fleet.Kind) -> HostState:
    ratio = fleet.RATIOS["VCPU"]
    name = fleet.name_of(number)
    return HostState(host=name, node=name, provider_id=number + 1, generation=1, service_version=1,
                     aggregates_version=1, vcpus_capacity=int(kind.vcpus * ratio), memory_mb_capacity=kind.memory_mb,
                     disk_gb_capacity=kind.local_gb, vcpus_total=kind.vcpus, memory_mb_total=kind.memory_mb,
                     disk_gb_total=kind.local_gb, hypervisor_type="QEMU", supported=fleet.SUPPORTED)


def _need(flavor: Flavor) -> Resources:
    return Resources(vcpus=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=flavor.root_gb)


def _poured(room: dict[str, int], mix: Iterator[Flavor]) -> tuple[int, dict[str, int]]:
    """(servers, used) until the next one finds too little of something."""
    used, count = dict.fromkeys(room, 0), 0
    for flavor in mix:
        need = {name: getattr(_need(flavor), name) for name in AMOUNTS}
        if any(used[name] + need[name] > room[name] for name in AMOUNTS):
            break
        used, count = {name: used[name] + need[name] for name in AMOUNTS}, count + 1
    return count, used


def _filled(states: list[HostState], mix: Iterator[Flavor], fields: dict[str, Any]) -> tuple[int, dict[str, int]]:
    """The same by decisions of the pipeline, each counted as claimed at once."""
    table = HostTable(90.0, pending_s=float("inf"))
    table.update(HostStates(states=tuple(states), complete=True, alive=()))
    now = utcnow()
    table.update(HostStates(alive=tuple((one.host, now) for one in states), now=now))
    pipeline = Pipeline(scheduler_settings(**fields).filter_scheduler)
    used = dict.fromkeys(AMOUNTS, 0)
    for count, flavor in enumerate(mix):
        uuid, need = f"server-{count}", _need(flavor)
        [selection] = pipeline.decide(table.snapshot(), PlacementRequest(server_uuids=(uuid,), resources=need))
        if not selection.hosts:
            return count, used
        table.count(uuid, (selection.hosts[0].host, selection.hosts[0].node), need)
        used = {name: used[name] + getattr(need, name) for name in AMOUNTS}
    raise AssertionError("the mix has no end")
