"""``[DEFAULT]`` options of nova-network's pools: defaults of new networks, and allocation of addresses. Read by
nova-conductor, which stores them."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.IntOpt("vlan_start", default=100, min=1, max=4094,
               help="VlanManager: first VLAN number of new networks without their own."),
    cfg.StrOpt("vpn_ip", default="$my_ip", help="VlanManager: public address of the networks' VPN guests."),
    cfg.PortOpt("vpn_start", default=1000, help="VlanManager: first public port of the networks' VPN guests."),
    cfg.IntOpt("cnt_vpn_clients", default=0, min=0,
               help="VlanManager: number of addresses at the end of each network reserved for VPN clients."),
    cfg.StrOpt("gateway", help="IPv4 gateway of a single new network without its own. Unset: its first address."),
    cfg.StrOpt("gateway_v6", help="IPv6 gateway of a single new network without its own. Unset: its first address."),
    cfg.StrOpt("fixed_range_v6", default="fd00::/48",
               help="IPv6 range from which `nova-manage network create` allocates networks if use_ipv6 is set and "
                    "the request names none."),
    cfg.StrOpt("ipv6_backend", default="rfc2462", choices=("rfc2462", "account_identifier"),
               help="Derivation of guests' IPv6 addresses: from the MAC alone (as guests do themselves), or from "
                    "project and MAC."),
    cfg.IntOpt("fixed_ip_disassociate_timeout", default=600, min=0,
               help="Seconds after which an address released under a lease, with force_dhcp_release off, becomes "
                    "free even if the lease has not ended."),
    cfg.IntOpt("create_unique_mac_address_attempts", default=5, min=1,
               help="Number of random MAC addresses tried for an interface."),
    cfg.BoolOpt("update_dns_entries", default=False,
                help="Notify every host of a multi-host network immediately when a guest arrives or leaves on "
                     "another, so that its DNS has the name."),
    cfg.IntOpt("dns_update_periodic_interval", default=-1,
               help="Seconds between two updates of all servers' names in the DNS of instance_dns_domain, for a DNS "
                    "server that was unavailable when they were created. 0 or less: never."),
    cfg.StrOpt("default_access_ip_network_name",
               help="Label of the network whose addresses become new servers' access addresses (accessIPv4, "
                    "accessIPv6)."),
    cfg.BoolOpt("enable_network_quota", default=False,
                help="Limit the networks that projects create with os-tenant-networks to [quota]networks each."),
]
