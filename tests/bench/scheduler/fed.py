"""A process that is a scheduler but for its broker: fed from a file of states, asked for servers, then measured."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import nova.cmd.scheduler
import nova.rpc.transport  # noqa: F401  what the daemon has loaded, too
from nova.model.host.hosts import HostStates
from nova.model.scheduling.decisions import PlacementRequest, Resources
from nova.rpc import codec
from nova.scheduler.service import SchedulerService
from tests.bench.scheduler.clouds import scheduler_settings
from tests.bench.scheduler.flavors import MIX

ZONES = (None, "nova")


def memory(kind: str) -> float:
    """MB, by the kernel's account: Rss or Pss."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def main() -> None:
    empty = memory("Rss")
    pages = iter(sys.argv[1:])
    conductor = SimpleNamespace(
        get_host_states=lambda known, everything: codec.unpack(Path(next(pages)).read_bytes(), HostStates))
    scheduler = SchedulerService(conductor, scheduler_settings())
    if not scheduler.sweep():
        raise SystemExit("it was not fed")
    for number, one in enumerate([*MIX, *MIX] * 2):
        need = Resources(vcpus=one.vcpus, memory_mb=one.memory_mb, disk_gb=one.root_gb)
        scheduler.select_hosts(PlacementRequest(server_uuids=(f"server-{number}",), resources=need,
                                                availability_zone=ZONES[number // len(MIX) % 2]))
    sys.stdout.write(f"empty {empty}\nrss {memory('Rss')}\npss {memory('Pss')}\n")


if __name__ == "__main__":
    main()
