"""``[DEFAULT]`` options of nova-network, and of its networks (which the conductor creates)."""

from __future__ import annotations

import os
import sysconfig

from oslo_config import cfg

from nova.conf._options import Options, oslo_conf

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("use_neutron",
                help="Whether networks are Neutron's (true) or nova-network's (false). Unset: Neutron's if [neutron] "
                     "has credentials or a URL, otherwise nova-network's."),
    # New networks. Read by nova-conductor, which stores them.
    cfg.StrOpt("network_manager", default="nova.network.manager.VlanManager",
               help="Network topology on the hosts; all daemons must agree. VlanManager: a VLAN, a bridge and a "
                    "range for each project, allocated for its first server; it needs trunk ports on every switch, "
                    "and vlan_interface. FlatDHCPManager: one bridge for each network, shared by all projects, "
                    "addresses by DHCP. FlatManager: no devices are created; guests read their address from their "
                    "config drive."),
    cfg.BoolOpt("multi_host", default=False,
                help="Serve new networks on every compute host for its own guests, instead of on one network host "
                     "for all."),
    cfg.IntOpt("num_networks", default=1, min=1, help="Number of networks that `nova-manage network create` creates."),
    cfg.IntOpt("network_size", default=256, min=4,
               help="Addresses in a network, if the request has no size and its range is larger."),
    cfg.StrOpt("flat_network_bridge", help="Bridge of new networks without their own, such as br100."),
    cfg.StrOpt("flat_interface",
               help="Network interface added to the bridge of networks without their own. It connects guests on "
                    "different hosts; its addresses move to the bridge. Unset: the bridge has only guests."),
    cfg.StrOpt("flat_network_dns", default="8.8.4.4", help="First name server of new networks without their own."),
    cfg.BoolOpt("flat_injected", default=False,
                help="Mark new networks so that guests get their address written into the image or config drive."),
    cfg.StrOpt("injected_network_template",
               help="Template of the interfaces file for guests on such networks, in their config drive and metadata "
                    "(network_config). It contains the word $interfaces, which is replaced by one stanza for each "
                    "address, in the form of Debian's ifupdown. Unset: a plain template. Read by nova-compute and "
                    "the metadata service."),
    cfg.StrOpt("vlan_interface",
               help="VlanManager: network interface that carries the VLANs, on every network and compute host. "
                    "Unset: the network's own bridge_interface."),
    cfg.BoolOpt("use_ipv6", default=False,
                help="Serve the IPv6 ranges of networks, too: router advertisements by radvd on every bridge, IPv6 "
                     "forwarding and its rules in ip6tables."),
    cfg.BoolOpt("share_dhcp_address", default=False,
                help="Use the same gateway and DHCP server address on all hosts of a multi-host network, overriding "
                     "the networks' own setting; ebtables isolates the hosts' addresses from each other."),
    cfg.BoolOpt("teardown_unused_network_gateway", default=False,
                help="Stop the DHCP server of a multi-host network, and remove its bridge and VLAN device, when its "
                     "last guest has left the host."),
    cfg.BoolOpt("use_single_default_gateway", default=False,
                help="Announce a router only to the first interface of guests with several."),
    cfg.StrOpt("linuxnet_interface_driver", default="nova.network.linux_net.LinuxBridgeInterfaceDriver",
               help="Gateway device: LinuxBridgeInterfaceDriver (the network's bridge itself), "
                    "LinuxOVSInterfaceDriver (a port of Open vSwitch's integration bridge) or "
                    "NeutronLinuxBridgeInterfaceDriver (a tap on a bridge named brq...)."),
    cfg.StrOpt("linuxnet_ovs_integration_bridge", default="br-int",
               help="Open vSwitch bridge of LinuxOVSInterfaceDriver."),
    cfg.IntOpt("ovs_vsctl_timeout", default=120, min=0,
               help="Seconds that ovs-vsctl waits for Open vSwitch; 0: for ever."),
    cfg.IntOpt("network_device_mtu", min=68, max=65535, help="MTU of new networks without their own."),
    cfg.BoolOpt("fake_network", default=False,
                help="Serve networks only in the database: no bridge, no dnsmasq, no firewall rule on this host. For "
                     "clouds on the fake driver."),
    cfg.StrOpt("networks_path", default="$state_path/networks",
               help="Directory of nova-network's files for dnsmasq, its process ids, and known leases."),
    cfg.StrOpt("public_interface", default="eth0",
               help="Network interface to the outside: guests' traffic that leaves over it gets routing_source_ip."),
    cfg.StrOpt("routing_source_ip", default="$my_ip",
               help="Source address of guests' traffic to the outside (SNAT)."),
    cfg.StrOpt("metadata_host", default="$my_ip",
               help="Address of nova-api-metadata, to which guests' requests to 169.254.169.254 are redirected "
                    "(DNAT). It must see the guests' own addresses, so it needs a route back to their networks "
                    "through this host."),
    cfg.PortOpt("metadata_port", default=8775, help="Port of nova-api-metadata."),
    cfg.ListOpt("dmz_cidr", default=[],
                help="Ranges that guests reach with their own addresses, without SNAT, even within "
                     "guest_forbidden_ranges (on compute hosts, too)."),
    cfg.ListOpt("guest_forbidden_ranges", default=["auto"],
                help="Ranges, IPv4 and IPv6, to which guests may not open connections: the networks of hosts, "
                     "controllers, brokers and databases. nova-network drops forwarded traffic, nova-compute traffic "
                     "on the guest's own host, with any network_manager. `auto` means all networks in which the host "
                     "has addresses; add those behind a router: auto, 10.9.0.0/16. Guests' own networks, floating "
                     "IPs, dmz_cidr and the metadata service stay open inside. `none` allows guests to reach "
                     "everything."),
    cfg.MultiStrOpt("force_snat_range", default=[],
                    help="Ranges to which SNAT applies even on networks whose gateway is another machine."),
    cfg.MultiStrOpt("forward_bridge_interface", default=["all"],
                    help="Interfaces with which a bridge may exchange packets; `all` for any."),
    cfg.StrOpt("iptables_top_regex", default="",
               help="Regular expression of other programs' rules that stay above nova's in the chains of iptables."),
    cfg.StrOpt("iptables_bottom_regex", default="",
               help="Regular expression of other programs' rules that stay below nova's."),
    cfg.StrOpt("iptables_drop_action", default="DROP",
               help="Chain or target for dropped packets, for example a chain that logs first."),
    cfg.BoolOpt("send_arp_for_ha", default=False,
                help="Announce a gateway address with gratuitous ARP when it is added to a device (needs arping)."),
    cfg.IntOpt("send_arp_for_ha_count", default=3, min=1, help="Number of gratuitous ARP announcements."),
    # DHCP.
    cfg.IntOpt("dhcp_lease_time", default=86400, min=120, help="Seconds for which a guest's address is leased."),
    cfg.BoolOpt("force_dhcp_release", default=True,
                help="Release the lease of a deleted server's address immediately (needs dhcp_release of "
                     "dnsmasq-utils), so that the next server can use it."),
    cfg.StrOpt("dhcpbridge", default=os.path.join(sysconfig.get_path("scripts"), "nova-dhcpbridge"),
               sample_default="/usr/bin/nova-dhcpbridge",
               help="Program that dnsmasq calls for every lease: by default nova's own."),
    cfg.MultiStrOpt("dhcpbridge_flagfile", default=["/etc/nova/nova-dhcpbridge.conf"],
                    help="Configuration files passed to that program. nova's own needs none; an operator's may."),
    cfg.StrOpt("dnsmasq_config_file", default="",
               help="Additional configuration file for dnsmasq. Empty: none, not even the system's."),
    cfg.MultiStrOpt("dns_server", default=[],
                    help="Name servers that dnsmasq uses for guests, instead of the host's own."),
    cfg.BoolOpt("use_network_dns_servers", default=False,
                help="Let dnsmasq use the name servers of the network's row."),
]


def neutron_in_use(options: Options) -> bool:
    """Return whether Neutron provides this cloud's networks."""
    from keystoneauth1 import loading

    if options.use_neutron is not None:
        return options.use_neutron
    source = oslo_conf(options)
    source.register_opts(loading.get_auth_common_conf_options(), group="neutron")  # nova declares no auth_type
    return bool(source.neutron.auth_type or source.neutron.auth_section or options.neutron.endpoint_override)
