"""What a create asks for by name beside image and flavor: a host, fixed addresses, groups, how its disk is laid out.

All of it is looked up before anything is made, so that a wish that can not be fulfilled is a 400 that names the field
and not a server in ERROR.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from nova import errors
from nova.db import hosts, networks, services
from nova.db.engine import Connection
from nova.model.images import Image
from nova.model.networks import Network, RequestedNetwork
from nova.model.servers import NewServer

DEFAULT_GROUP = "default"
AUTO, MANUAL = "AUTO", "MANUAL"  # whether the root file system is grown to its disk
DISABLED = "disabled"


class NoSuchHost(errors.Invalid):
    code, message = "server.no_such_host", "Compute host {host} could not be found."


class NoSuchNode(errors.Invalid):
    code, message = "server.no_such_node", "Compute node {node} could not be found{where}."


class BadAddress(errors.Invalid):
    code = "server.bad_fixed_ip"
    message = "Invalid fixed_ip: {address} is not an address of network {network} ({cidr})."


class AddressInUse(errors.Invalid):
    code = "server.fixed_ip_in_use"
    message = "Invalid fixed_ip: {address} of network {network} is in use already."


class NoSuchGroup(errors.Invalid):
    code = "server.no_such_security_group"
    message = "Security group {name} could not be found: but for the one named default, this cloud has none."


class NotResizable(errors.Invalid):
    code = "server.disk_config_disabled"
    message = ("Invalid OS-DCF:diskConfig: it must be MANUAL, for image {image} says (auto_disk_config) that its file "
               "system can not be grown.")


def check_place(tx: Connection, order: NewServer) -> None:
    """The host and the node that are asked for are there: one statement (of the cell) each, none without a wish."""
    if order.host and order.host not in services.compute_hosts(tx):
        raise NoSuchHost(host=order.host)
    if order.node:
        rows = hosts.node_rows(tx, hosts.NodesWanted(host=order.host, name_part=order.node))
        if not any(row.name == order.node for row in rows):
            raise NoSuchNode(node=order.node, where=f" on host {order.host}" if order.host else "")


def check_addresses(tx: Connection, wanted: Sequence[RequestedNetwork], known: Mapping[str, Network]) -> None:
    """Fixed addresses are of their networks, and free (the cell's; one statement, none without a wish)."""
    named = {(str(one.network_id), one.fixed_ip) for one in wanted if one.fixed_ip}
    for network, address in named:
        ranges = [known[network].cidr, known[network].cidr_v6]
        inside = (ipaddress.ip_network(cidr, strict=False) for cidr in ranges if cidr)
        if not any(ipaddress.ip_address(address) in one for one in inside):
            raise BadAddress(address=address, network=network, cidr=", ".join(filter(None, ranges)))
    taken = networks.not_free(tx, [address for _, address in named]) if named else set()
    for network, address in sorted(named & taken):
        raise AddressInUse(address=address, network=network)


def check_groups(order: NewServer) -> None:
    for name in order.security_groups:
        if name != DEFAULT_GROUP:
            raise NoSuchGroup(name=name)


def disk_config(order: NewServer, image: Image | None) -> str:
    """AUTO or MANUAL: as asked for; else as the image says; else MANUAL. NotResizable where the image forbids it."""
    if not order.disk_config_asked:
        return AUTO if _says_of_disk(image) in ("true", "1", "yes", "on") else MANUAL
    check_disk_config(order.disk_config, image)
    return order.disk_config


def check_disk_config(wanted: str | None, image: Image | None) -> None:
    """NotResizable: AUTO, of an image that forbids it."""
    if wanted == AUTO and image is not None and _says_of_disk(image) == DISABLED:
        raise NotResizable(image=image.id)


def _says_of_disk(image: Image | None) -> str:
    properties = image.properties if image else {}
    return (properties.get("auto_disk_config") or properties.get("hw_auto_disk_config") or "").lower()
