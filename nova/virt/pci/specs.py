"""``[pci]device_spec``: the host's devices that are offered to guests, and the operator's tags of them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from nova import errors, failures
from nova.model.numa.pci_aliases import normal_class, normal_traits
from nova.model.numa.topology import PciDevice

OPTION = "[pci]device_spec"
PARTS = ("domain", "bus", "slot", "function")
WIDTHS = {"domain": 4, "bus": 2, "slot": 2, "function": 1}
ADDRESS = re.compile(r"(?:(?P<domain>[^:]+):)?(?P<bus>[^:]+):(?P<slot>[^:.]+)(?:\.(?P<function>[^:.]+))?")
ID = re.compile(r"[0-9a-fA-F]{4}")
FLAGS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
#: Keys that are not reported as tags.
MATCHING = frozenset({"address", "devname", "vendor_id", "product_id", "managed", "live_migratable"})


class Device(Protocol):
    """A device as a hypervisor reports it."""

    @property
    def address(self) -> str:
        """Return the address, in the form 0000:81:00.0."""

    @property
    def vendor_id(self) -> str:
        """Return four hexadecimal digits in lower case; empty if not reported."""

    @property
    def product_id(self) -> str:
        """Return four hexadecimal digits in lower case; empty if not reported."""

    @property
    def kind(self) -> str:
        """Return type-PCI, type-PF (it has virtual functions), type-VF (it is one), or vdpa."""

    @property
    def cell(self) -> int | None:
        """Return the device's NUMA cell on the host; None if not reported."""

    @property
    def parent(self) -> str | None:
        """Return the address of a virtual function's physical function; else None."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its network interfaces on the host, sorted."""


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """A rule for devices. ``address``: a pattern for each of domain, bus, slot and function. None or empty matches
    all."""

    address: tuple[re.Pattern[str], ...] = ()
    devname: str = ""
    vendor_id: str = ""
    product_id: str = ""
    managed: bool = True
    live_migratable: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    def fits(self, device: Device, parent: Device | None) -> bool:
        """Return whether the rule matches. ``parent``: a virtual function's physical one, which may match in its
        place."""
        if (self.vendor_id and self.vendor_id != device.vendor_id) or (
                self.product_id and self.product_id != device.product_id):
            return False
        ends = [device] if parent is None else [device, parent]
        if self.devname:
            return any(self.devname in one.names for one in ends)
        return not self.address or any(self._at(one.address) for one in ends)

    def _at(self, address: str) -> bool:
        parts = re.split("[:.]", address)
        return all(pattern.fullmatch(part) for pattern, part in zip(self.address, parts, strict=True))


def parse(texts: Iterable[str]) -> tuple[DeviceSpec, ...]:
    """Parse the option's values. Raises config.DeviceSpec, which names the invalid value and the reason."""
    found: list[DeviceSpec] = []
    for number, text in enumerate(texts, 1):
        try:
            found += _specs(text)
        except ValueError as error:
            raise errors.config.DeviceSpec(reason=f"in its value {number}, {error}") from None
    return tuple(found)


def _specs(text: str) -> list[DeviceSpec]:
    """Parse one value. Raises ValueError."""
    with failures.replaced(ValueError, lambda error: ValueError(f"it is not JSON ({error})")):
        value = json.loads(text)
    given = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in given):
        raise ValueError("it must be an object, or a list of objects")
    return [_spec(one) for one in given]


def devices(found: Iterable[Device], specs: Iterable[DeviceSpec]) -> tuple[PciDevice, ...]:
    """Return the devices to offer, each with the first spec that matches it."""
    known = {device.address: device for device in found}
    given, rules = [], tuple(specs)
    for device in known.values():
        parent = known.get(device.parent) if device.parent else None
        spec = next((spec for spec in rules if spec.fits(device, parent)), None)
        if spec is not None:
            given.append(PciDevice(
                address=device.address, vendor_id=device.vendor_id, product_id=device.product_id, kind=device.kind,
                cell=device.cell, parent=device.parent, tags=spec.tags, live_migratable=spec.live_migratable,
                managed=spec.managed))
    return tuple(given)


def _spec(given: Mapping[str, object]) -> DeviceSpec:
    if "address" in given and "devname" in given:
        raise ValueError("a device has either an address or a devname, not both")
    tags = {name: _tag(value) for name, value in given.items() if name not in MATCHING}
    if "resource_class" in tags:
        tags["resource_class"] = normal_class(tags["resource_class"])
    if "traits" in tags:
        tags["traits"] = ",".join(normal_traits(tags["traits"]))
    return DeviceSpec(
        address=_patterns(given["address"]) if "address" in given else (), devname=str(given.get("devname", "")),
        vendor_id=_number(given, "vendor_id"), product_id=_number(given, "product_id"),
        managed=_flag(given, "managed", True), live_migratable=_flag(given, "live_migratable", False),
        tags=tags)


def _tag(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _number(given: Mapping[str, object], name: str) -> str:
    value = str(given.get(name, "*"))
    if value == "*":
        return ""
    if not ID.fullmatch(value.removeprefix("0x")):
        raise ValueError(f"{name} must be four hexadecimal digits, or *")
    return value.removeprefix("0x").lower()


def _flag(given: Mapping[str, object], name: str, default: bool) -> bool:
    value = str(given.get(name, default)).strip().lower()
    if value not in FLAGS:
        raise ValueError(f"{name} must be yes or no")
    return FLAGS[value]


def _patterns(address: object) -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each part of an address: from a text with globs, or from regular expressions."""
    if isinstance(address, str):
        match = ADDRESS.fullmatch(address)
        parts = match.groupdict() if match else None
        if parts is None:
            raise ValueError("the address is not of the form 0000:81:00.0")
        return tuple(_glob(part, parts[part]) for part in PARTS)
    if not isinstance(address, dict) or set(address) - set(PARTS):
        raise ValueError(f"the address must be a string, or have {', '.join(PARTS)}")
    return tuple(_regex(str(address.get(part, ".*"))) for part in PARTS)


def _glob(part: str, given: str | None) -> re.Pattern[str]:
    if given is None:
        return re.compile("0000" if part == "domain" else ".*")
    if "*" not in given and not re.fullmatch(f"[0-9a-fA-F]{{1,{WIDTHS[part]}}}", given):
        raise ValueError(f"the address's {part} is neither a hexadecimal number nor *")
    wanted = given if "*" in given else given.rjust(WIDTHS[part], "0")
    return re.compile(".*".join(map(re.escape, wanted.split("*"))), re.IGNORECASE)


def _regex(given: str) -> re.Pattern[str]:
    with failures.replaced(re.error,
            lambda error: ValueError(f"a part of the address is not a regular expression ({error})")):
        return re.compile(given, re.IGNORECASE)
