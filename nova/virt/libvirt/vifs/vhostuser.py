"""vhost-user interfaces: a switch in its own process (Open vSwitch with DPDK, VPP, ...) reads from the guest's memory,
over a socket that one of the two opens."""

from __future__ import annotations

import os
from dataclasses import replace

from nova import errors, failures
from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, detail, plain
from nova.virt.libvirt.vifs.ovs import PORT, SWITCH, ids_of, switch_of
from nova.virt.libvirt.xml.specs import VifSpec

#: QEMU's role -> the type of Open vSwitch's port at the other end.
OTHER_END = {"server": "dpdkvhostuserclient", "client": "dpdkvhostuser"}


def record(interface: Interface) -> PlugRecord:
    """Return the record, whose device is the socket's path. Raises host.VifData if the binding names no absolute
    path."""
    path = _path(interface)
    on_switch = bool(interface.details.get("vhostuser_ovs_plug"))
    details = {SWITCH: switch_of(interface), PORT: os.path.basename(path)} if on_switch else {}
    return PlugRecord(id=interface.id, device=path, bridge="", kind="vhostuser", details=details)


def prepare(interface: Interface, place: PlugContext) -> None:
    """Create the port on Open vSwitch, if the port's details request it (``vhostuser_ovs_plug``); any other switch
    creates its own. Raises host.NoBridge, host.VifData."""
    plug, ovs = record(interface), place.tools.ovs
    if not plug.details:
        return
    mode = _mode(interface)
    with failures.translated(errors.host.CommandFailed,
            lambda error: errors.host.VifData(id=interface.id, reason=error.message)):
        if not ovs.has_bridge(plug.details[SWITCH]):
            raise errors.host.NoBridge(bridge=plug.details[SWITCH], network=interface.label)
        options = {"vhost-server-path": plug.device} if mode == "server" else {}
        ovs.ensure_port(plug.details[SWITCH], plug.details[PORT], ids_of(interface, place), OTHER_END[mode], options)


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Remove the Open vSwitch port that ``prepare`` created. Other switches remove their own."""
    if plug.details:
        tools.ovs.delete_port(plug.details[SWITCH], plug.details[PORT])


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's ``interface type='vhostuser'``, without vhost, because the kernel is not involved."""
    return replace(plain(interface, asked), type="vhostuser", backend=None, bandwidth=None,
                   source={"type": "unix", "path": _path(interface), "mode": _mode(interface)})


def _path(interface: Interface) -> str:
    path = detail(interface, "vhostuser_socket")
    if not path.startswith("/") or os.path.normpath(path) != path:
        raise errors.host.VifData(id=interface.id, reason=f"its binding names no socket ({path or 'none'})")
    return path


def _mode(interface: Interface) -> str:
    mode = detail(interface, "vhostuser_mode") or "client"
    if mode not in OTHER_END:
        raise errors.host.VifData(id=interface.id, reason=f"'{mode}' is not a vhost-user mode (client or server)")
    return mode
