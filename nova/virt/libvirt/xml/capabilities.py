"""libvirt's capabilities of a host, read from XML (https://libvirt.org/formatcaps.html, formatdomaincaps.html)."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HostCpu:
    """The host's processor. ``topology`` has cells, sockets, cores, threads; ``address_bits`` is 0 if libvirt does not
    report it (before 8.7)."""

    arch: str
    model: str = ""
    vendor: str = ""
    topology: Mapping[str, int]
    features: tuple[str, ...] = ()
    address_mode: str = ""
    address_bits: int = 0

    def as_json(self) -> str:
        """Return the JSON that the API shows as ``cpu_info``."""
        address = {"mode": self.address_mode, "bits": self.address_bits}
        return json.dumps({"arch": self.arch, "model": self.model, "vendor": self.vendor,
                           "topology": dict(self.topology), "features": list(self.features),
                           **({"maxphysaddr": address} if self.address_bits else {})})


@dataclass(frozen=True, kw_only=True)
class Guestable:
    """A guest type that the host can run: ``domain`` is kvm or qemu, ``mode`` hvm."""

    arch: str
    domain: str
    mode: str
    machines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DomainCapabilities:
    """Capabilities of guests of one machine type: names by element (disk bus, video modelType, tpm backendVersion).

    ``cpu_models``: models whose every feature the host has; ``secure_boot``: the machine type and one of the host's
    firmwares support it.
    """

    emulator: str
    efi: bool
    machine: str = ""
    secure_boot: bool = False
    disk_buses: tuple[str, ...] = ()
    screens: tuple[str, ...] = ()  # graphics: vnc, spice ...; empty if not reported
    video_models: tuple[str, ...] = ()
    rng_models: tuple[str, ...] = ()
    tpm_models: tuple[str, ...] = ()
    tpm_backends: tuple[str, ...] = ()
    tpm_versions: tuple[str, ...] = ()
    cpu_models: tuple[str, ...] = ()
    host_passthrough: bool = False
    sev: bool = False
    sev_guests: int = 0  # the number of keys that the processor has; 0: not reported
    sev_es_guests: int = 0
    sev_cbit: int = 0
    sev_reduced_bits: int = 0


def qemu_owner(capabilities: str) -> tuple[int, int] | None:
    """Return the user and group of QEMU processes: the base label of the security model ``dac``. None if there is no
    such label: they then run as libvirtd does."""
    for model in ET.fromstring(capabilities).iterfind("host/secmodel"):
        if model.findtext("model") == "dac":
            for label in model.iterfind("baselabel"):
                found = re.fullmatch(r"\+(\d+):\+(\d+)", label.text or "")
                if found:
                    return int(found[1]), int(found[2])
    return None


def host_cpu(capabilities: str) -> HostCpu:
    """Return the element ``host/cpu``. If libvirt does not report it, ``arch`` and ``topology`` are empty."""
    root = ET.fromstring(capabilities)
    cpu = root.find("host/cpu")
    if cpu is None:
        return HostCpu(arch="", topology={})
    topology, address = cpu.find("topology"), cpu.find("maxphysaddr")
    cells = root.find("host/topology/cells")
    counts = {"cells": int(cells.get("num", "1")) if cells is not None else 1}
    for name in ("sockets", "cores", "threads"):
        counts[name] = int(topology.get(name, "1")) if topology is not None else 1
    return HostCpu(arch=cpu.findtext("arch", ""), model=cpu.findtext("model", ""), vendor=cpu.findtext("vendor", ""),
                   topology=counts, features=tuple(sorted(f.get("name", "") for f in cpu.findall("feature"))),
                   address_mode=address.get("mode", "") if address is not None else "",
                   address_bits=int(address.get("bits", "0")) if address is not None else 0)


def guestables(capabilities: str) -> tuple[Guestable, ...]:
    """Return every guest type, with its machine types."""
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
    """Parse the XML of virConnectGetDomainCapabilities. Values that are not reported are empty, 0 or False."""
    root = ET.fromstring(text)
    passthrough, sev = root.find("cpu/mode[@name='host-passthrough']"), root.find("features/sev")
    return DomainCapabilities(
        emulator=root.findtext("path", ""), efi="efi" in _values(root.find("os/enum[@name='firmware']")),
        machine=root.findtext("machine", ""),
        secure_boot="yes" in _values(root.find("os/loader/enum[@name='secure']")),
        disk_buses=_values(root.find("devices/disk/enum[@name='bus']")),
        video_models=_values(root.find("devices/video/enum[@name='modelType']")),
        screens=_values(root.find("devices/graphics/enum[@name='type']")),
        rng_models=_values(root.find("devices/rng/enum[@name='model']")),
        tpm_models=_values(root.find("devices/tpm/enum[@name='model']")),
        tpm_backends=_values(root.find("devices/tpm/enum[@name='backendModel']")),
        tpm_versions=_values(root.find("devices/tpm/enum[@name='backendVersion']")),
        cpu_models=tuple(model.text or "" for model in root.findall("cpu/mode[@name='custom']/model[@usable='yes']")),
        host_passthrough=_supported(passthrough), sev=_supported(sev), sev_guests=_number(sev, "maxGuests"),
        sev_es_guests=_number(sev, "maxESGuests"), sev_cbit=_number(sev, "cbitpos"),
        sev_reduced_bits=_number(sev, "reducedPhysBits"))


def cpu_model_features(text: str) -> tuple[str, ...]:
    """Return the features of the one model in a file of libvirt's CPU map (``cpu_map/x86_EPYC.xml``)."""
    return tuple(sorted(feature.get("name", "") for feature in ET.fromstring(text).findall("model/feature")))


def _supported(element: ET.Element | None) -> bool:
    return element is not None and element.get("supported") == "yes"


def _number(element: ET.Element | None, name: str) -> int:
    return int(element.findtext(name) or "0") if element is not None else 0


def _values(enum: ET.Element | None) -> tuple[str, ...]:
    return () if enum is None else tuple(value.text or "" for value in enum.findall("value"))
