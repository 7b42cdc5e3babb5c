"""What a server's ports ask of a host, in the words of schedulers and claims; and which provider met which of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nova.model.network.networks import PortDemand
from nova.model.numa.topology import PciRequest, PciSpec
from nova.model.placement.providers import RequestGroup

#: Kind of port -> kind of device. Other direct kinds are not devices of this host's list.
KINDS = {"direct": "type-VF", "macvtap": "type-VF", "virtio-forwarder": "type-VF", "remote-managed": "type-VF",
         "direct-physical": "type-PF", "vdpa": "vdpa"}

STEPS = 100_000  # in which providers must be found to have met the demands


class HeldResources(NamedTuple):
    """What a server holds of one provider."""

    provider: str  # uuid
    traits: tuple[str, ...]
    amounts: Mapping[str, int]


def suffix(demand: PortDemand) -> str:
    """The name of its request group: the group's own, or the port's."""
    return demand.group or demand.port_id


def groups(demands: Iterable[PortDemand]) -> tuple[RequestGroup, ...]:
    """A group of the request for each demand with resources, named as :func:`suffix` says."""
    return tuple(RequestGroup(suffix=suffix(one), resources=one.resources, required=tuple((t,) for t in one.traits))
                 for one in demands if one.resources)


def subtrees(demands: Iterable[PortDemand]) -> tuple[tuple[str, ...], ...]:
    """(Each of a port's demands tells all of its port's.)"""
    return tuple(dict.fromkeys(one.same_subtree for one in demands if one.same_subtree))


def devices(demands: Iterable[PortDemand]) -> tuple[PciRequest, ...]:
    """One for each port of a direct kind; its ``id`` is the port's."""
    found = {}
    for one in demands:
        if one.vnic_type in KINDS:
            tags = {"physical_network": one.physical_network} if one.physical_network else {}
            if one.vnic_type == "remote-managed":
                tags["remote_managed"] = "true"
            found[one.port_id] = PciRequest(count=1, specs=(PciSpec(kind=KINDS[one.vnic_type], tags=tags),),
                                            numa_policy=one.numa_policy or "legacy", id=one.port_id)
    return tuple(found.values())


def met_by(demands: Sequence[PortDemand], held: Sequence[HeldResources]) -> dict[tuple[str, str], str]:
    """(port, group) -> uuid of a provider, so that what they ask of each is what the server holds there. Empty when
    nothing fits (what is held is another request's)."""
    wanted = [one for one in demands if one.resources]
    left = [dict(one.amounts) for one in held]
    steps = [STEPS]

    def place(at: int) -> list[int] | None:
        if at == len(wanted):
            return []
        for number, provider in enumerate(held):
            steps[0] -= 1
            if steps[0] < 0:
                return None
            if not _fits(wanted[at], provider, left[number]):
                continue
            _take(wanted[at], left[number], 1)
            rest = place(at + 1)
            if rest is not None:
                return [number, *rest]
            _take(wanted[at], left[number], -1)
        return None
    found = place(0)
    return {(one.port_id, one.group): held[number].provider
            for one, number in zip(wanted, found or (), strict=False)}


def _fits(demand: PortDemand, provider: HeldResources, left: Mapping[str, int]) -> bool:
    return set(demand.traits) <= set(provider.traits) and all(left.get(name, 0) >= amount
                                                              for name, amount in demand.resources.items())


def _take(demand: PortDemand, left: dict[str, int], sign: int) -> None:
    for name, amount in demand.resources.items():
        left[name] -= sign * amount


__all__ = ["KINDS", "HeldResources", "devices", "groups", "met_by", "subtrees", "suffix"]
