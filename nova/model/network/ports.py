"""The subset of Neutron's data that nova reads: networks, subnets, ports and bindings, groups, floating addresses.

Source: the public reference of the Networking API v2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from nova.model.base import Time
from nova.model.network.networks import GuestRoute

#: Kinds of ports that need a device of the host, which the claim takes.
DIRECT = frozenset({"direct", "direct-physical", "macvtap", "virtio-forwarder", "vdpa", "remote-managed"})
UNBOUND, FAILED = "unbound", "binding_failed"
ACTIVE, INACTIVE = "ACTIVE", "INACTIVE"
OWNER = "compute:"  # prefix of the device_owner of servers' ports, followed by a zone


class NeutronNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """A Neutron network. ``shared`` and ``external`` depend on the requester. Only administrators see
    ``physical_network``."""

    id: str
    name: str = ""
    project_id: str = ""
    shared: bool = False
    external: bool = False
    port_security: bool = True
    subnet_ids: tuple[str, ...] = ()
    mtu: int | None = None
    status: str = "ACTIVE"
    admin_state_up: bool = True
    physical_network: str | None = None
    tunnelled: bool = False


class NeutronSubnet(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    network_id: str
    cidr: str
    version: int = 4
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    routes: tuple[GuestRoute, ...] = ()
    dhcp: bool = True
    ipv6_mode: str | None = None


class PortAddress(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    subnet_id: str = ""


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that a port takes from one provider of its host. ``id`` empty: the old format, which has one group."""

    id: str = ""
    resources: Mapping[str, int] = {}
    traits: tuple[str, ...] = ()


class ResourceAsked(msgspec.Struct, frozen=True, kw_only=True):
    groups: tuple[ResourceGroup, ...] = ()
    same_subtree: tuple[str, ...] = ()


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """A Neutron port. ``device_id``: uuid of its server; ``device_owner``: compute:<zone> for servers' ports. Only
    administrators see ``host``, ``profile``, ``asked`` and the fields that begin with ``vif_``."""

    id: str
    network_id: str
    project_id: str = ""
    name: str = ""
    mac: str = ""
    addresses: tuple[PortAddress, ...] = ()
    device_id: str = ""
    device_owner: str = ""
    status: str = "DOWN"
    admin_state_up: bool = True
    security_group_ids: tuple[str, ...] = ()
    port_security: bool = True
    ip_allocation: str | None = None  # immediate, deferred, none
    host: str = ""
    vnic_type: str = "normal"
    vif_type: str | None = None
    vif_details: Mapping[str, object] = {}
    profile: Mapping[str, object] = {}
    asked: ResourceAsked = ResourceAsked()
    numa_policy: str | None = None
    tags: tuple[str, ...] = ()
    dns_name: str = ""
    created_at: Time | None = None
    revision: int | None = None  # increases with each change, if the service reports it


def belongs(port: Port, server_uuid: str, project_id: str, known: Collection[str] = ()) -> bool:
    """Return whether the port belongs to that server. Any project can set a port's device_id. So it only counts for
    ports in the server's row (``known``, ids), and for ports of its project with a server as device owner."""
    return port.device_id == server_uuid and (
        port.id in known or (port.project_id in ("", project_id) and port.device_owner.startswith(OWNER)))


class PortBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A binding of a port to one host. Only one binding of a port is ACTIVE."""

    host: str
    status: str = ACTIVE
    vif_type: str = UNBOUND
    vif_details: Mapping[str, object] = {}
    vnic_type: str = "normal"
    profile: Mapping[str, object] = {}


class NeutronRule(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    group_id: str
    project_id: str = ""
    direction: str = "ingress"
    ethertype: str = "IPv4"
    protocol: str | None = None
    port_from: int | None = None
    port_to: int | None = None
    remote_group_id: str | None = None
    remote_prefix: str | None = None


class NeutronGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A security group."""

    id: str
    name: str
    project_id: str = ""
    description: str = ""
    stateful: bool = True
    rules: tuple[NeutronRule, ...] = ()


class NeutronFloating(msgspec.Struct, frozen=True, kw_only=True):
    """A floating address; ``network_id`` is the external network, which is its pool."""

    id: str
    address: str
    network_id: str
    project_id: str = ""
    port_id: str | None = None
    fixed_address: str | None = None
    device_id: str = ""  # of its port, if the service reports it
    status: str = ""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """A quota; a limit of -1 means unlimited. ``used`` None: the service does not report it."""

    limit: int = -1
    used: int | None = None
    reserved: int = 0

    @property
    def room(self) -> int | None:
        """Number of further resources that the quota permits; None if unlimited or unknown."""
        return None if self.limit < 0 or self.used is None else max(self.limit - self.used - self.reserved, 0)
