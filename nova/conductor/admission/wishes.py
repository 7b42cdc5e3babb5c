"""What a create asks for by name beside image and flavor: a host, fixed addresses, groups, how its disk is laid out.

All of it is looked up before anything is made, so that a wish that can not be fulfilled is a 400 that names the field
and not a server in ERROR.
"""

from __future__ import annotations

from nova import errors
from nova.db import hosts, services
from nova.db.engine import Connection
from nova.model.images import Image
from nova.model.servers import NewServer

AUTO, MANUAL = "AUTO", "MANUAL"  # whether the root file system is grown to its disk
DISABLED = "disabled"


class NoSuchHost(errors.Invalid):
    code, message = "server.no_such_host", "Compute host {host} could not be found."


class NoSuchNode(errors.Invalid):
    code, message = "server.no_such_node", "Compute node {node} could not be found{where}."


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
