"""How long one decision of the scheduler takes, in memory, without the bus.

    python tests/bench/scheduler_decisions.py [--rounds 50]

Prints p50 and p95 in milliseconds for 10 to 10,000 hosts, one and ten servers a request: with the flavor and image of
an ordinary request, and with ones that make every filter look.
"""

from __future__ import annotations

import argparse
import datetime
import random
import statistics
import sys
import time
import tracemalloc
from types import SimpleNamespace

from nova.model.host.hosts import HostState, HostStates
from nova.model.scheduling.decisions import PlacementRequest, Resources
from nova.scheduler.service import SchedulerService, SchedulerSettings

NOW = datetime.datetime(2025, 1, 1)
SIZES = (10, 100, 1_000, 10_000)
FILTERS = ("ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter",
           "ServerGroupAffinityFilter")
PICKY = {"extra_specs": {"capabilities:hypervisor_type": "QEMU", "capabilities:free_ram_mb": ">= 2048"},
         "image_properties": {"hw_architecture": "x86_64", "hw_vm_mode": "hvm"}, "availability_zone": "nova"}


def states(count: int) -> HostStates:
    rng = random.Random(count)
    return HostStates(now=NOW, complete=True, states=tuple(HostState(
        host=f"cn{i:05}", node=f"cn{i:05}", provider_id=i + 1, generation=1, service_version=1, aggregates_version=1,
        vcpus_capacity=256, memory_mb_capacity=262_144, disk_gb_capacity=4_000, vcpus_used=rng.randrange(200),
        memory_mb_used=rng.randrange(200_000), disk_gb_used=rng.randrange(3_000), last_seen_at=NOW,
        hypervisor_type="QEMU", hypervisor_version=7_002_000,
        supported=(("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm"), ("x86_64", "qemu", "hvm")),
        capabilities={"cpu_model": "EPYC"}) for i in range(count)))


def service(count: int) -> SchedulerService:
    options = SimpleNamespace(
        available_filters=["nova.scheduler.filters.all_filters"], enabled_filters=FILTERS,
        weight_classes=["nova.scheduler.weights.all_weighers"], host_subset_size=1,
        shuffle_best_same_weighed_hosts=False, image_properties_default_architecture=None)
    conductor = SimpleNamespace(get_host_states=lambda known, everything: states(count))
    made = SchedulerService(conductor, SchedulerSettings(SimpleNamespace(host_state_sweep_interval=60), options, 90))
    made.sweep()
    return made


def measure(scheduler: SchedulerService, servers: int, rounds: int, asked_for: dict[str, object]) -> list[float]:
    """Milliseconds of each round."""
    took = []
    for round_ in range(rounds):
        request = PlacementRequest(server_uuids=tuple(f"{round_}-{i}" for i in range(servers)),
                                   resources=Resources(vcpus=1, memory_mb=512, disk_gb=1), **asked_for)
        started = time.perf_counter()
        selections = scheduler.select_hosts(request)
        took.append(1000 * (time.perf_counter() - started))
        if not all(selection.hosts for selection in selections):
            raise SystemExit(f"a server found no host: {selections[-1].details}")
    return took


def memory_of(count: int) -> float:
    """KB a host."""
    tracemalloc.start()
    kept = service(count)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 1024 / count if kept else 0.0


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args(arguments).rounds
    print(f"{'hosts':>6} {'servers':>7} {'request':>8} {'p50 ms':>8} {'p95 ms':>8}")
    for count in SIZES:
        scheduler = service(count)
        for servers in (1, 10):
            for name, asked_for in (("ordinary", {}), ("picky", PICKY)):
                took = measure(scheduler, servers, rounds, asked_for)
                print(f"{count:>6} {servers:>7} {name:>8} {statistics.median(took):>8.2f} "
                      f"{statistics.quantiles(took, n=20)[-1]:>8.2f}")
    print(f"memory: {memory_of(1_000):.1f} KB a host")


if __name__ == "__main__":
    main(sys.argv[1:])
