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
    cfg.StrOpt("network_manager", default="nova.network.manager.VlanManager",
               help="How networks are built on the hosts; all daemons must agree. VlanManager: a VLAN, a bridge and a "
                    "range for each project, taken at its first server; it needs trunk ports on every switch, and "
                    "vlan_interface. FlatDHCPManager: one bridge a network, all projects on it, addresses by DHCP. "
                    "FlatManager: nothing is made; guests learn their address from their config drive."),
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
    cfg.StrOpt("injected_network_template",
               help="Template of the interfaces file for guests on such networks, on their config drive and in "
                    "their metadata (network_config). It is a text with the word $interfaces. One stanza for each "
                    "address replaces the word, in the form of Debian's ifupdown. Unset: a plain one. Read by "
                    "nova-compute and the metadata service."),
    cfg.StrOpt("vlan_interface",
               help="VlanManager: network interface that carries the VLANs, on every network and compute host; where "
                    "unset, the network's own bridge_interface."),
    cfg.BoolOpt("use_ipv6", default=False,
                help="Serve the IPv6 ranges of networks, too: router advertisements by radvd on every bridge, IPv6 "
                     "forwarding and its rules in ip6tables."),
    cfg.BoolOpt("share_dhcp_address", default=False,
                help="All hosts of a multi-host network have the same address as gateway and DHCP server, whatever "
                     "the networks say; ebtables keeps the hosts from hearing each other."),
    cfg.BoolOpt("teardown_unused_network_gateway", default=False,
                help="End the DHCP server of a multi-host network, and remove its bridge and VLAN device, when the "
                     "last of its guests has left the host."),
    cfg.BoolOpt("use_single_default_gateway", default=False,
                help="Name a router only to the first interface of guests with several."),
    cfg.StrOpt("linuxnet_interface_driver", default="nova.network.linux_net.LinuxBridgeInterfaceDriver",
               help="What the gateway's device is: LinuxBridgeInterfaceDriver (the network's bridge itself), "
                    "LinuxOVSInterfaceDriver (a port of Open vSwitch's integration bridge) or "
                    "NeutronLinuxBridgeInterfaceDriver (a tap on a bridge named brq...)."),
    cfg.StrOpt("linuxnet_ovs_integration_bridge", default="br-int",
               help="Open vSwitch's bridge that LinuxOVSInterfaceDriver plugs into."),
    cfg.IntOpt("ovs_vsctl_timeout", default=120, min=0,
               help="Seconds that ovs-vsctl waits for Open vSwitch; 0: for ever."),
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
    cfg.ListOpt("dmz_cidr", default=[],
                help="Ranges that guests reach with their own addresses, without SNAT, also within "
                     "guest_forbidden_ranges (on compute hosts, too)."),
    cfg.ListOpt("guest_forbidden_ranges", default=["auto"],
                help="Ranges, IPv4 and IPv6, where guests begin no connection: the networks of hosts, controllers, "
                     "brokers and databases. nova-network drops it where it would be forwarded, nova-compute on the "
                     "guest's own host, whatever network_manager says. `auto` means all networks in which the host "
                     "has addresses; name those behind a router beside it: auto, 10.9.0.0/16. Guests' own "
                     "networks, floating addresses, dmz_cidr and the metadata service stay open inside. `none` lets "
                     "guests reach everything."),
    cfg.MultiStrOpt("force_snat_range", default=[],
                    help="Ranges to which SNAT applies even on networks whose gateway is another machine."),
    cfg.MultiStrOpt("forward_bridge_interface", default=["all"],
                    help="Interfaces with which a bridge may exchange packets; `all` for any."),
    cfg.StrOpt("iptables_top_regex", default="",
               help="Regular expression of other programs' rules that stay above ours in the chains of iptables."),
    cfg.StrOpt("iptables_bottom_regex", default="",
               help="Regular expression of other programs' rules that stay below ours."),
    cfg.StrOpt("iptables_drop_action", default="DROP",
               help="Chain or target of packets that are dropped, for example a chain that logs first."),
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
    from keystoneauth1 import loading

    if conf.use_neutron is not None:
        return bool(conf.use_neutron)
    conf.register_opts(loading.get_auth_common_conf_options(), group="neutron")  # auth_type is not an option of ours
    return bool(conf.neutron.auth_type or conf.neutron.auth_section or conf.neutron.endpoint_override)
