"""Parser of ``[pci]alias`` (names for kinds of devices) and of a flavor's ``pci_passthrough:alias``.

Source: the public guide on PCI passthrough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from nova import errors, failures
from nova.model.numa.topology import PciDevice, PciRequest, PciSpec
from nova.model.placement.traits import TRAITS, is_resource_class

T = TypeVar("T")

KINDS = ("type-PCI", "type-PF", "type-VF", "vdpa")
NUMA_POLICIES = ("required", "preferred", "legacy", "socket")
DEFAULT_POLICY = "legacy"
NETWORK_FUNCTION = "SRIOV_NET_VF"

LONGEST_NAME = 256
MOST_DEVICES = 256  # all aliases of a flavor together: more than any guest has slots for
_WORDS = {"yes": True, "true": True, "1": True, "on": True, "no": False, "false": False, "0": False, "off": False}


def parse(texts: Iterable[str]) -> dict[str, PciRequest]:
    """Parse the configured aliases: name -> request for one device. Raises host.PciBadAlias, which names the wrong
    one."""
    found: dict[str, PciRequest] = {}
    for number, text in enumerate(texts, 1):
        try:
            name, policy, spec = _alias(text)
        except ValueError as error:
            raise errors.host.PciBadAlias(problem=f"alias number {number}: {error}") from None
        if name not in found:
            found[name] = PciRequest(count=1, specs=(spec,), alias=name, numa_policy=policy)
            continue
        if found[name].numa_policy != policy or found[name].specs[0].kind != spec.kind:
            raise errors.host.PciBadAlias(problem="aliases with the same name differ in numa_policy or device_type")
        found[name] = PciRequest(count=1, specs=(*found[name].specs, spec), alias=name, numa_policy=policy)
    return found


def requests(value: str, aliases: Mapping[str, PciRequest]) -> tuple[PciRequest, ...]:
    """Return the device requests of ``pci_passthrough:alias``. Raises host.PciNoSuchAlias, host.PciBadRequest or
    host.PciTooManyDevices."""
    made = []
    for part in value.split(","):
        name, colon, count = part.strip().rpartition(":")
        name = name.strip()
        if not colon or not name or not re.fullmatch(r"[0-9]{1,4}", count.strip()) or not int(count):
            raise errors.host.PciBadRequest(value=value)
        if name not in aliases:
            raise errors.host.PciNoSuchAlias(alias=name, value=value)
        one = aliases[name]
        made.append(PciRequest(count=int(count), specs=one.specs, alias=name, numa_policy=one.numa_policy))
    if sum(one.count for one in made) > MOST_DEVICES:
        raise errors.host.PciTooManyDevices(value=value, most=MOST_DEVICES)
    return tuple(made)


def is_live_migratable(request: PciRequest) -> bool:
    """Return whether every device that meets the request supports live migration: all specs of its alias must require
    it."""
    return all(spec.live_migratable is True for spec in request.specs)


# -- names of devices in Placement


def normal_trait(name: str) -> str:
    """Return the trait that a tag names: a standard trait unchanged, any other with the prefix CUSTOM_."""
    upper = re.sub(r"[^A-Z0-9_]", "_", name.strip().upper())
    return upper if upper in TRAITS or upper.startswith("CUSTOM_") else f"CUSTOM_{upper}"


def normal_class(name: str) -> str:
    """Return the resource class that a tag names, by the same rule."""
    upper = re.sub(r"[^A-Z0-9_]", "_", name.strip().upper())
    return upper if is_resource_class(upper) else f"CUSTOM_{upper}"


def normal_traits(names: str) -> tuple[str, ...]:
    """Return the traits of a tag's comma-separated list, sorted."""
    return tuple(sorted({normal_trait(name) for name in names.split(",") if name.strip()}))


def class_of(vendor_id: str, product_id: str, resource_class: str | None = None) -> str:
    """Return a device's resource class in Placement: its tag's, or else one made of its vendor and product ids."""
    if resource_class:
        return normal_class(resource_class)
    return f"CUSTOM_PCI_{vendor_id.upper()}_{product_id.upper()}"


def device_class(device: PciDevice) -> str:
    """Return the class of a device: the operator's; that of network virtual functions; or one made of its ids."""
    named = device.tags.get("resource_class")
    if not named and device.kind in ("type-VF", "vdpa") and device.tags.get("physical_network"):
        return NETWORK_FUNCTION
    return class_of(device.vendor_id, device.product_id, named)


# -- one alias


def _hexadecimal(value: str) -> str | None:
    value = value.lower().removeprefix("0x")
    return None if value == "*" else _matching(r"[0-9a-f]{4}", value, "must be four hexadecimal digits")


def _matching(pattern: str, value: str, problem: str) -> str:
    if not re.fullmatch(pattern, value):
        raise ValueError(problem)
    return value


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value
    return read


def _flag(value: str) -> bool:
    if value.lower() not in _WORDS:
        raise ValueError("must be yes or no")
    return _WORDS[value.lower()]


#: Key of an alias -> (field of PciSpec, its parser); a key with an empty field is only validated.
_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "vendor_id": ("vendor_id", _hexadecimal), "product_id": ("product_id", _hexadecimal),
    "device_type": ("kind", _one_of(*KINDS)), "capability_type": ("", _one_of("pci")),
    "resource_class": ("resource_class", normal_class), "traits": ("traits", normal_traits),
    "live_migratable": ("live_migratable", _flag),
}


def _alias(text: str) -> tuple[str, str, PciSpec]:
    """Return (name, NUMA policy, spec of the device)."""
    with failures.replaced((ValueError, RecursionError), lambda error: ValueError(f"it is not valid JSON: {error}")):
        given = json.loads(text)
    if not isinstance(given, dict) or not all(isinstance(value, str | bool) for value in given.values()):
        raise ValueError("it must be a JSON object whose values are strings")
    values = {key: str(value) for key, value in given.items()}
    name = values.pop("name", "").strip()
    if not name or len(name) > LONGEST_NAME or ":" in name or "," in name:
        raise ValueError(f"it requires a name of up to {LONGEST_NAME} characters without "
                                      "colons and commas")
    policy = _read("numa_policy", values.pop("numa_policy", DEFAULT_POLICY), _one_of(*NUMA_POLICIES))
    unknown = sorted(set(values) - set(_FIELDS))
    if unknown:
        raise ValueError("every key must be one of "
                                      f"name, numa_policy, {', '.join(_FIELDS)}")
    read = {_FIELDS[key][0]: _read(key, value, _FIELDS[key][1]) for key, value in values.items()}
    read.pop("", None)
    return name, policy, PciSpec(**read)


def _read(key: str, value: str, how: Callable[[str], T]) -> T:
    with failures.replaced(ValueError, lambda error: ValueError(f"{key} {error}")):
        return how(value)


__all__ = ["class_of", "device_class", "is_live_migratable", "normal_class", "normal_trait", "normal_traits", "parse",
           "requests"]
