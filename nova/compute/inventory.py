"""What this host offers: the driver's nodes with the operator's reservations and ratios, sent when it changed."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from nova.compute.abilities import traits_of
from nova.compute.host import Host, replace_file
from nova.model.hosts import Inventory, Node

LOG = logging.getLogger(__name__)

VERSION_FILE = "inventory_version"
MEMORY_STEP_MB, DISK_STEP_GB = 256, 1  # what is used goes up and down all the time; less than this is no news


class InventoryReports:
    """Sends inventories; ``options`` are those of ``[DEFAULT]`` in ``nova/conf/compute.py``."""

    def __init__(self, driver: Any, conductor: Any, options: Any, host: Host) -> None:
        self._driver, self._conductor, self._options, self._host = driver, conductor, options, host
        self._file = host.state_path / VERSION_FILE
        self._sent: tuple[Node, ...] | None = None
        self._lock = threading.Lock()

    def send(self, host_id: str, always: bool = False) -> bool:
        """Send what the host has, if it changed (or ``always``); whether it was sent."""
        with self._lock:
            nodes = tuple(offered(node, self._options, self._host.my_ip, traits_of(self._driver))
                          for node in self._driver.nodes())
            if not always and not _is_news(self._sent, nodes):
                return False
            inventory = Inventory(host=self._host.name, host_id=host_id, nodes=nodes, version=self._next_version())
            self._conductor.report_inventory(self._host.name, inventory)
            self._sent = nodes
            LOG.debug("sent inventory %d: %d nodes", inventory.version, len(nodes))
            return True

    def _next_version(self) -> int:
        """Grows over restarts too: kept before it is used. A damaged file starts from the clock, which is greater."""
        version = _read(self._file)
        if version is None:
            version = int((self._host.clock.now()).timestamp())
        replace_file(self._file, str(version + 1).encode())
        return version + 1


def offered(node: Node, options: Any, my_ip: str = "", abilities: Iterable[str] = ()) -> Node:
    """A driver's node as the scheduler should see it. ``abilities``: traits of what its driver can do."""
    return msgspec.structs.replace(
        node, reserved_vcpus=options.reserved_host_cpus, reserved_memory_mb=options.reserved_host_memory_mb,
        reserved_disk_gb=math.ceil(options.reserved_host_disk_mb / 1024),
        cpu_allocation_ratio=_ratio(options.cpu_allocation_ratio, options.initial_cpu_allocation_ratio),
        ram_allocation_ratio=_ratio(options.ram_allocation_ratio, options.initial_ram_allocation_ratio),
        disk_allocation_ratio=_ratio(options.disk_allocation_ratio, options.initial_disk_allocation_ratio),
        host_ip=node.host_ip or my_ip, traits=tuple(sorted({*node.traits, *abilities})))


def _ratio(given: float | None, initial: float) -> float:
    """0.0 meant "unset" to older configuration files."""
    return given or initial


def _is_news(before: tuple[Node, ...] | None, now: tuple[Node, ...]) -> bool:
    if before is None or len(before) != len(now):
        return True
    return any(_steady(old) != _steady(new) or _moved(old, new) for old, new in zip(before, now, strict=True))


def _steady(node: Node) -> Node:
    """The node without what guests and the host's other work change all the time."""
    return msgspec.structs.replace(node, memory_mb_used=0, local_gb_used=0, disk_available_least_gb=None)


def _moved(old: Node, new: Node) -> bool:
    return (abs(old.memory_mb_used - new.memory_mb_used) >= MEMORY_STEP_MB
            or abs(old.local_gb_used - new.local_gb_used) >= DISK_STEP_GB
            or abs((old.disk_available_least_gb or 0) - (new.disk_available_least_gb or 0)) >= DISK_STEP_GB)


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return 0
    except ValueError:
        return None
