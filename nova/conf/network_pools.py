"""``[DEFAULT]`` options of nova-network's pools: what new networks are like, and how addresses are given and taken back.
Read by nova-conductor, which keeps their rows."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.IntOpt("vlan_start", default=100, min=1, max=4094,
               help="VlanManager: first VLAN number of new networks that name none."),
    cfg.StrOpt("vpn_ip", default="$my_ip", help="VlanManager: public address of the networks' VPN guests."),
    cfg.PortOpt("vpn_start", default=1000, help="VlanManager: first public port of the networks' VPN guests."),
    cfg.IntOpt("cnt_vpn_clients", default=0, min=0,
               help="VlanManager: addresses at the end of each network that are kept for clients of its VPN."),
    cfg.StrOpt("gateway", help="IPv4 gateway of a single new network that names none. Unset: its first address."),
    cfg.StrOpt("gateway_v6", help="IPv6 gateway of a single new network that names none. Unset: its first address."),
    cfg.StrOpt("fixed_range_v6", default="fd00::/48",
               help="IPv6 range that `nova-manage network create` cuts networks from where IPv6 is wanted "
                    "(use_ipv6) and none is named."),
    cfg.StrOpt("ipv6_backend", default="rfc2462", choices=("rfc2462", "account_identifier"),
               help="How guests' IPv6 addresses follow: from the MAC alone (what guests do by themselves), or from "
                    "project and MAC."),
    cfg.IntOpt("fixed_ip_disassociate_timeout", default=600, min=0,
               help="Seconds after which an address that was given back under a lease, with force_dhcp_release off, "
                    "is free whether the lease has ended or not."),
    cfg.IntOpt("create_unique_mac_address_attempts", default=5, min=1,
               help="How many random MAC addresses are tried for an interface."),
    cfg.BoolOpt("update_dns_entries", default=False,
                help="With a multi-host network, tell every host of it at once when a guest comes or goes on another, "
                     "so that its DNS knows the name."),
    cfg.IntOpt("dns_update_periodic_interval", default=-1,
               help="Seconds between two writings of all servers' names into the DNS of instance_dns_domain, for a DNS "
                    "server that was away when they came. 0 or less: never."),
    cfg.StrOpt("default_access_ip_network_name",
               help="Label of the network whose addresses become new servers' access addresses (accessIPv4, "
                    "accessIPv6)."),
    cfg.BoolOpt("enable_network_quota", default=False,
                help="Count the networks that projects make with os-tenant-networks: at most [quota]networks each."),
]
