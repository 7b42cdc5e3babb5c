"""A guest's network interfaces, one kind a file: the host's side is prepared, and a spec comes back.

What a port is comes from Neutron, and some of it from its owner, who may change it at any time: what fits no kind, or
does not hang together, is that one guest's error. Nothing here is asked when nova-compute starts.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import cast

from nova import errors
from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs import bridge, direct, macvtap, ovs, tap, user, vhostuser
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifKind, VifRequirements, tap_name
from nova.virt.libvirt.xml.specs import VifSpec

LOG = logging.getLogger(__name__)



class _Bridge:
    """Linux bridges, by the rest's names."""

    record, spec = staticmethod(bridge.record), staticmethod(bridge.spec)

    @staticmethod
    def prepare(interface: Interface, place: PlugContext) -> None:
        """``status``: nova-network's have none."""
        if interface.status is not None:
            bridge.prepare_neutrons(interface, place)
        else:
            bridge.prepare(interface, place.settings)

    @staticmethod
    def unplug(plug: PlugRecord, tools: PlugTools) -> None:
        bridge.unplug(plug)


#: By the name that a plug's record keeps.
KINDS: Mapping[str, VifKind] = cast(Mapping[str, VifKind], {
    "bridge": _Bridge, "ovs": ovs, "direct": direct, "macvtap": macvtap, "vhostuser": vhostuser, "tap": tap})
#: (binding's vif type, vnic type) -> kind.
TABLE: Mapping[tuple[str, str], str] = {
    ("bridge", "normal"): "bridge", ("ovs", "normal"): "ovs", ("vhostuser", "normal"): "vhostuser",
    ("tap", "normal"): "tap", ("macvtap", "normal"): "macvtap", ("hw_veb", "direct"): "direct",
    ("hw_veb", "macvtap"): "macvtap", ("hostdev_physical", "direct-physical"): "direct"}


def kind_of(interface: Interface) -> VifKind:
    """host.VifType: none is of that type, or the type and what its owner asks for don't go together."""
    name = TABLE.get((interface.type, interface.vnic_type))
    if name is None:
        raise errors.host.VifType(id=interface.id, type=interface.type, vnic=interface.vnic_type)
    return KINDS[name]


def record(interface: Interface) -> PlugRecord:
    """What will be plugged, and how it is found again. host.VifType, host.VifData; host.VifNotBridged."""
    return kind_of(interface).record(interface)


def records(interfaces: Iterable[Interface]) -> tuple[PlugRecord, ...]:
    """Of each interface, in their order. The first that makes no sense raises, as ``record`` does."""
    return tuple(record(interface) for interface in interfaces)


def known_records(interfaces: Iterable[Interface]) -> tuple[PlugRecord, ...]:
    """Of those that make sense: what doesn't was never plugged."""
    found = []
    for interface in interfaces:
        with contextlib.suppress(errors.HostRefused):
            found.append(record(interface))
    return tuple(found)


def prepare(interface: Interface, place: PlugContext) -> None:
    """Have all there is on this host before the guest starts. host.VifType, and other HostRefused. It may be
    repeated."""
    if not place.settings.is_session:
        kind_of(interface).prepare(interface, place)


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """What a newer release had plugged stays, and is told."""
    kind = KINDS.get(plug.kind)
    if kind is None:
        LOG.error("interface %s was plugged as '%s', which this release does not know: its device %s may be left",
                  plug.id, plug.kind, plug.device)
        return
    kind.unplug(plug, tools)


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """What libvirt is told of the interface. host.VifType, host.VifData; image.WrongProperty: a quota makes no
    sense."""
    return (user if asked.settings.is_session else kind_of(interface)).spec(interface, asked)


__all__ = ["KINDS", "TABLE", "VifRequirements", "PlugTools", "VifKind", "PlugContext", "kind_of", "known_records",
           "prepare", "record", "records", "spec", "tap_name", "unplug"]
