"""``nova-manage network``, ``fixed`` and ``project``: nova-network's networks, their addresses, and what a project has
of them. All of it goes through the conductor."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

from nova import errors
from nova.conf.base import Options
from nova.manage.command import Command, ConductorOf, Run, argument
from nova.model.base import Scope
from nova.model.network.networks import Network, NetworkChange, NewNetwork
from nova.model.quota.quotas import QuotaUpdate
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


_NUMBERS = (
    ("num_networks", "how many networks to cut the range into; [DEFAULT]num_networks when left out"),
    ("network_size", "addresses a network"), ("vlan", "VLAN number of the first (VlanManager)"),
    ("vlan_start", "where to look for free VLAN numbers; [DEFAULT]vlan_start when left out"),
    ("priority", "order in which servers get several networks"), ("mtu", "bytes"))
_TEXTS = (
    ("bridge", "the bridge on hosts; [DEFAULT]flat_network_bridge when left out, br<VLAN> with VlanManager"),
    ("bridge_interface", "the interface that goes into the bridge, or carries the VLANs"),
    ("gateway", "the guests' gateway; the first usable address when left out"),
    ("gateway_v6", "their IPv6 gateway; the first address when left out"),
    ("dhcp_server", "its address; the gateway's when left out"), ("dns1", "first DNS server"),
    ("dns2", "second DNS server"), ("fixed_cidr", "only addresses in it go to servers"),
    ("allowed_start", "first address for servers"), ("allowed_end", "last address for servers"),
    ("uuid", "its uuid"), ("project_id", "for this project alone"))


def network_actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table, made of its own pieces."""
    create_arguments = (
        argument("--label", required=True, help="the name users see"),
        argument("--fixed_range_v4", "--cidr", metavar="CIDR", help="for example 10.0.0.0/24"),
        argument("--fixed_range_v6", metavar="CIDR", help="[DEFAULT]fixed_range_v6 when left out, with use_ipv6"),
        argument("--multi_host", choices=("T", "F"), help="T: each compute host serves its own guests; "
                                                          "[DEFAULT]multi_host when left out"),
        *(argument(f"--{name}", type=int, help=words) for name, words in _NUMBERS),
        argument("--vpn", type=int, dest="vpn_start", metavar="PORT", help="first public port of their VPNs"),
        *(argument(f"--{name}", help=words) for name, words in _TEXTS))
    which = (argument("--fixed_range", metavar="CIDR", help="IPv4 or IPv6 range of the network"),
             argument("--uuid"))

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "create": Command(lambda options, given: create(conductor_of(options), given, say, options),
                          "make networks and their pools of addresses", create_arguments),
        "list": Command(run(listed), "all networks"),
        "delete": Command(run(delete), "delete a network that no server and no project has", (
            argument("named", nargs="?", metavar="UUID", help="as --uuid"), *which)),
        "modify": Command(run(modify), "change whose a network is, and which host serves it", (
            *which, argument("--project", help="the project whose it is from now on"),
            argument("--host", help="the host that serves it from now on"),
            argument("--disassociate-project", action="store_true", help="no project has it any more"),
            argument("--disassociate-host", action="store_true", help="the next nova-network that starts takes it")))}


def fixed_actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Those of ``nova-manage fixed``, in the same way."""
    address = argument("--address", required=True)

    def setting(reserved: bool) -> Run:
        return lambda options, given: reserve(conductor_of(options), given.address, reserved, say)
    return {
        "list": Command(lambda options, given: addresses(conductor_of(options), given, say, table),
                        "every address of the pools, and who has it", (
                            argument("--host", help="only the addresses of this host"),)),
        "reserve": Command(setting(True), "set an address aside: no server gets it", (address,)),
        "unreserve": Command(setting(False), "let servers have it again", (address,))}


def project_actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Those of ``nova-manage project``, in the same way."""
    project = argument("--project", required=True, help="the project's id")

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "quota": Command(run(quota), "show a project's (or user's) limits and what it uses; set one of them", (
            project, argument("--user", help="one user in it"), argument("--key", help="the limit to set"),
            argument("--value", help="a number, or unlimited"),
            argument("--force", action="store_true", help="even below what is in use"))),
        "scrub": Command(run(scrub), "take a project's networks from it", (project,))}


# -- networks

