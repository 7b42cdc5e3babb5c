"""``[DEFAULT]`` options of nova-network, and of the networks it serves (the conductor makes those)."""

from __future__ import annotations

import os
import sysconfig

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("use_neutron",
                help="Whether networks are Neutron's (true) or nova-network's (false). Unset: Neutron's where [neutron] "
                     "has credentials or an address, else nova-network's."),
    # Which networks there are. Read by nova-conductor, which keeps their rows.
    cfg.StrOpt("network_manager", default="nova.network.manager.FlatDHCPManager",
               help="How networks are built on the hosts. FlatDHCPManager: one bridge a network, all projects on it, "
                    "addresses by DHCP. Unlike older releases, VlanManager is not the default: it needs trunk ports "
                    "on every switch, which a first cloud seldom has. VlanManager and FlatManager come with a later "
                    "release, and nova-network refuses to start with them."),
    cfg.BoolOpt("multi_host", default=False,
                help="New networks are served by every compute host for its own guests, instead of by one network "
                     "host for all."),
    cfg.IntOpt("num_networks", default=1, min=1, help="How many networks `nova-manage network create` makes."),
    cfg.IntOpt("network_size", default=256, min=4,
               help="Addresses in a network, where the request names no size and its range is larger."),
    cfg.StrOpt("flat_network_bridge", help="Bridge of new networks that name none, such as br100."),
    cfg.StrOpt("flat_interface",
               help="Network interface that becomes a port of the bridge, where a network names none. It joins guests "
                    "on different hosts; its addresses move to the bridge. Unset: the bridge has guests alone."),
    cfg.StrOpt("flat_network_dns", default="8.8.4.4", help="First name server of new networks that name none."),
    cfg.BoolOpt("flat_injected", default=False,
                help="Mark new networks so that guests get their address written into the image or config drive."),
    cfg.IntOpt("network_device_mtu", min=68, max=65535, help="MTU of new networks that name none."),
    cfg.BoolOpt("fake_network", default=False,
                help="Serve networks in the records alone: no bridge, no dnsmasq, no firewall rule on this host. For "
                     "clouds on the fake driver."),
    cfg.StrOpt("networks_path", default="$state_path/networks",
               help="Where nova-network keeps what dnsmasq reads, its process ids, and the leases it knows of."),
    cfg.StrOpt("public_interface", default="eth0",
               help="Network interface to the outside: guests' traffic that leaves over it gets routing_source_ip."),
    cfg.StrOpt("routing_source_ip", default="$my_ip",
               help="Source address that guests' traffic has outside (SNAT)."),
    cfg.StrOpt("metadata_host", default="$my_ip",
               help="Address of nova-api-metadata, to which guests' requests to 169.254.169.254 are sent (DNAT). It "
                    "must see the guests' own addresses, so it needs a route back to their networks through this "
                    "host."),
    cfg.PortOpt("metadata_port", default=8775, help="Port of nova-api-metadata."),
    cfg.ListOpt("dmz_cidr", default=[], help="Ranges that guests reach with their own addresses, without SNAT."),
    cfg.MultiStrOpt("force_snat_range", default=[],
                    help="Ranges to which SNAT applies even on networks whose gateway is another machine."),
    cfg.MultiStrOpt("forward_bridge_interface", default=["all"],
                    help="Interfaces with which a bridge may exchange packets; `all` for any."),
    cfg.StrOpt("iptables_top_regex", default="",
               help="Regular expression of other programs' rules that stay above ours in the chains of iptables."),
    cfg.StrOpt("iptables_bottom_regex", default="",
               help="Regular expression of other programs' rules that stay below ours."),
    cfg.StrOpt("iptables_drop_action", default="DROP",
               help="Chain or target of packets that are dropped, such as one that logs first."),
    cfg.BoolOpt("send_arp_for_ha", default=False,
                help="Announce a gateway address with gratuitous ARP when it is put on a device (needs arping)."),
    cfg.IntOpt("send_arp_for_ha_count", default=3, min=1, help="How many times."),
    # DHCP.
    cfg.IntOpt("dhcp_lease_time", default=86400, min=120, help="Seconds for which a guest's address is leased."),
    cfg.BoolOpt("force_dhcp_release", default=True,
                help="Take the lease of a deleted server's address back at once (needs dhcp_release of "
                     "dnsmasq-utils), so that the next server can have it."),
    cfg.StrOpt("dhcpbridge", default=os.path.join(sysconfig.get_path("scripts"), "nova-dhcpbridge"),
               sample_default="/usr/bin/nova-dhcpbridge",
               help="Program that dnsmasq calls with every lease: ours."),
    cfg.MultiStrOpt("dhcpbridge_flagfile", default=["/etc/nova/nova-dhcpbridge.conf"],
                    help="Configuration files named to that program. Ours needs none; one of an operator's own may."),
    cfg.StrOpt("dnsmasq_config_file", default="",
               help="A further configuration file for dnsmasq. Empty: none, not even the system's."),
    cfg.MultiStrOpt("dns_server", default=[],
                    help="Name servers that dnsmasq asks for guests, instead of the host's own."),
    cfg.BoolOpt("use_network_dns_servers", default=False,
                help="Let dnsmasq ask the name servers that the network's row names."),
]


def neutron_in_use(conf: cfg.ConfigOpts) -> bool:
    """Whose the networks of this cloud are."""
    if conf.use_neutron is not None:
        return bool(conf.use_neutron)
    return bool(conf.neutron.auth_type or conf.neutron.endpoint_override)
