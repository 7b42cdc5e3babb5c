"""Options of nova-network, as one value."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nova import errors, failures
from nova.conf._options import Options
from nova.model.network import forbidden_ranges


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkHostOptions:
    """Options of a network host, named and explained as in nova.conf. Times in seconds."""

    networks_path: Path
    state_path: Path
    my_ip: str = "127.0.0.1"
    host: str = ""
    network_manager: str = "nova.network.manager.FlatDHCPManager"
    fake_network: bool = False
    flat_interface: str | None = None
    vlan_interface: str | None = None
    use_ipv6: bool = False
    share_dhcp_address: bool = False
    teardown_unused_network_gateway: bool = False
    use_single_default_gateway: bool = False
    linuxnet_interface_driver: str = "nova.network.linux_net.LinuxBridgeInterfaceDriver"
    linuxnet_ovs_integration_bridge: str = "br-int"
    ovs_vsctl_timeout: int = 120
    public_interface: str = "eth0"
    routing_source_ip: str = "127.0.0.1"
    metadata_host: str = "127.0.0.1"
    metadata_port: int = 8775
    dmz_cidr: tuple[str, ...] = ()
    guest_forbidden_ranges: tuple[str, ...] = (forbidden_ranges.AUTO,)
    force_snat_range: tuple[str, ...] = ()
    forward_bridge_interface: tuple[str, ...] = ("all",)
    iptables_top_regex: str = ""
    iptables_bottom_regex: str = ""
    iptables_drop_action: str = "DROP"
    send_arp_for_ha: bool = False
    send_arp_for_ha_count: int = 3
    dhcp_lease_time: int = 86400
    dhcp_domain: str = "novalocal"
    force_dhcp_release: bool = True
    dhcpbridge: str = "nova-dhcpbridge"
    dhcpbridge_flagfile: tuple[str, ...] = ()
    dnsmasq_config_file: str = ""
    dns_server: tuple[str, ...] = ()
    use_network_dns_servers: bool = False

    def __post_init__(self) -> None:
        """Check that valid firewall rules can be made of the values. Raises network.Option."""
        for option, check in _CHECKS.items():
            value = getattr(self, option)
            for item in value if isinstance(value, tuple) else (value,):
                try:
                    check(item)
                except (ValueError, re.error) as error:
                    raise errors.network.Option(option=option, value=item, reason=str(error)) from None
        forbidden_setting(self)


def _device(name: str | None) -> None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9_.:+@-]{1,16}", name):
        raise ValueError("not a valid network interface name")


def _range(cidr: str) -> None:
    ipaddress.IPv4Network(cidr, strict=False)


def _range_of_any_version(cidr: str) -> None:
    ipaddress.ip_network(cidr, strict=False)


def forbidden_setting(options: NetworkHostOptions) -> forbidden_ranges.RangeSetting:
    """Return the parsed ``guest_forbidden_ranges``. Raises network.Option."""
    words = options.guest_forbidden_ranges
    with failures.replaced(ValueError, lambda error: errors.network.Option(option="guest_forbidden_ranges",
            value=",".join(words), reason=str(error))):
        return forbidden_ranges.parsed(words)


_CHECKS: dict[str, Callable[[str], object]] = {
    "routing_source_ip": ipaddress.IPv4Address,
    "metadata_host": ipaddress.IPv4Address,
    "dmz_cidr": _range_of_any_version,
    "force_snat_range": _range,
    "public_interface": _device,
    "flat_interface": _device,
    "vlan_interface": _device,
    "linuxnet_ovs_integration_bridge": _device,
    "forward_bridge_interface": _device,
    "iptables_drop_action": _device,
    "iptables_top_regex": re.compile,
    "iptables_bottom_regex": re.compile,
}

_ELSEWHERE = {"dhcp_domain": "api"}  # options in another section


def from_conf(conf: Options) -> NetworkHostOptions:
    """Return the options from the ``[DEFAULT]`` and ``[api]`` sections, read once at the start."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(NetworkHostOptions):
        section = getattr(conf, _ELSEWHERE[field.name]) if field.name in _ELSEWHERE else conf
        value = getattr(section, field.name)
        if isinstance(value, list):
            value = tuple(value)
        values[field.name] = Path(value) if field.name.endswith("_path") else value
    return NetworkHostOptions(**values)
