"""Diagnostics of a guest: counters since its start. None: the hypervisor does not provide the value."""

from __future__ import annotations

from nova.model.base import Value
from nova.model.server.states import PowerState


class CpuUse(Value):
    """Usage of a CPU. ``time_ns``: CPU time in nanoseconds. ``utilisation`` in percent."""

    id: int | None = None
    time_ns: int | None = None
    utilisation: int | None = None


class NicUse(Value):
    """Usage of a network card. ``device`` is its name on the host. Octets, packets; rates in octets per second."""

    device: str
    mac: str | None = None
    rx_octets: int | None = None
    rx_packets: int | None = None
    rx_errors: int | None = None
    rx_drop: int | None = None
    rx_rate: int | None = None
    tx_octets: int | None = None
    tx_packets: int | None = None
    tx_errors: int | None = None
    tx_drop: int | None = None
    tx_rate: int | None = None


class DiskUse(Value):
    """Usage of a disk. ``device`` is its name in the guest (vda)."""

    device: str
    read_bytes: int | None = None
    read_requests: int | None = None
    write_bytes: int | None = None
    write_requests: int | None = None
    errors: int | None = None


class Diagnostics(Value):
    """Diagnostics of one guest. ``driver``: libvirt, ironic, vmwareapi or xenapi. The conductor adds ``uptime_s`` and
    ``config_drive``."""

    power_state: PowerState
    driver: str
    hypervisor: str | None = None
    hypervisor_os: str | None = None
    uptime_s: int | None = None
    config_drive: bool = False
    cpus: tuple[CpuUse, ...] = ()
    nics: tuple[NicUse, ...] = ()
    disks: tuple[DiskUse, ...] = ()
    memory_max_mb: int | None = None
    memory_used_mb: int | None = None
