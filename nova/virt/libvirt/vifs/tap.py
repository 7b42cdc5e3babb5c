"""A tap without a bridge: an agent (such as Calico's) routes its traffic."""

from __future__ import annotations

from dataclasses import replace

from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, plain, tap_name
from nova.virt.libvirt.xml.specs import VifSpec


def record(interface: Interface) -> PlugRecord:
    """Return the record of a tap without a bridge."""
    return PlugRecord(id=interface.id, device=tap_name(interface), bridge="", kind="tap")


def prepare(interface: Interface, place: PlugContext) -> None:
    """Do nothing: libvirt creates the tap."""


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Remove the tap if libvirt left it."""
    tools.links.delete(plug.device)


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's ``interface type='ethernet'``."""
    return replace(plain(interface, asked), type="ethernet", device=tap_name(interface))
