"""Options of nova-network's part in the conductor: networks, floating addresses and DNS, as values."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from nova.clients.dns import DnsOptions, Managers
from nova.conf._options import Options
from nova.model.network.addressing import Defaults
from nova.model.network.network_managers import FLAT_DHCP, NetworkKind, named


@dataclasses.dataclass(frozen=True)
class FloatingOptions:
    """Options of floating addresses, named and explained as in nova.conf. ``dns``: the two drivers."""

    default_floating_pool: str = "nova"
    auto_assign_floating_ip: bool = False
    instance_dns_domain: str = ""
    dns_update_periodic_interval: int = -1
    dns: Managers = dataclasses.field(default_factory=Managers.of)


def floating_from_conf(conf: Options) -> FloatingOptions:
    """Return the options of floating addresses. Raises dns.NoDriver if a DNS driver cannot be created."""
    ldap = {field.name: getattr(conf, field.name) for field in dataclasses.fields(DnsOptions)
            if field.name.startswith("ldap_")}
    ldap["ldap_dns_servers"] = tuple(ldap["ldap_dns_servers"])
    drivers = Managers.of(conf.floating_ip_dns_manager, conf.instance_dns_manager,
                          DnsOptions(state_path=Path(conf.state_path), **ldap))
    values = {field.name: getattr(conf, field.name) for field in dataclasses.fields(FloatingOptions)
              if field.name != "dns"}
    return FloatingOptions(**values, dns=drivers)


@dataclasses.dataclass(frozen=True)
class NetworkOptions:
    """Options of networks, named and explained as in nova.conf. Times in seconds."""

    manager: NetworkKind = FLAT_DHCP
    force_dhcp_release: bool = True
    fixed_ip_disassociate_timeout: int = 600
    create_unique_mac_address_attempts: int = 5
    ipv6_backend: str = "rfc2462"
    teardown_unused_network_gateway: bool = False
    update_dns_entries: bool = False
    enable_network_quota: bool = False
    default_access_ip_network_name: str | None = None

    @property
    def keeps_leased(self) -> bool:
        """True if a released address under a lease waits for the lease's end."""
        return self.manager.dhcp and not self.force_dhcp_release


def from_conf(conf: Options) -> NetworkOptions:
    """Return the options of networks. Raises network.UnknownManager."""
    values = {field.name: getattr(conf, field.name) for field in dataclasses.fields(NetworkOptions)
              if field.name != "manager"}
    return NetworkOptions(manager=named(conf.network_manager), **values)


def defaults_from_conf(conf: object) -> Defaults:
    """Return the defaults of new networks, for values that a request omits."""
    same = {name: getattr(conf, name) for name in (
        "network_size", "multi_host", "gateway", "gateway_v6", "vlan_interface", "vlan_start", "vpn_ip", "vpn_start",
        "cnt_vpn_clients")}
    renamed = {name: getattr(conf, option) for name, option in (
        ("bridge", "flat_network_bridge"), ("bridge_interface", "flat_interface"), ("dns1", "flat_network_dns"),
        ("mtu", "network_device_mtu"), ("injected", "flat_injected"), ("manager", "network_manager"),
        ("share_address", "share_dhcp_address"))}
    return Defaults(**same, **renamed)


__all__ = ["FloatingOptions", "NetworkOptions", "defaults_from_conf", "floating_from_conf", "from_conf"]
