"""Inventory of this host: the driver's nodes with the operator's reservations and ratios, sent when it changed."""

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
from nova.conf._options import Options
from nova.model.host.hosts import Inventory, Node
from nova.model.placement.providers import ClassInventory
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

VERSION_FILE = "inventory_version"
MEMORY_STEP_MB, DISK_STEP_GB = 256, 1  # usage changes constantly; smaller changes are not reported


class InventoryReports:
    """Sends inventories. ``options`` are those of ``[DEFAULT]`` in ``nova/conf/compute.py``; ``additions`` are the
    operator's files for this host's providers; ``condition`` is the host's health."""

    def __init__(self, driver: Driver, conductor: ConductorHostRPC, options: Options, host: Host,
                 additions: tuple[ProviderConfig, ...] = (), condition: BuildHealth | None = None) -> None:
        self._driver, self._conductor, self._options, self._host = driver, conductor, options, host
        self._additions, self._condition = additions, condition or BuildHealth()
        self._file = host.state_path / VERSION_FILE
        self._sent: tuple[Node, ...] | None = None
        self._lock = threading.Lock()

    def send(self, host_id: str, always: bool = False) -> bool:
        """Send the host's inventory if it changed (or ``always``); return whether it was sent."""
        with self._lock:
            nodes = with_additions((self.offered(node) for node in self._driver.nodes()), self._additions)
            metrics = self._condition.measure()
            uptime = self._driver.host_uptime.uptime() if self._driver.host_uptime is not None else None
            nodes = tuple(msgspec.structs.replace(self._condition.of(node, metrics), uptime=uptime) for node in nodes)
            for one in strangers(nodes, self._additions) if self._sent is None else ():
                LOG.warning("%s names provider %s, which does not exist on this host", one.source, one.provider)
            if not always and not _is_news(self._sent, nodes):
                return False
            inventory = Inventory(host=self._host.name, host_id=host_id, nodes=nodes, version=self._next_version())
            self._conductor.report_inventory(self._host.name, inventory)
            self._sent = nodes
            LOG.debug("sent inventory %d: %d nodes", inventory.version, len(nodes))
            return True

    def offered(self, node: Node) -> Node:
        """Return a driver's node as it is reported, without the additions of files."""
        return offered(node, self._options, self._host.my_ip, traits_of(self._driver))

    def _next_version(self) -> int:
        """Return the next version. It is written before it is used, so it grows over restarts, too. A damaged file
        restarts from the clock, which is greater."""
        version = _read(self._file)
        if version is None:
            version = int((self._host.clock.now()).timestamp())
        replace_file(self._file, str(version + 1).encode())
        return version + 1


def offered(node: Node, options: Options, my_ip: str = "", abilities: Iterable[str] = ()) -> Node:
    """Return a driver's node as the scheduler should see it. ``abilities``: traits of the driver's capabilities.
    Processors are reserved for the host among the shared ones, or among the dedicated ones if it has no shared
    ones."""
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
    """Return the effective ratio; 0.0 meant "unset" in older configuration files."""
    return given or initial


def _is_news(before: tuple[Node, ...] | None, now: tuple[Node, ...]) -> bool:
    if before is None or len(before) != len(now):
        return True
    return any(_steady(old) != _steady(new) or _moved(old, new) for old, new in zip(before, now, strict=True))


def _steady(node: Node) -> Node:
    """Return the node without values that guests and other work of the host change constantly."""
    return msgspec.structs.replace(node, memory_mb_used=0, local_gb_used=0, disk_available_least_gb=None, metrics={},
                                   uptime=None)


def _moved(old: Node, new: Node) -> bool:
    return (abs(old.memory_mb_used - new.memory_mb_used) >= MEMORY_STEP_MB
            or abs(old.local_gb_used - new.local_gb_used) >= DISK_STEP_GB
            or abs((old.disk_available_least_gb or 0) - (new.disk_available_least_gb or 0)) >= DISK_STEP_GB
            or moved(old.metrics, new.metrics) or _load_moved(old, new))


def _load_moved(old: Node, new: Node) -> bool:
    """True if the load average of 15 minutes changed by a quarter of the processors: operators must not see data that
    are days old."""
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
