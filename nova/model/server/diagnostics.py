"""What a host says of a guest's use of it, counted since the guest was started. None: the hypervisor can't tell."""

from __future__ import annotations

from nova.model.base import Value
from nova.model.server.states import PowerState


class CpuUse(Value):
    """``time_ns``: processor time used, in nanoseconds. ``utilisation`` in percent."""

    id: int | None = None
    time_ns: int | None = None
    utilisation: int | None = None


class NicUse(Value):
    """``device`` is the host's end. Octets, packets; rates in octets a second."""

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
    """``device`` as the guest names it (vda)."""

    device: str
    read_bytes: int | None = None
    read_requests: int | None = None
    write_bytes: int | None = None
    write_requests: int | None = None
    errors: int | None = None


class Diagnostics(Value):
    """One guest's. ``driver``: libvirt, ironic, vmwareapi or xenapi. ``uptime_s`` and ``config_drive`` are the
    conductor's to add."""

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
