"""Import of found guests: inserts a row for a guest without a record, or corrects the host of a server that has one."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import nodes, server_metadata, servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.statements import insert_all
from nova.db.sql.types import utc_now
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import RequestedNetwork
from nova.model.server.states import PowerState, VmState


class GuestLocation(NamedTuple):
    """The location and state of a guest."""

    host: str
    host_id: str
    node: str
    zone: str
    vm_state: VmState
    power_state: PowerState


def node_of(tx: Connection, host: str, name: str) -> tuple[str, str] | None:
    """Return (host id, node name) of the host's node of that name, or of its only node. None if it has reported no such
    node."""
    rows = tx.execute(sa.select(nodes.c.host_id, nodes.c.name).where(nodes.c.host == host)).all()
    found = [row for row in rows if row.name == name] or (rows if len(rows) == 1 else [])
    return (found[0].host_id, found[0].name) if found else None


def number_taken(tx: Connection, number: int) -> bool:
    """Return whether a server has this id: guests are named after it."""
    return tx.execute(sa.select(servers.c.id).where(servers.c.id == number)).first() is not None


def insert(tx: Connection, order: BuildOrder, place: GuestLocation, epoch: int) -> None:
    """Insert a server as described by the order. Raises IntegrityError if its UUID or id was taken meanwhile."""
    image = order.image
    insert_all(tx, servers, [{
        "id": order.id, "uuid": order.server_uuid, "project_id": order.project_id, "user_id": order.user_id,
        "name": order.name, "hostname": order.hostname, "epoch": epoch, "vm_state": place.vm_state.value,
        "power_state": place.power_state.value, "host": place.host, "host_id": place.host_id, "node": place.node,
        "availability_zone": place.zone, "flavor": order.flavor, "flavorid": order.flavor.flavorid, "image": image,
        "image_id": image.id if image else "", "kernel_id": order.kernel.id if order.kernel else "",
        "ramdisk_id": order.ramdisk.id if order.ramdisk else "", "disks": order.disks or None,
        "requested_networks": tuple(RequestedNetwork(network_id=one.network_id, port_id=one.id if one.given else None,
                                                     tag=one.tag) for one in order.interfaces),
        "interfaces": order.interfaces, "security_groups": order.security_groups, "root_device_name": "/dev/vda",
        "config_drive": order.config_drive, "key_name": order.key_name, "public_key": order.public_key,
        "key_type": order.key_type, "reservation_id": order.reservation_id, "launch_index": order.launch_index,
        "created_at": order.created_at or utc_now(), "launched_at": order.created_at or utc_now()}])
    insert_all(tx, server_metadata, [{"server_uuid": order.server_uuid, "key": key, "value": value}
                                     for key, value in order.metadata.items()])


def move(tx: Connection, row: ServerRow, place: GuestLocation, epoch: int) -> bool:
    """Set the server's host and states, and clear the memo of its past actions. False if an operation began, or the row
    changed, since it was read."""
    same = sa.and_(servers.c.uuid == row.uuid, servers.c.epoch == row.epoch, servers.c.deleted == 0,
                   servers.c.task_state.is_(None))
    return tx.execute(sa.update(servers).where(same).values(
        epoch=epoch, vm_state=place.vm_state.value, power_state=place.power_state.value, host=place.host,
        host_id=place.host_id, node=place.node, availability_zone=place.zone, memo=None,
        updated_at=utc_now())).rowcount > 0
