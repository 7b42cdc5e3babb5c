"""Resources of ports in a server's claim on a host: read once for all ports, and only if a port requests some."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments
from nova.db.placement import claims, port_claims
from nova.model.network.networks import PortDemand
from nova.model.network.port_requests import met_by
from nova.model.network.ports import DIRECT, NeutronNetwork, Port, ResourceGroup
from nova.model.numa.topology import DeviceClaim


class ClaimedPorts:
    """Claimed resources of a server's ports. ``host``: the end of the move, if a move has claims on two."""

    def __init__(self, deps: Deps, op: Op, host: str | None) -> None:
        self._world, self._op, self._host = deps, op, host or ""
        self.demands: Sequence[PortDemand] = op.server.port_demands or ()

    def allocation(self, port_id: str) -> str | dict[str, str] | None:
        """Return the value for the port's ``binding:profile``: the provider, or provider by resource request group;
        None if the port requests no resources."""
        return allocation_of(port_id, self.demands, self._providers) if self.demands else None

    def device(self, port_id: str) -> DeviceClaim | None:
        return self._devices.get(port_id) if self.demands else None

    @property
    def _leaving(self) -> bool:
        """True if the host is the end that the move leaves."""
        source = self._op.asked(PlacementArguments).source
        return bool(source) and source == self._host and self._op.progress.host != source

    @functools.cached_property
    def _providers(self) -> Mapping[tuple[str, str], str]:
        with self._world.api.reading() as tx:
            held = port_claims.held(tx, self._op.uuid, self._host, self._leaving)
        return met_by(self.demands, held)

    @functools.cached_property
    def _devices(self) -> Mapping[str, DeviceClaim]:
        with self._world.api.reading() as tx:
            packing = claims.topology_claim_at(tx, self._op.uuid, self._host, self._leaving)
        return {one.id: one for one in packing.devices if one.id} if packing is not None else {}


#: Keys that nova writes into a port's profile and removes again; the others belong to its owner.
OURS = frozenset({"allocation", "pci_slot", "pci_vendor_info", "physical_network", "pf_mac_address", "vf_num",
                  "card_serial_number"})


def demands_of(port: Port, network: NeutronNetwork | None) -> tuple[PortDemand, ...]:
    """Return the port's demands: one for each resource request group, and at least one for a direct port. ``network``:
    as administrators see it."""
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
    """Return the ``allocation`` of a port's profile: its provider's UUID, or UUIDs by group if requests come in groups.
    ``providers``: (port, group) -> UUID."""
    mine = {one.group: providers[port_id, one.group] for one in demands
            if one.port_id == port_id and (port_id, one.group) in providers}
    return mine.get("", mine) or None  # the old format has one, without a name


def profile_of(before: Mapping[str, object], allocation: str | Mapping[str, str] | None = None,
               device: DeviceClaim | None = None) -> dict[str, object]:
    """Return a port's profile on a host: its owner's part, and the resources of the server's claim there."""
    profile = {name: value for name, value in before.items() if name not in OURS}
    if device is None and before.get("physical_network") and "pci_slot" not in before:
        profile["physical_network"] = before["physical_network"]  # set by its owner
    if allocation is not None:
        profile["allocation"] = allocation
    if device is not None:
        profile["pci_slot"] = device.address
        if device.vendor_id:
            profile["pci_vendor_info"] = f"{device.vendor_id}:{device.product_id}"
        if device.physical_network:
            profile["physical_network"] = device.physical_network
    return profile


__all__ = ["ClaimedPorts", "OURS", "allocation_of", "demands_of", "profile_of"]
