"""Device metadata of a guest: tagged devices, and network cards that are trusted or have a VLAN. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from nova.model.guest.guests import DevicePlace
from nova.model.network.networks import Interface
from nova.model.numa.topology import TopologyClaim

VLAN, VF_TRUSTED = "2017-02-22", "2018-08-27"
LATEST = "latest"
NOWHERE = DevicePlace()
TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})


def devices(interfaces: Iterable[Interface], places: Mapping[str, DevicePlace], version: str
            ) -> list[dict[str, object]]:
    """Return the device metadata at ``version``. ``places``: the devices' bus addresses in the guest, by MAC
    address."""
    return [_nic(one, places.get(one.mac.lower(), NOWHERE), version) for one in interfaces if _is_shown(one, version)]


def has_devices(interfaces: Iterable[Interface]) -> bool:
    """Return whether the guest's metadata shows any device, and so needs the devices' places."""
    return any(_is_shown(one, LATEST) for one in interfaces)


def dedicated_cpus(packing: TopologyClaim | None) -> tuple[int, ...]:
    """Return the guest's CPUs that are pinned to a host CPU each."""
    return tuple(sorted({cpu for cell in packing.cells for cpu in cell.pins})) if packing is not None else ()


def _is_shown(interface: Interface, version: str) -> bool:
    return (bool(interface.tag) or _vlan(interface) is not None
            or (_at_least(version, VF_TRUSTED) and _trusted(interface)))


def _nic(interface: Interface, place: DevicePlace, version: str) -> dict[str, object]:
    found: dict[str, Any] = {"type": "nic", "bus": place.bus, "address": place.address, "mac": interface.mac,
                             "tags": [interface.tag] if interface.tag else []}
    vlan = _vlan(interface)
    if vlan is not None and _at_least(version, VLAN):
        found["vlan"] = vlan
    if _at_least(version, VF_TRUSTED):
        found["vf_trusted"] = _trusted(interface)
    return found


def _vlan(interface: Interface) -> int | None:
    """Return the VLAN that tags the guest's packets on a passed-through device. (A bridge's VLAN is not visible to the
    guest.)"""
    if interface.vnic_type == "normal":
        return None
    with contextlib.suppress(ValueError):
        return int(str(interface.details.get("vlan")))
    return None


def _trusted(interface: Interface) -> bool:
    return interface.vnic_type != "normal" and str(interface.profile.get("trusted", "")).lower() in TRUE


def _at_least(version: str, since: str) -> bool:
    return version == LATEST or version >= since
