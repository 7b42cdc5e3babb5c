"""Networks and orders for nova-network's tests."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from nova.model.network.networks import DhcpHost, Network, NetworkOnHost
from nova.network.options import NetworkHostOptions


def network(number: int = 1, **fields) -> Network:
    cidr = ipaddress.ip_network(fields.pop("cidr", f"10.0.{number}.0/24"))
    values = {"id": number, "uuid": f"net-{number}", "label": f"net{number}", "bridge": f"br{number}",
              "cidr": str(cidr), "netmask": str(cidr.netmask), "broadcast": str(cidr.broadcast_address),
              "gateway": str(cidr[1]), "dhcp_server": str(cidr[1]), "dhcp_start": str(cidr[2]), "dns1": "8.8.4.4"}
    return Network(**{**values, **fields})


def guest(last: int, number: int = 1, **fields) -> DhcpHost:
    values = {"network_uuid": f"net-{number}", "mac": f"fa:16:3e:00:0{number}:{last:02x}",
              "address": f"10.0.{number}.{last}", "hostname": f"vm{last}", "server_uuid": f"server-{last}"}
    return DhcpHost(**{**values, **fields})


def order(number: int = 1, *guests: DhcpHost, version: int = 1, **fields) -> NetworkOnHost:
    return NetworkOnHost(network=network(number, **fields), addresses=guests, version=version)


def options(path: Path, **fields) -> NetworkHostOptions:
    values = {"networks_path": path / "networks", "state_path": path, "metadata_host": "192.0.2.9",
              "routing_source_ip": "192.0.2.1", "dhcpbridge": "/usr/bin/nova-dhcpbridge"}
    return NetworkHostOptions(**{**values, **fields})
