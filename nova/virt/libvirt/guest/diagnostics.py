"""A guest's resource usage from libvirt's statistics (``nova.virt.interface.Diagnosis``), and the addresses of its
devices (``DevicePlaces``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nova.model.guest.guests import DevicePlace
from nova.model.server.diagnostics import CpuUse, Diagnostics, DiskUse, NicUse
from nova.model.server.states import PowerState
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import LibvirtHypervisor, state_of
from nova.virt.libvirt.vifs import tap_name
from nova.virt.libvirt.xml import running

#: Field -> the suffix of its name in libvirt's statistics.
_NIC = {"rx_octets": "rx.bytes", "rx_packets": "rx.pkts", "rx_errors": "rx.errs", "rx_drop": "rx.drop",
        "tx_octets": "tx.bytes", "tx_packets": "tx.pkts", "tx_errors": "tx.errs", "tx_drop": "tx.drop"}
_DISK = {"read_bytes": "rd.bytes", "read_requests": "rd.reqs", "write_bytes": "wr.bytes", "write_requests": "wr.reqs"}


@dataclass(frozen=True)
class LibvirtDiagnosis:
    hypervisor: LibvirtHypervisor
    folders: Folders
    facts: Callable[[], HypervisorFacts]

    def diagnostics(self, server_uuid: str) -> Diagnostics:
        state, order = state_of(self.hypervisor, server_uuid), self.folders.of(server_uuid).order()
        macs = {tap_name(one): one.mac for one in order.interfaces} if order else {}
        return diagnostics_of(self.hypervisor.stats(server_uuid), state, self.facts().virt_type, macs)

    def device_places(self, server_uuid: str) -> dict[str, DevicePlace]:
        return running.places(self.hypervisor.definition(server_uuid))


def diagnostics_of(stats: Mapping[str, int | str], state: PowerState, virt_type: str,
                   macs: Mapping[str, str]) -> Diagnostics:
    """Return the diagnostics. ``stats`` as virConnectGetAllDomainStats names them; ``macs``: the address of each tap. A
    guest that is off has devices without counters. Pure."""
    return Diagnostics(
        power_state=state, driver="libvirt", hypervisor=virt_type, hypervisor_os=os.uname().sysname.lower(),
        cpus=tuple(CpuUse(id=number, time_ns=_count(stats, f"vcpu.{number}.time"))
                   for number in range(_count(stats, "vcpu.current") or 0)),
        nics=(tuple(NicUse(device=name, mac=macs.get(name), **counts)
                    for name, counts in _devices(stats, "net", _NIC))
              if "net.count" in stats else tuple(NicUse(device=name, mac=mac) for name, mac in macs.items())),
        disks=disk_uses(stats),
        memory_max_mb=_mb(_count(stats, "balloon.maximum")), memory_used_mb=_mb(_used(stats)))


def disk_uses(stats: Mapping[str, int | str]) -> tuple[DiskUse, ...]:
    """Return the disks of :func:`diagnostics_of`. Pure."""
    return tuple(DiskUse(device=name, **counts) for name, counts in _devices(stats, "block", _DISK))


def _devices(stats: Mapping[str, int | str], kind: str, names: Mapping[str, str]
             ) -> list[tuple[str, dict[str, int | None]]]:
    return [(str(stats[f"{kind}.{number}.name"]),
             {field: _count(stats, f"{kind}.{number}.{end}") for field, end in names.items()})
            for number in range(_count(stats, f"{kind}.count") or 0) if f"{kind}.{number}.name" in stats]


def _used(stats: Mapping[str, int | str]) -> int | None:
    """Return used memory in KiB: as the guest reports it, else the resident memory of its process on the host."""
    if "balloon.available" in stats and "balloon.unused" in stats:
        return int(stats["balloon.available"]) - int(stats["balloon.unused"])
    return _count(stats, "balloon.rss")


def _count(stats: Mapping[str, int | str], name: str) -> int | None:
    found = stats.get(name)
    return None if found is None else int(found)


def _mb(kib: int | None) -> int | None:
    return None if kib is None else kib // 1024
