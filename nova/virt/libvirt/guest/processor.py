"""A guest's processors: number, topology, model, features, and their share of the host's. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypedDict

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.virt.libvirt.guest.numa_placement import threads_of
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.host.processors import FEATURES, address_modes, flags_of, mode_of, usable_models
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.capabilities import DomainCapabilities
from nova.virt.libvirt.xml.domain import X86
from nova.virt.libvirt.xml.specs import CpuSpec, Topology

MANY = 1 << 16
#: Extra spec -> (element of cputune, minimum, maximum), as libvirt and the kernel accept them.
TUNING = {"quota:cpu_shares": ("shares", 1, 262144), "quota:cpu_period": ("period", 1000, 1000000),
          "quota:cpu_quota": ("quota", -1, 17592186044415)}


def cpu_spec(order: BuildOrder, asked: RequestedProperties, settings: LibvirtSettings, host: HypervisorFacts,
                    abilities: DomainCapabilities) -> CpuSpec:
    """Return the processors. Raises host.NoSuchGuest if this host does not support a request; image.WrongProperty if no
    host could, or a quota is invalid."""
    mode, wanted = mode_of(settings, host), wanted_features(order)
    model = choose_model(settings, abilities, host.cpu_features, wanted) if mode == "custom" else None
    flags = () if mode == "none" else settings.cpu_flags
    threads = threads_of(order.packing)
    if threads is not None and asked.threads is None:  # shows the guest which of its processors share a core
        asked = replace(asked, threads=threads)
    return CpuSpec(
        vcpus=order.flavor.vcpus, topology=topology(order.flavor.vcpus, asked), mode=mode, model=model,
        features=tuple(("disable" if flag.startswith("-") else "require", flag.lstrip("+-")) for flag in flags),
        tuning=_tuning(order.flavor.extra_specs), **_address(asked, settings, host))


def topology(vcpus: int, requested: RequestedProperties) -> Topology:
    """Return the topology of exactly ``vcpus`` that matches most of the request within the limits; else one with as
    many sockets as possible.

    Raises image.WrongProperty if the limits permit no topology.
    """
    limits = (requested.max_sockets or MANY, requested.max_cores or MANY, requested.max_threads or MANY)
    fitting = [one for one in _arrangements(vcpus) if all(n <= limit for n, limit in zip(one, limits, strict=True))]
    if not fitting:
        raise errors.image.WrongProperty(name="the flavor's vcpus", value=vcpus,
                                         reason="no topology is within hw_cpu_max_sockets, _cores and _threads")
    wanted = (requested.sockets, requested.cores, requested.threads)

    def rank(one: Topology) -> tuple[int, int, int]:
        met = sum(count == n for count, n in zip(wanted, one, strict=True) if count is not None)
        return met, one.sockets, one.cores
    return max(fitting, key=rank)


def _arrangements(vcpus: int) -> Iterator[Topology]:
    for threads in range(1, vcpus + 1):
        if vcpus % threads:
            continue
        for cores in range(1, vcpus // threads + 1):
            if vcpus // threads % cores == 0:
                yield Topology(vcpus // threads // cores, cores, threads)


def wanted_features(order: BuildOrder) -> dict[str, str]:
    """Return the processor features that flavor or image require by their trait: feature -> trait."""
    asked = (*order.flavor.extra_specs.items(), *(order.image.properties if order.image else {}).items())
    traits = (key.partition(":")[2] for key, value in asked if key.startswith("trait:") and value == "required")
    return {FEATURES[trait]: trait for trait in traits if trait in FEATURES}


def choose_model(settings: LibvirtSettings, abilities: DomainCapabilities, features_of: Mapping[str, frozenset[str]],
                        wanted: Mapping[str, str]) -> str:
    """Return the first of ``[libvirt]cpu_models`` that this host supports and that has the wanted features."""
    usable = usable_models(settings.cpu_models, abilities)
    if not usable:
        raise errors.host.NoSuchGuest(name="[libvirt]cpu_models", value=",".join(settings.cpu_models),
                                      reason="its processor supports none of these models")
    added, removed = flags_of(settings)
    missing: set[str] = set()
    for model in usable:
        missing = set(wanted) - ((features_of.get(model, frozenset()) | added) - removed)
        if not missing:
            return model
    raise errors.host.NoSuchGuest(name=f"trait:{wanted[min(missing)]}", value="required",
                                  reason=f"none of [libvirt]cpu_models has {', '.join(sorted(missing))}")


class _PhysicalAddress(TypedDict, total=False):
    address_mode: str
    address_bits: int | None


def _address(asked: RequestedProperties, settings: LibvirtSettings, host: HypervisorFacts) -> _PhysicalAddress:
    """Return the guest's physical address bits; QEMU's default if none is requested. Mode passthrough always has the
    host's number, even if another number is requested."""
    mode, bits = asked.address_mode, asked.address_bits
    if mode is None and bits is not None:
        raise errors.image.WrongProperty(name=asked.name_of("address_bits"), value=bits,
                                         reason="it needs hw:maxphysaddr_mode")
    if mode is None:
        return {}
    if mode not in address_modes(settings, host):
        raise errors.host.NoSuchGuest(name=asked.name_of("address_mode"), value=mode, reason=_no_address(host))
    if bits is not None and bits > host.address_bits:
        raise errors.host.NoSuchGuest(name=asked.name_of("address_bits"), value=bits,
                                      reason=f"its processor has {host.address_bits} bits")
    return {"address_mode": mode, "address_bits": bits if mode == "emulate" else None}


def _no_address(host: HypervisorFacts) -> str:
    """Return why the host does not support a mode."""
    if host.arch not in X86:
        return "the number of bits can be set only on x86 processors"
    if host.virt_type != "kvm":
        return "emulated processors have a fixed number of bits"
    if not host.address_bits:
        return "libvirt does not report the bits of its processor (it does from 8.7 on)"
    return "[libvirt]cpu_mode is not host-passthrough"


def _tuning(extra_specs: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    found = []
    for name, (element, least, most) in TUNING.items():
        if name in extra_specs:
            try:
                value = int(extra_specs[name])
            except ValueError:
                raise errors.image.WrongProperty(name=name, value=extra_specs[name],
                                                 reason="it is not a number") from None
            if not least <= value <= most:
                raise errors.image.WrongProperty(name=name, value=value, reason=f"it must be from {least} to {most}")
            found.append((element, value))
    return tuple(found)
