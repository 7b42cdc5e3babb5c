"""Guests' network interfaces, one module per VIF type: each prepares the host side and returns a spec.

A port's data comes from Neutron, and some of it from the port's owner, who may change it at any time: a port of an
unknown type, or with inconsistent data, is an error of that one guest. nova-compute's start does not depend on ports.
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
    """Linux bridges, under the names of the ``VifKind`` protocol."""

    record, spec = staticmethod(bridge.record), staticmethod(bridge.spec)

    @staticmethod
    def prepare(interface: Interface, place: PlugContext) -> None:
        """Prepare the bridge, for Neutron or for nova-network, whose interfaces have no ``status``."""
        if interface.status is not None:
            bridge.prepare_neutrons(interface, place)
        else:
            bridge.prepare(interface, place.settings)

    @staticmethod
    def unplug(plug: PlugRecord, tools: PlugTools) -> None:
        bridge.unplug(plug)


#: Kinds by the name in a plug's record.
KINDS: Mapping[str, VifKind] = cast(Mapping[str, VifKind], {
    "bridge": _Bridge, "ovs": ovs, "direct": direct, "macvtap": macvtap, "vhostuser": vhostuser, "tap": tap})
#: (binding's vif type, vnic type) -> kind.
TABLE: Mapping[tuple[str, str], str] = {
    ("bridge", "normal"): "bridge", ("ovs", "normal"): "ovs", ("vhostuser", "normal"): "vhostuser",
    ("tap", "normal"): "tap", ("macvtap", "normal"): "macvtap", ("hw_veb", "direct"): "direct",
    ("hw_veb", "macvtap"): "macvtap", ("hostdev_physical", "direct-physical"): "direct"}


def kind_of(interface: Interface) -> VifKind:
    """Return the kind of an interface. Raises host.VifType if none matches its VIF type and vnic type."""
    name = TABLE.get((interface.type, interface.vnic_type))
    if name is None:
        raise errors.host.VifType(id=interface.id, type=interface.type, vnic=interface.vnic_type)
    return KINDS[name]


def record(interface: Interface) -> PlugRecord:
    """Return the record by which the interface is unplugged later. Raises host.VifType, host.VifData;
    host.VifNotBridged."""
    return kind_of(interface).record(interface)


def records(interfaces: Iterable[Interface]) -> tuple[PlugRecord, ...]:
    """Return the record of each interface, in order. Raises the errors of ``record`` for the first invalid
    interface."""
    return tuple(record(interface) for interface in interfaces)


def known_records(interfaces: Iterable[Interface]) -> tuple[PlugRecord, ...]:
    """Return the records of the valid interfaces: invalid ones were never plugged."""
    found = []
    for interface in interfaces:
        with contextlib.suppress(errors.HostRefused):
            found.append(record(interface))
    return tuple(found)


def prepare(interface: Interface, place: PlugContext) -> None:
    """Prepare the host side before the guest starts. Raises host.VifType, and other HostRefused. Safe to repeat."""
    if not place.settings.is_session:
        kind_of(interface).prepare(interface, place)


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Unplug an interface. An interface of a kind that only a newer release knows stays, and an error is logged."""
    kind = KINDS.get(plug.kind)
    if kind is None:
        LOG.error("interface %s was plugged with kind '%s', which this release does not support; device %s may remain",
                  plug.id, plug.kind, plug.device)
        return
    kind.unplug(plug, tools)


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's spec of the interface. Raises host.VifType, host.VifData; image.WrongProperty for an invalid
    quota."""
    return (user if asked.settings.is_session else kind_of(interface)).spec(interface, asked)


__all__ = ["KINDS", "TABLE", "VifRequirements", "PlugTools", "VifKind", "PlugContext", "kind_of", "known_records",
           "prepare", "record", "records", "spec", "tap_name", "unplug"]
