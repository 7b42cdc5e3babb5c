"""What ports take of their host, and how their bindings say what they got: pure.

Source: the public guides on ports with resource requests, on SR-IOV, and the reference of the Networking API
(``resource_request``, ``binding:profile``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova.model.networks import PortDemand
from nova.model.ports import DIRECT, NeutronNetwork, Port, ResourceGroup
from nova.model.topology import PackedDevice

#: What we write into a port's profile, and take out again; the rest is its owner's.
OURS = frozenset({"allocation", "pci_slot", "pci_vendor_info", "physical_network", "pf_mac_address", "vf_num",
                  "card_serial_number"})


def demands_of(port: Port, network: NeutronNetwork | None) -> tuple[PortDemand, ...]:
    """One a resource request group; a port of a direct kind has one at least. ``network``: as administrators see it."""
    physical = network.physical_network if network is not None and port.vnic_type in DIRECT else None
    groups = port.asked.groups
    if not groups and port.vnic_type in DIRECT:
        groups = (ResourceGroup(),)
    return tuple(PortDemand(port_id=port.id, group=one.id, resources=one.resources, traits=one.traits,
                            vnic_type=port.vnic_type, physical_network=physical, same_subtree=port.asked.same_subtree,
                            numa_policy=port.numa_policy)
                 for one in groups)


def allocation_of(port_id: str, demands: Sequence[PortDemand], providers: Mapping[tuple[str, str], str]
                  ) -> str | dict[str, str] | None:
    """The key ``allocation`` of a port's profile: its provider's uuid, or (where requests come in groups) by group.
    ``providers``: (port, group) -> uuid."""
    mine = {one.group: providers[port_id, one.group] for one in demands
            if one.port_id == port_id and (port_id, one.group) in providers}
    return mine.get("", mine) or None  # of the old format there is one, without a name


def profile_of(before: Mapping[str, Any], allocation: str | Mapping[str, str] | None = None,
               device: PackedDevice | None = None) -> dict[str, Any]:
    """A port's profile on a host: its owner's part, and what the server's claim got there for it."""
    profile = {name: value for name, value in before.items() if name not in OURS}
    if device is None and before.get("physical_network") and "pci_slot" not in before:
        profile["physical_network"] = before["physical_network"]  # its owner's
    if allocation is not None:
        profile["allocation"] = allocation
    if device is not None:
        profile["pci_slot"] = device.address
        if device.vendor_id:
            profile["pci_vendor_info"] = f"{device.vendor_id}:{device.product_id}"
        if device.physical_network:
            profile["physical_network"] = device.physical_network
    return profile


__all__ = ["OURS", "allocation_of", "demands_of", "profile_of"]
