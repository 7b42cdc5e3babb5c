"""What libvirt says of its host, read from its XML (https://libvirt.org/formatcaps.html, formatdomaincaps.html)."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass

_INFO_ORDER = ("arch", "model", "vendor", "topology", "features")


@dataclass(frozen=True, kw_only=True)
class HostCpu:
    """The host's processor. ``topology`` has cells, sockets, cores, threads."""

    arch: str
    model: str = ""
    vendor: str = ""
    topology: Mapping[str, int]
    features: tuple[str, ...] = ()

    def as_json(self) -> str:
        """As the API shows it in ``cpu_info``."""
        info = {"arch": self.arch, "model": self.model, "vendor": self.vendor, "topology": dict(self.topology),
                "features": list(self.features)}
        return json.dumps({key: info[key] for key in _INFO_ORDER})


@dataclass(frozen=True, kw_only=True)
class Guestable:
    """A kind of guest that the host can run: ``domain`` is kvm or qemu, ``mode`` hvm."""

    arch: str
    domain: str
    mode: str
    machines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DomainCapabilities:
    """What guests of one kind may have: device models by element (disk bus, video modelType, rng model)."""

    emulator: str
    efi: bool
    disk_buses: tuple[str, ...] = ()
    video_models: tuple[str, ...] = ()
    rng_models: tuple[str, ...] = ()


def host_cpu(capabilities: str) -> HostCpu:
    root = ET.fromstring(capabilities)
    cpu = root.find("host/cpu")
    if cpu is None:
        return HostCpu(arch="", topology={})
    topology = cpu.find("topology")
    cells = root.find("host/topology/cells")
    counts = {"cells": int(cells.get("num", "1")) if cells is not None else 1}
    for name in ("sockets", "cores", "threads"):
        counts[name] = int(topology.get(name, "1")) if topology is not None else 1
    return HostCpu(arch=cpu.findtext("arch", ""), model=cpu.findtext("model", ""), vendor=cpu.findtext("vendor", ""),
                   topology=counts, features=tuple(sorted(f.get("name", "") for f in cpu.findall("feature"))))


def guestables(capabilities: str) -> tuple[Guestable, ...]:
    """Every kind of guest, with the machine types it may have."""
    found = []
    for guest in ET.fromstring(capabilities).findall("guest"):
        mode, arch = guest.findtext("os_type", ""), guest.find("arch")
        if arch is None:
            continue
        common = tuple(machine.text or "" for machine in arch.findall("machine"))
        for domain in arch.findall("domain"):
            own = tuple(machine.text or "" for machine in domain.findall("machine"))
            found.append(Guestable(arch=arch.get("name", ""), domain=domain.get("type", ""), mode=mode,
                                   machines=own or common))
    return tuple(found)


def domain_capabilities(text: str) -> DomainCapabilities:
    root = ET.fromstring(text)
    return DomainCapabilities(
        emulator=root.findtext("path", ""), efi="efi" in _values(root.find("os/enum[@name='firmware']")),
        disk_buses=_values(root.find("devices/disk/enum[@name='bus']")),
        video_models=_values(root.find("devices/video/enum[@name='modelType']")),
        rng_models=_values(root.find("devices/rng/enum[@name='model']")))


def _values(enum: ET.Element | None) -> tuple[str, ...]:
    return () if enum is None else tuple(value.text or "" for value in enum.findall("value"))
