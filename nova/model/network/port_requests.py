"""Requirements of a server's ports in the form for schedulers and claims, and the providers that meet them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nova.model.network.networks import PortDemand
from nova.model.numa.topology import PciRequest, PciSpec
from nova.model.placement.providers import RequestGroup

#: Kind of port -> kind of device. Other direct kinds are not in this host's device list.
KINDS = {"direct": "type-VF", "macvtap": "type-VF", "virtio-forwarder": "type-VF", "remote-managed": "type-VF",
         "direct-physical": "type-PF", "vdpa": "vdpa"}

STEPS = 100_000  # limit of steps for the search of matching providers


class HeldResources(NamedTuple):
    """The resources of one provider that a server holds."""

    provider: str  # uuid
    traits: tuple[str, ...]
    amounts: Mapping[str, int]


def suffix(demand: PortDemand) -> str:
    """Return the name of the demand's request group: the group's own, or the port's id."""
    return demand.group or demand.port_id


def groups(demands: Iterable[PortDemand]) -> tuple[RequestGroup, ...]:
    """Return one request group for each demand with resources, named by :func:`suffix`."""
    return tuple(RequestGroup(suffix=suffix(one), resources=one.resources, required=tuple((t,) for t in one.traits))
                 for one in demands if one.resources)


def subtrees(demands: Iterable[PortDemand]) -> tuple[tuple[str, ...], ...]:
    """Return the groups that need a common subtree. (Each demand of a port lists all groups of the port.)"""
    return tuple(dict.fromkeys(one.same_subtree for one in demands if one.same_subtree))


def devices(demands: Iterable[PortDemand]) -> tuple[PciRequest, ...]:
    """Return one device request for each port of a direct kind; its ``id`` is the port's."""
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
    """Return (port, group) -> uuid of the provider, so that the demands on each provider match the resources held
    there. Empty without a match (the held resources are another request's)."""
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
