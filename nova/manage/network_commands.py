"""``nova-manage network``, ``fixed`` and ``project``: nova-network's networks, fixed addresses, and projects' networks
and quotas, through the conductor."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Callable, Sequence

from nova import errors, failures
from nova.conf._options import Options
from nova.manage.command import Command, ConductorOf, Run, Table, argument
from nova.model.base import Scope
from nova.model.network.networks import Network, NetworkChange, NewNetwork
from nova.model.quota.quotas import QuotaUpdate
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]


_NUMBERS = (
    ("num_networks", "number of networks to divide the range into (default: [DEFAULT]num_networks)"),
    ("network_size", "addresses in each network"), ("vlan", "VLAN number of the first network (VlanManager)"),
    ("vlan_start", "first VLAN number of the search for free ones (default: [DEFAULT]vlan_start)"),
    ("priority", "order in which servers get several networks"), ("mtu", "MTU in bytes"))
_TEXTS = (
    ("bridge", "the bridge on hosts (default: [DEFAULT]flat_network_bridge, or br<VLAN> with VlanManager)"),
    ("bridge_interface", "the interface to add to the bridge, or that carries the VLANs"),
    ("gateway", "the guests' gateway (default: the first usable address)"),
    ("gateway_v6", "the guests' IPv6 gateway (default: the first address)"),
    ("dhcp_server", "address of the DHCP server (default: the gateway)"), ("dns1", "first DNS server"),
    ("dns2", "second DNS server"), ("fixed_cidr", "servers get only addresses in this range"),
    ("allowed_start", "first address for servers"), ("allowed_end", "last address for servers"),
    ("uuid", "UUID of the network"), ("project_id", "the only project that uses the network"))


def network_actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    create_arguments = (
        argument("--label", required=True, help="the name users see"),
        argument("--fixed_range_v4", "--cidr", metavar="CIDR", help="IPv4 range, for example 10.0.0.0/24"),
        argument("--fixed_range_v6", metavar="CIDR", help="IPv6 range (default with use_ipv6: "
                                                          "[DEFAULT]fixed_range_v6)"),
        argument("--multi_host", choices=("T", "F"), help="T: each compute host serves its own guests (default: "
                                                          "[DEFAULT]multi_host)"),
        *(argument(f"--{name}", type=int, help=words) for name, words in _NUMBERS),
        argument("--vpn", type=int, dest="vpn_start", metavar="PORT", help="first public port of the networks' VPNs"),
        *(argument(f"--{name}", help=words) for name, words in _TEXTS))
    which = (argument("--fixed_range", metavar="CIDR", help="IPv4 or IPv6 range of the network"),
             argument("--uuid"))

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "create": Command(lambda options, given: create(conductor_of(options), given, say, options),
                          "create networks and their pools of addresses", create_arguments),
        "list": Command(run(listed), "list all networks"),
        "delete": Command(run(delete), "delete a network without servers and without a project", (
            argument("named", nargs="?", metavar="UUID", help="same as --uuid"), *which)),
        "modify": Command(run(modify), "change the project or the host of a network", (
            *which, argument("--project", help="the new project"),
            argument("--host", help="the new host"),
            argument("--disassociate-project", action="store_true", help="remove the network from its project"),
            argument("--disassociate-host", action="store_true", help="remove the network from its host: the next "
                                                                      "nova-network that starts takes it")))}


def fixed_actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of ``nova-manage fixed``."""
    address = argument("--address", required=True)

    def setting(reserved: bool) -> Run:
        return lambda options, given: reserve(conductor_of(options), given.address, reserved, say)
    return {
        "list": Command(lambda options, given: addresses(conductor_of(options), given, say, table),
                        "list the addresses of the pools, and the servers that have them", (
                            argument("--host", help="only the addresses of this host"),)),
        "reserve": Command(setting(True), "reserve an address: no server gets it", (address,)),
        "unreserve": Command(setting(False), "make a reserved address available to servers again", (address,))}


def project_actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of ``nova-manage project``."""
    project = argument("--project", required=True, help="the project's id")

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "quota": Command(run(quota), "show a project's (or user's) limits and usage; set one of the limits", (
            project, argument("--user", help="a user in the project"), argument("--key", help="the limit to set"),
            argument("--value", help="a number, or unlimited"),
            argument("--force", action="store_true", help="allow a limit below the usage"))),
        "scrub": Command(run(scrub), "remove a project's networks from it", (project,))}


# -- networks

def create(conductor: ConductorRPC, given: argparse.Namespace, say: Say, options: Options) -> int:
    """Divide the range into networks and print a line for each. Omitted values come from nova.conf. Raises Conflict if
    the range is in use; Invalid."""
    fields = {name: getattr(given, name) for name in NewNetwork.__struct_fields__
              if getattr(given, name, None) is not None}
    fields |= {"cidr": given.fixed_range_v4, "cidr_v6": given.fixed_range_v6,
               "num_networks": given.num_networks or options.num_networks}
    if not given.fixed_range_v6 and options.use_ipv6:
        fields["cidr_v6"] = options.fixed_range_v6
    fields |= {"multi_host": given.multi_host == "T", "single_host": given.multi_host == "F"}
    made = conductor.create_network(NewNetwork(**fields))
    for network in made:
        vlan = f"  VLAN {network.vlan}" if network.vlan is not None else ""
        served = "every compute host" if network.multi_host else network.host or "none yet"
        say(f"{network.uuid}  {network.label}  {network.cidr or network.cidr_v6}  bridge {network.bridge}{vlan}  "
            f"host {served}")
    _say_what_was_cut(given, made, say)
    return 0


def _say_what_was_cut(given: argparse.Namespace, made: Sequence[Network], say: Say) -> None:
    """Print a note if [DEFAULT]network_size makes the networks much smaller than the range."""
    if not given.fixed_range_v4 or given.network_size or not made or not made[0].cidr:
        return
    whole = ipaddress.ip_network(given.fixed_range_v4, strict=False)
    size = ipaddress.ip_network(made[0].cidr).num_addresses
    if size * len(made) < whole.num_addresses // 2:
        say(f"Only {len(made)} x {size} addresses of {whole} are used, because of [DEFAULT]network_size; use "
            f"--network_size for larger networks.")


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """List the networks of all projects."""
    table(("id", "IPv4", "IPv6", "start address", "DNS1", "DNS2", "VlanID", "project", "uuid"),
          [(one.id, one.cidr, one.cidr_v6, one.dhcp_start, one.dns1, one.dns2, one.vlan, one.project_id, one.uuid)
           for one in conductor.list_networks(Scope())])
    return 0


def delete(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Delete the network with this UUID or range. Raises network.NoSuchRange, network.Unclear; Conflict if one of its
    addresses is in use, or it belongs to a project."""
    network = _meant(conductor, given.named or given.uuid, given.fixed_range)
    conductor.delete_network(network.uuid)
    say(f"Network {network.uuid} is deleted.")
    return 0


