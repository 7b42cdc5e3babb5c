"""A tap with nothing behind it: an agent (Calico's, say) routes what comes out of it."""

from __future__ import annotations

from dataclasses import replace

from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, plain, tap_name
from nova.virt.libvirt.xml.specs import VifSpec


def record(interface: Interface) -> PlugRecord:
    """A tap that is no bridge's."""
    return PlugRecord(id=interface.id, device=tap_name(interface), bridge="", kind="tap")


def prepare(interface: Interface, place: PlugContext) -> None:
    """libvirt makes it."""


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Remove the tap, should libvirt have left it. Nothing when there is none."""
    tools.links.delete(plug.device)


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """libvirt's ``interface type='ethernet'``."""
    return replace(plain(interface, asked), type="ethernet", device=tap_name(interface))
