"""Neutron ports on Open vSwitch and Linux bridges, plugged by the library os-vif (https://docs.openstack.org/os-vif) as
other compute services do: agents rely on its results on the host.

The privileged part of the library runs in its own privsep daemons, which have CAP_NET_ADMIN and little else. As root
(or in the helper), this module starts them; ``[vif_plug_ovs_privileged]`` and ``[vif_plug_linux_bridge_privileged]``
can change that. They end with this process, however it ends. The library's options are in ``[os_vif_ovs]`` and
``[os_vif_linux_bridge]``.

The library lives as long as the process, reads the process's configuration, and is loaded with the first port; a host
without Neutron never loads it. Calls are serialized: its netlink library runs an event loop, of which all green threads
together can have only one. (Calls of :mod:`nova.privileged.links` have threads of their own.)
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from oslo_config import cfg

from nova import errors
from nova.privileged.client import forwarded

LOG = logging.getLogger(__name__)

OVS, LINUX_BRIDGE = "ovs", "linux_bridge"  # os-vif's names of its plugins
PRIVILEGED = ("vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged")  # sections of their privsep contexts
OVSDB_SOCKET = Path("/var/run/openvswitch/db.sock")  # where ovs-vsctl and libvirt look
OVSDB_TIMEOUT_S = 30  # as in nova.privileged.ovs; a longer wait would block all other calls
NOBODY = "00000000-0000-0000-0000-000000000000"  # placeholder for values that unplugging does not need


@dataclass(frozen=True, kw_only=True)
class VifPort:
    """A port for os-vif. ``between``: the Linux bridge of hybrid plugging. To unplug, the first five fields suffice."""

    id: str
    plugin: str
    device: str
    bridge: str
    datapath: str = ""
    port_id: str = ""
    between: str = ""
    mac: str | None = None
    network_id: str = NOBODY
    label: str = ""
    mtu: int | None = None
    filtered: bool = True


class VifLibrary(Protocol):
    """``os_vif``: its calls, with os-vif's objects of a port and its guest."""

    def plug(self, vif: object, instance_info: object) -> None:
        """Plug a port."""

    def unplug(self, vif: object, instance_info: object) -> None:
        """Unplug a port."""


class Plugs(Protocol):
    def plug(self, port: VifPort, server_uuid: str) -> None:
        """Plug the port on this host, except for the guest's tap. Idempotent. Raises host.NotPlugged."""

    def unplug(self, port: VifPort) -> None:
        """Remove the port completely, if it exists. Raises host.NotPlugged."""


class OsVif:
    """Plugs ports by os-vif. ``conf``: the process's configuration, which the library reads too. ``locks``: a directory
    for its locks."""

    def __init__(self, locks: Path, conf: cfg.ConfigOpts = cfg.CONF) -> None:
        self._locks, self._conf = locks, conf
        self._one_at_a_time = threading.Lock()
        self._library: VifLibrary | None = None

    @forwarded("os_vif.plug")
    def plug(self, port: VifPort, server_uuid: str) -> None:
        self._call("plug", port, server_uuid, "plugged into")

    @forwarded("os_vif.unplug")
    def unplug(self, port: VifPort) -> None:
        self._call("unplug", port, NOBODY, "taken from")

    # --- internals

    def _call(self, name: str, port: VifPort, server_uuid: str, what: str) -> None:
        try:
            with self._one_at_a_time:
                if self._library is None:
                    self._library = self._load()
                getattr(self._library, name)(_vif(port), _guest(server_uuid))
        except Exception as error:  # plugins raise any exception; os-vif wraps it with all it knows of the port
            cause = error.__context__ or error
            reason = str(cause).strip().rstrip(".") or type(cause).__name__
            raise errors.host.NotPlugged(id=port.id, what=what, bridge=port.bridge, reason=reason) from error

    def _load(self) -> VifLibrary:
        import os_vif
        from oslo_concurrency import lockutils
        from vif_plug_ovs.ovs import OvsPlugin

        cfg.set_defaults(OvsPlugin.CONFIG_OPTS, ovs_vsctl_timeout=OVSDB_TIMEOUT_S)
        if OVSDB_SOCKET.exists():  # its own default is a TCP port that only Neutron's agent opens
            cfg.set_defaults(OvsPlugin.CONFIG_OPTS, ovsdb_connection=f"unix:{OVSDB_SOCKET}")
        self._locks.mkdir(parents=True, exist_ok=True)
        lockutils.set_defaults(str(self._locks))
        os_vif.initialize()
        if self._conf.os_vif_ovs.per_port_bridge:
            raise ValueError("[os_vif_ovs]per_port_bridge is not supported for libvirt guests, because libvirt makes "
                             "their taps ports of the integration bridge")
        if os.geteuid() == 0:
            for section in PRIVILEGED:
                if section in self._conf:
                    self._conf.set_default("helper_command", shlex.join(self._helper()), group=section)
        return os_vif

    def _helper(self) -> Sequence[str]:
        """Return privsep's command: from the directory of this interpreter, with this process's configuration files.
        Deprecation warnings of libraries would appear in nova's log, so they are disabled."""
        files = getattr(self._conf, "config_file", None) or ()  # a configuration that was not read has no such option
        words = [word for file in files for word in ("--config-file", file)]
        return ("env", "PYTHONWARNINGS=ignore", str(Path(sys.executable).parent / "privsep-helper"), *words)


def _guest(server_uuid: str) -> object:
    from os_vif.objects.instance_info import InstanceInfo

    return InstanceInfo(uuid=server_uuid, name=server_uuid)


def _vif(port: VifPort) -> object:
    """Return the port as an os-vif object."""
    from os_vif.objects import vif
    from os_vif.objects.network import Network

    network = Network(id=port.network_id, bridge=port.bridge, label=port.label, mtu=port.mtu, bridge_interface=None,
                      vlan=None, should_provide_bridge=port.plugin == LINUX_BRIDGE)
    common = {"id": port.id, "address": port.mac, "network": network, "plugin": port.plugin,
              "vif_name": port.device, "has_traffic_filtering": port.filtered}
    if port.plugin == LINUX_BRIDGE:
        return vif.VIFBridge(bridge_name=port.bridge, **common)
    profile = vif.VIFPortProfileOpenVSwitch(interface_id=port.port_id or port.id, create_port=False,
                                            datapath_type=port.datapath or None)
    kind, bridge = (vif.VIFBridge, port.between) if port.between else (vif.VIFOpenVSwitch, port.bridge)
    return kind(bridge_name=bridge, port_profile=profile, **common)