def modify(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Set or remove the project or host of a network, regardless of the present one. Raises network.Unclear for no or
    contradicting options; network.NoSuchRange; NotSupported if the manager's networks are shared by all projects."""
    for value, taken, name in ((given.project, given.disassociate_project, "project"),
                               (given.host, given.disassociate_host, "host")):
        if value and taken:
            raise errors.network.Unclear(reason=f"--{name} and --disassociate-{name} cannot be combined.")
    fields = tuple(name for name, wanted in (("project_id", given.project or given.disassociate_project),
                                             ("host", given.host or given.disassociate_host)) if wanted)
    if not fields:
        raise errors.network.Unclear(reason="Specify a change: --project, --host, --disassociate-project or "
                                     "--disassociate-host.")
    network = _meant(conductor, given.uuid, given.fixed_range)
    after = conductor.change_network(NetworkChange(uuid=network.uuid, fields=fields, project_id=given.project,
                                                   host=given.host, forced=True))
    say(f"Network {after.uuid}: project {after.project_id or 'none'}, host {after.host or 'none'}.")
    return 0


def _meant(conductor: ConductorRPC, uuid: str | None, cidr: str | None) -> Network:
    """Return the network with this UUID or range. Raises network.NoSuchRange, network.Unclear."""
    if bool(uuid) == bool(cidr):
        raise errors.network.Unclear(reason="Specify the network by either --fixed_range or --uuid.")
    for network in conductor.list_networks(Scope()):
        if (uuid and network.uuid == uuid) or (cidr and cidr in (network.cidr, network.cidr_v6)):
            found: Network = network
            return found
    raise errors.network.NoSuchRange(range=uuid or cidr)


# -- addresses

def addresses(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """List all fixed addresses; with ``--host`` only those of networks that this host serves."""
    found = conductor.list_fixed_addresses(given.host)
    if not found:
        say("No fixed addresses have been defined." if given.host is None else f"{given.host} serves none.")
        return 0
    table(("network", "IP address", "hostname", "host"),
          [(one.cidr, one.address, one.hostname, one.host) for one in found])
    return 0


def reserve(conductor: ConductorRPC, address: str, reserved: bool, say: Say) -> int:
    """Reserve an address, or make it available again. Raises NotFound if no network has it; Invalid if it is not an IP
    address."""
    conductor.reserve_fixed_address(address, reserved)
    say(f"{address} is {'reserved' if reserved else 'available to servers again'}.")
    return 0


# -- projects

def quota(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Show the limits, after setting the one of ``--key``, if given; -1 and unlimited are the same. Raises
    network.Unclear for an unknown limit or an invalid value; Invalid if it is below the usage."""
    if given.key:
        if given.key not in conductor.get_quotas(given.project, given.user, False).limits:
            raise errors.network.Unclear(reason=f"{given.key} is not the name of a limit.")
        conductor.update_quotas(QuotaUpdate(project_id=given.project, user_id=given.user, force=given.force,
                                            limits={given.key: _limit(given.value)}))
    found = conductor.get_quotas(given.project, given.user, True)
    table(("Quota", "Limit", "In Use"), [
        (name, "unlimited" if limit < 0 else limit, found.in_use.get(name, 0))
        for name, limit in sorted(found.limits.items())])
    return 0


def _limit(text: str | None) -> int:
    if text is not None and text.lower() == "unlimited":
        return -1
    with failures.replaced(ValueError,
            lambda _: errors.network.Unclear(reason=f"--value {text} is neither a number nor unlimited.")):
        value = int(text or "")
    if value < -1:
        raise errors.network.Unclear(reason=f"--value {text} is below -1, which means unlimited.")
    return value


def scrub(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Remove a project's networks from it. Its servers keep their addresses; the networks then have no project."""
    mine = [one for one in conductor.list_networks(Scope(project_id=given.project)) if one.project_id == given.project]
    for network in mine:
        conductor.change_network(NetworkChange(uuid=network.uuid, fields=("project_id",), forced=True))
    say(f"Project {given.project} lost {len(mine)} networks: it has none now." if mine else
        f"Project {given.project} has no network.")
    return 0


__all__ = ["fixed_actions", "network_actions", "project_actions"]
