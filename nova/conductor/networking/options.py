"""What nova-network's half in the conductor was configured with, as one value."""

from __future__ import annotations

import dataclasses

from nova.model.addressing import Defaults
from nova.model.network_managers import FLAT_DHCP, Manager, named


@dataclasses.dataclass(frozen=True)
class NetworkOptions:
    """Names as in nova.conf, where they are explained. Times in seconds."""

    manager: Manager = FLAT_DHCP
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
        """Whether an address that is given back under a lease waits for the lease's end."""
        return self.manager.dhcp and not self.force_dhcp_release


def from_conf(conf: object) -> NetworkOptions:
    """UnknownManager."""
    values = {field.name: getattr(conf, field.name) for field in dataclasses.fields(NetworkOptions)
              if field.name != "manager"}
    return NetworkOptions(manager=named(conf.network_manager), **values)  # type: ignore[attr-defined]


def defaults_from_conf(conf: object) -> Defaults:
    """What new networks have where a request says nothing."""
    same = {name: getattr(conf, name) for name in (
        "network_size", "multi_host", "gateway", "gateway_v6", "vlan_interface", "vlan_start", "vpn_ip", "vpn_start",
        "cnt_vpn_clients")}
    renamed = {name: getattr(conf, option) for name, option in (
        ("bridge", "flat_network_bridge"), ("bridge_interface", "flat_interface"), ("dns1", "flat_network_dns"),
        ("mtu", "network_device_mtu"), ("injected", "flat_injected"), ("manager", "network_manager"),
        ("share_address", "share_dhcp_address"))}
    return Defaults(**same, **renamed)


__all__ = ["NetworkOptions", "defaults_from_conf", "from_conf"]
