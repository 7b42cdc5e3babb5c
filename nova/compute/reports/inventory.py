"""What this host offers: the driver's nodes with the operator's reservations and ratios, sent when it changed."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nova.compute.abilities import traits_of
from nova.compute.host import Host, replace_file
from nova.compute.reports.build_stats import BuildHealth, moved
from nova.compute.reports.provider_config import ProviderConfig, strangers, with_additions
from nova.conf.base import Options
from nova.model.host.hosts import Inventory, Node
from nova.model.placement.providers import ClassInventory
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

VERSION_FILE = "inventory_version"
MEMORY_STEP_MB, DISK_STEP_GB = 256, 1  # what is used goes up and down all the time; less than this is no news


class InventoryReports:
    """Sends inventories; ``options`` are those of ``[DEFAULT]`` in ``nova/conf/compute.py``, ``additions`` what the
    operator's files give this host's providers, ``condition`` how the host is doing."""

    def __init__(self, driver: Driver, conductor: ConductorHostRPC, options: Options, host: Host,
                 additions: tuple[ProviderConfig, ...] = (), condition: BuildHealth | None = None) -> None:
        self._driver, self._conductor, self._options, self._host = driver, conductor, options, host
        self._additions, self._condition = additions, condition or BuildHealth()
        self._file = host.state_path / VERSION_FILE
        self._sent: tuple[Node, ...] | None = None
        self._lock = threading.Lock()

    def send(self, host_id: str, always: bool = False) -> bool:
        """Send what the host has, if it changed (or ``always``); whether it was sent."""
        with self._lock:
            nodes = with_additions((self.offered(node) for node in self._driver.nodes()), self._additions)
            metrics = self._condition.measure()
            uptime = self._driver.host_uptime.uptime() if self._driver.host_uptime is not None else None
            nodes = tuple(msgspec.structs.replace(self._condition.of(node, metrics), uptime=uptime) for node in nodes)
            for one in strangers(nodes, self._additions) if self._sent is None else ():
                LOG.warning("%s names provider %s, which is none of this host's", one.source, one.provider)
            if not always and not _is_news(self._sent, nodes):
                return False
            inventory = Inventory(host=self._host.name, host_id=host_id, nodes=nodes, version=self._next_version())
            self._conductor.report_inventory(self._host.name, inventory)
            self._sent = nodes
            LOG.debug("sent inventory %d: %d nodes", inventory.version, len(nodes))
            return True

    def offered(self, node: Node) -> Node:
        """A driver's node as it is reported, but for the files' additions."""
        return offered(node, self._options, self._host.my_ip, traits_of(self._driver))

    def _next_version(self) -> int:
        """Grows over restarts too: kept before it is used. A damaged file starts from the clock, which is greater."""
        version = _read(self._file)
        if version is None:
            version = int((self._host.clock.now()).timestamp())
        replace_file(self._file, str(version + 1).encode())
        return version + 1


def offered(node: Node, options: Options, my_ip: str = "", abilities: Iterable[str] = ()) -> Node:
    """A driver's node as the scheduler should see it. ``abilities``: traits of what its driver can do. Processors kept
    for the host are those that guests share; dedicated ones where there are no others."""
    cpu_ratio = _ratio(options.cpu_allocation_ratio, options.initial_cpu_allocation_ratio)
    ram_ratio = _ratio(options.ram_allocation_ratio, options.initial_ram_allocation_ratio)
    kept = options.reserved_host_cpus
    return msgspec.structs.replace(
        node, topology=node.topology and msgspec.structs.replace(node.topology, cpu_ratio=cpu_ratio,
                                                                 memory_ratio=ram_ratio),
        inventories=node.inventories if node.vcpus or not kept else _keep_pcpus(node.inventories, kept),
        reserved_vcpus=kept if node.vcpus else 0, reserved_memory_mb=options.reserved_host_memory_mb,
        reserved_disk_gb=math.ceil(options.reserved_host_disk_mb / 1024),
        cpu_allocation_ratio=cpu_ratio, ram_allocation_ratio=ram_ratio,
        disk_allocation_ratio=_ratio(options.disk_allocation_ratio, options.initial_disk_allocation_ratio),
        host_ip=node.host_ip or my_ip, traits=tuple(sorted({*node.traits, *abilities})))


def _keep_pcpus(inventories: Iterable[ClassInventory], kept: int) -> tuple[ClassInventory, ...]:
    return tuple(msgspec.structs.replace(one, reserved=min(kept, one.total)) if one.resource_class == "PCPU" else one
                 for one in inventories)


def _ratio(given: float | None, initial: float) -> float:
    """0.0 meant "unset" to older configuration files."""
    return given or initial


def _is_news(before: tuple[Node, ...] | None, now: tuple[Node, ...]) -> bool:
    if before is None or len(before) != len(now):
        return True
    return any(_steady(old) != _steady(new) or _moved(old, new) for old, new in zip(before, now, strict=True))


def _steady(node: Node) -> Node:
    """The node without what guests and the host's other work change all the time."""
    return msgspec.structs.replace(node, memory_mb_used=0, local_gb_used=0, disk_available_least_gb=None, metrics={},
                                   uptime=None)


def _moved(old: Node, new: Node) -> bool:
    return (abs(old.memory_mb_used - new.memory_mb_used) >= MEMORY_STEP_MB
            or abs(old.local_gb_used - new.local_gb_used) >= DISK_STEP_GB
            or abs((old.disk_available_least_gb or 0) - (new.disk_available_least_gb or 0)) >= DISK_STEP_GB
            or moved(old.metrics, new.metrics) or _load_moved(old, new))


def _load_moved(old: Node, new: Node) -> bool:
    """By a quarter of its processors, in the average of 15 minutes: what operators see of it must not be days old."""
    if old.uptime is None or new.uptime is None:
        return old.uptime is not new.uptime
    return abs(old.uptime.load[2] - new.uptime.load[2]) >= max(1.0, new.vcpus / 4)


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return 0
    except ValueError:
        return None
