"""What Neutron keeps, as far as we read it: networks, subnets, ports and their bindings, groups, floating addresses.

Source: the public reference of the Networking API v2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from nova.model.base import Time
from nova.model.network.networks import GuestRoute

#: Kinds of ports that are a device of the host's, taken by a claim.
DIRECT = frozenset({"direct", "direct-physical", "macvtap", "virtio-forwarder", "vdpa", "remote-managed"})
UNBOUND, FAILED = "unbound", "binding_failed"
ACTIVE, INACTIVE = "ACTIVE", "INACTIVE"
OWNER = "compute:"  # what the device_owner of servers' ports begins with; then comes a zone


class NeutronNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """``shared`` and ``external`` as whoever asked sees it. ``physical_network`` is told to administrators alone."""

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
    """What a port takes of its host, of one provider. ``id`` empty: the old format, of one group."""

    id: str = ""
    resources: Mapping[str, int] = {}
    traits: tuple[str, ...] = ()


class ResourceAsked(msgspec.Struct, frozen=True, kw_only=True):
    groups: tuple[ResourceGroup, ...] = ()
    same_subtree: tuple[str, ...] = ()


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """``device_id``: whose it is, a server's uuid; ``device_owner``: compute:<zone> for servers'. What begins with
    ``vif_``, ``host``, ``profile`` and ``asked`` is told to administrators alone."""

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
    revision: int | None = None  # counts up with each change, where the service tells


def belongs(port: Port, server_uuid: str, project_id: str, known: Collection[str] = ()) -> bool:
    """Whether it is that server's. Anybody can say so of a port of theirs: it counts of those that the server's row
    knows (``known``, ids), and of its project's that were made or taken as a server's."""
    return port.device_id == server_uuid and (
        port.id in known or (port.project_id in ("", project_id) and port.device_owner.startswith(OWNER)))


class PortBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A port on one host. Only one of a port's is ACTIVE."""

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
    """A floating address; ``network_id`` is the external network's: its pool."""

    id: str
    address: str
    network_id: str
    project_id: str = ""
    port_id: str | None = None
    fixed_address: str | None = None
    device_id: str = ""  # of its port, where the service tells
    status: str = ""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """A quota: -1 is no bound. ``used`` None: the service does not tell."""

    limit: int = -1
    used: int | None = None
    reserved: int = 0

    @property
    def room(self) -> int | None:
        """How many more there may be; None: as many as one likes, or nobody knows."""
        return None if self.limit < 0 or self.used is None else max(self.limit - self.used - self.reserved, 0)
