"""A guest's processors: how many, how arranged, which model and features, and their share of the host's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nova import errors
from nova.model.orders import BuildOrder
from nova.virt.libvirt.guest.cpu_topology import topology
from nova.virt.libvirt.guest.numa_placement import threads_of
from nova.virt.libvirt.guest.properties import Wishes
from nova.virt.libvirt.host.cpu_traits import FEATURES
from nova.virt.libvirt.host.facts import HostFacts
from nova.virt.libvirt.settings import Settings
from nova.virt.libvirt.xml.capabilities import DomainCapabilities
from nova.virt.libvirt.xml.specs import CpuSpec

#: Extra spec -> (element of cputune, least, most), as libvirt and the kernel take them.
TUNING = {"quota:cpu_shares": ("shares", 1, 262144), "quota:cpu_period": ("period", 1000, 1000000),
          "quota:cpu_quota": ("quota", -1, 17592186044415)}


def cpu_spec(order: BuildOrder, asked: Wishes, settings: Settings, host: HostFacts,
             abilities: DomainCapabilities) -> CpuSpec:
    mode, wanted = mode_of(settings, host), wanted_features(order)
    model = choose_model(settings, abilities, host.cpu_features, wanted) if mode == "custom" else None
    flags = () if mode == "none" else settings.cpu_flags
    threads = threads_of(order.packing)
    if threads is not None and asked.threads is None:  # the guest should know which of its processors share a core
        asked = replace(asked, threads=threads)
    return CpuSpec(
        vcpus=order.flavor.vcpus, topology=topology(order.flavor.vcpus, asked), mode=mode, model=model,
        features=tuple(("disable" if flag.startswith("-") else "require", flag.lstrip("+-")) for flag in flags),
        tuning=_tuning(order.flavor.extra_specs), **_address(asked, mode, host))


def mode_of(settings: Settings, host: HostFacts) -> str:
    kvm = host.virt_type == "kvm"
    mode = settings.cpu_mode or ("host-model" if kvm else "none")
    if not kvm and mode == "host-passthrough":
        mode = "none"  # without KVM there is no host's processor to pass through
    return mode


def wanted_features(order: BuildOrder) -> dict[str, str]:
    """Processor features that flavor or image require by their trait: feature -> trait."""
    asked = (*order.flavor.extra_specs.items(), *(order.image.properties if order.image else {}).items())
    traits = (key.partition(":")[2] for key, value in asked if key.startswith("trait:") and value == "required")
    return {FEATURES[trait]: trait for trait in traits if trait in FEATURES}


def choose_model(settings: Settings, abilities: DomainCapabilities, features_of: Mapping[str, frozenset[str]],
                 wanted: Mapping[str, str]) -> str:
    """The first of ``[libvirt]cpu_models`` that this host can give and that has what is wanted (with the flags set)."""
    usable = usable_models(settings.cpu_models, abilities)
    if not usable:
        raise errors.host.NoSuchGuest(name="[libvirt]cpu_models", value=",".join(settings.cpu_models),
                                      reason="its processor has none of these models' features")
    added, removed = _flags(settings)
    missing: set[str] = set()
    for model in usable:
        missing = set(wanted) - ((features_of.get(model, frozenset()) | added) - removed)
        if not missing:
            return model
    raise errors.host.NoSuchGuest(name=f"trait:{wanted[min(missing)]}", value="required",
                                  reason=f"none of [libvirt]cpu_models has {', '.join(sorted(missing))}")


def guest_features(settings: Settings, host: HostFacts, own: frozenset[str],
                   abilities: DomainCapabilities) -> frozenset[str]:
    """Features that some guest here can have; ``own`` are those of the host's processor."""
    mode = mode_of(settings, host)
    if mode == "custom":
        models = usable_models(settings.cpu_models, abilities)
        found = frozenset().union(*(host.cpu_features.get(model, frozenset()) for model in models))
    else:
        found = own if mode in ("host-model", "host-passthrough") and host.virt_type == "kvm" else frozenset()
    added, removed = _flags(settings)
    return frozenset() if mode == "none" else (found | added) - removed


def _flags(settings: Settings) -> tuple[frozenset[str], frozenset[str]]:
    """Features that the operator adds, and takes away."""
    added = frozenset(flag.lstrip("+") for flag in settings.cpu_flags if not flag.startswith("-"))
    return added, frozenset(flag[1:] for flag in settings.cpu_flags if flag.startswith("-"))


def usable_models(models: Iterable[str], abilities: DomainCapabilities) -> tuple[str, ...]:
    """In their order; all of them where libvirt doesn't tell."""
    return tuple(model for model in models if not abilities.cpu_models or model in abilities.cpu_models)


def _address(asked: Wishes, mode: str, host: HostFacts) -> dict[str, Any]:
    """How many bits of a physical address the guest's processor has. Nothing asked leaves it to QEMU."""
    if asked.address_mode is None:
        if asked.address_bits is not None:
            raise errors.image.WrongProperty(name="hw_maxphysaddr_bits", value=asked.address_bits,
                                             reason="hw_maxphysaddr_mode must say how they are meant")
        return {}
    name = asked.name_of("address_mode")
    if host.virt_type != "kvm":
        raise errors.host.NoSuchGuest(name=name, value=asked.address_mode,
                                      reason="emulated processors have a fixed number of bits")
    if asked.address_mode == "passthrough" and mode != "host-passthrough":
        raise errors.host.NoSuchGuest(name=name, value=asked.address_mode,
                                      reason="[libvirt]cpu_mode is not host-passthrough")
    if asked.address_mode == "emulate" and asked.address_bits is None:
        raise errors.image.WrongProperty(name=name, value=asked.address_mode,
                                         reason="hw_maxphysaddr_bits must say how many bits")
    return {"address_mode": asked.address_mode, "address_bits": asked.address_bits}


def _tuning(extra_specs: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    found = []
    for name, (element, least, most) in TUNING.items():
        if name in extra_specs:
            try:
                value = int(extra_specs[name])
            except ValueError:
                raise errors.image.WrongProperty(name=name, value=extra_specs[name], reason="it is no number") from None
            if not least <= value <= most:
                raise errors.image.WrongProperty(name=name, value=value, reason=f"it must be from {least} to {most}")
            found.append((element, value))
    return tuple(found)