def create(conductor: ConductorRPC, given: argparse.Namespace, say: Say, options: Options) -> int:
    """Cuts the range into networks and prints a line for each. What is left out comes from nova.conf. Conflict: the
    range is used; Invalid."""
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
    """Of a range that is larger than its networks, [DEFAULT]network_size is the reason, unless they were counted."""
    if not given.fixed_range_v4 or given.network_size or not made or not made[0].cidr:
        return
    whole = ipaddress.ip_network(given.fixed_range_v4, strict=False)
    size = ipaddress.ip_network(made[0].cidr).num_addresses
    if size * len(made) < whole.num_addresses // 2:
        say(f"Only {len(made)} x {size} addresses of {whole} are used, as [DEFAULT]network_size says; --network_size "
            f"makes larger networks.")


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """All networks, whosever they are."""
    table(("id", "IPv4", "IPv6", "start address", "DNS1", "DNS2", "VlanID", "project", "uuid"),
          [(one.id, one.cidr, one.cidr_v6, one.dhcp_start, one.dns1, one.dns2, one.vlan, one.project_id, one.uuid)
           for one in conductor.list_networks(Scope())])
    return 0


def delete(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Names the network by its uuid, or by its IPv4 range. network.NoSuchRange, network.Unclear; Conflict: an address
    of it is in use, or it is a project's."""
    network = _meant(conductor, given.named or given.uuid, given.fixed_range)
    conductor.delete_network(network.uuid)
    say(f"Network {network.uuid} is deleted.")
    return 0


def modify(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Gives a network to a project or a host, or takes it from them, whatever stands now. network.Unclear: not said
    what, or both; network.NoSuchRange; NotSupported by managers whose networks are everybody's."""
    for value, taken, name in ((given.project, given.disassociate_project, "project"),
                               (given.host, given.disassociate_host, "host")):
        if value and taken:
            raise errors.network.Unclear(reason=f"--{name} and --disassociate-{name} cannot both be.")
    fields = tuple(name for name, wanted in (("project_id", given.project or given.disassociate_project),
                                             ("host", given.host or given.disassociate_host)) if wanted)
    if not fields:
        raise errors.network.Unclear(reason="Say what to change: --project, --host, --disassociate-project or "
                                     "--disassociate-host.")
    network = _meant(conductor, given.uuid, given.fixed_range)
    after = conductor.change_network(NetworkChange(uuid=network.uuid, fields=fields, project_id=given.project,
                                                   host=given.host, forced=True))
    say(f"Network {after.uuid}: project {after.project_id or 'none'}, host {after.host or 'none'}.")
    return 0


def _meant(conductor: ConductorRPC, uuid: str | None, cidr: str | None) -> Network:
    """network.NoSuchRange, network.Unclear."""
    if bool(uuid) == bool(cidr):
        raise errors.network.Unclear(reason="Name the network by one of --fixed_range and --uuid.")
    for network in conductor.list_networks(Scope()):
        if (uuid and network.uuid == uuid) or (cidr and cidr in (network.cidr, network.cidr_v6)):
            found: Network = network
            return found
    raise errors.network.NoSuchRange(range=uuid or cidr)


# -- addresses

def addresses(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """All fixed addresses; with ``--host`` those of networks that this host serves."""
    found = conductor.list_fixed_addresses(given.host)
    if not found:
        say("No fixed addresses have been defined." if given.host is None else f"{given.host} serves none.")
        return 0
    table(("network", "IP address", "hostname", "host"),
          [(one.cidr, one.address, one.hostname, one.host) for one in found])
    return 0


def reserve(conductor: ConductorRPC, address: str, reserved: bool, say: Say) -> int:
    """NotFound: no network has that address; Invalid: it is none."""
    conductor.reserve_fixed_address(address, reserved)
    say(f"{address} is {'set aside' if reserved else 'for servers again'}.")
    return 0


# -- projects

def quota(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """With ``--key`` that limit is set before all are shown; -1 and unlimited are the same. network.Unclear: no such
    limit, or no such value. Invalid: it is below what is in use."""
    if given.key:
        if given.key not in conductor.get_quotas(given.project, given.user, False).limits:
            raise errors.network.Unclear(reason=f"{given.key} is no limit.")
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
    try:
        value = int(text or "")
    except ValueError:
        raise errors.network.Unclear(reason=f"--value {text} is neither a number nor unlimited.") from None
    if value < -1:
        raise errors.network.Unclear(reason=f"--value {text} is below -1, which is unlimited.")
    return value


def scrub(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Their servers keep their addresses; the networks are nobody's again."""
    mine = [one for one in conductor.list_networks(Scope(project_id=given.project)) if one.project_id == given.project]
    for network in mine:
        conductor.change_network(NetworkChange(uuid=network.uuid, fields=("project_id",), forced=True))
    say(f"Project {given.project} has {len(mine)} networks less: it has none now." if mine else
        f"Project {given.project} has no network.")
    return 0


__all__ = ["fixed_actions", "network_actions", "project_actions"]
