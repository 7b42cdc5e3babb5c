"""Rescue and unrescue: boot another system with the server's disks attached, and return to the server's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nova import errors
from nova.conductor.actions.checks import check_disk_of, usable_image
from nova.conductor.actions.endings import powered, remembering
from nova.conductor.actions.volume.rebuild_root import check_in_use
from nova.conductor.engine.begin import metadata_of, row_of, start_operation_on_host
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op
from nova.conductor.engine.workflow import Workflow
from nova.conductor.steps.guests import GuestStep, build_order, fence
from nova.conductor.steps.volumes import connected
from nova.db.host import hosts
from nova.db.server import states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.block_device.block_devices import BLOCK_DEVICES
from nova.model.guest.orders import RescueOrder
from nova.model.image.images import Image
from nova.model.placement.traits import RESCUE_BFV
from nova.model.server.server_orders import RescueServer
from nova.model.volumes import root_of
from nova.rpc.contracts.compute import ComputeRPC

OWN_PLACE = ("hw_rescue_device", "hw_rescue_bus")  # properties of an image whose disk comes after the server's own

# Reasons to refuse a rescue:
TOO_OLD = "Cannot rescue a volume-backed instance"
NO_IMAGE = "it boots from a volume that was not created from an image: specify a rescue image"
NO_PLACE = f"it boots from a volume, and the rescue image does not have both {' and '.join(OWN_PLACE)}"
NO_HOST = f"it boots from a volume, and its host cannot rescue such servers (the trait {RESCUE_BFV} is missing)"
NO_DATA = "image {} describes a server's volumes and has no data of its own"


class Rescues:
    """The rescue call of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def rescue_server(self, order: RescueServer) -> None:
        """Start to rescue a server from the requested image, or else from its own image as it was at its creation.

        A server that boots from a volume uses the image of that volume instead. Raises volume.NoRescue,
        volume.NotInUse; server.BadImage, server.BadImageProperty.
        """
        row = row_of(self.deps, order.uuid)
        image = usable_image(self.deps, order.image_id) if order.image_id else row.image
        if row.volumes:
            image = self._beside_volumes(order, row, image)
        if image is None:
            raise errors.server.BadImage(image_id=order.image_id, reason="the server was created without an image")
        if BLOCK_DEVICES in image.properties:
            raise errors.volume.NoRescue(server=order.uuid, reason=NO_DATA.format(image.id))
        check_disk_of(image)

        def write(tx: Connection) -> states.Entry:
            return start_operation_on_host(self.deps, tx, "rescue", order.uuid,
                                           lambda row: Rescue(rescue_image=image, rescue_image_ref=image.id,
                                                    metadata=metadata_of(tx, row)))
        entry = self.deps.transact_together(order.uuid, write)
        self.deps.runner.start([entry], secrets={"admin_password": order.admin_password})

    def _beside_volumes(self, order: RescueServer, row: ServerRow, image: Image | None) -> Image | None:
        """Check that all volumes are in use. A root volume keeps its device, so the rescue disk needs a device of its
        own."""
        root = root_of(row.volumes or ())
        if root is not None and not order.from_volume:
            raise errors.volume.NoRescue(server=row.uuid, reason=TOO_OLD)
        found = {one.id: self.deps.volumes.get(one.volume_id, as_user=True) for one in row.volumes or ()}
        for volume in found.values():
            check_in_use(volume)
        if root is None:
            return image
        if not order.image_id:
            made_of = found[root.id].image_metadata.get("image_id")
            if made_of is None:
                raise errors.volume.NoRescue(server=row.uuid, reason=NO_IMAGE)
            image = usable_image(self.deps, made_of)
        if image is None or not all(image.properties.get(name) for name in OWN_PLACE):
            raise errors.volume.NoRescue(server=row.uuid, reason=NO_PLACE)
        if not self._host_can(row):
            raise errors.volume.NoRescue(server=row.uuid, reason=NO_HOST)
        return image

    def _host_can(self, row: ServerRow) -> bool:
        """True if the server's host can rescue servers that boot from volumes. A server without a host is refused
        later."""
        if not row.host:
            return True
        with self.deps.cell.reading() as tx:
            nodes = hosts.node_rows(tx, hosts.NodesWanted(host=row.host))
        return any(one.name == row.node and RESCUE_BFV in one.facts.traits for one in nodes)


class Rescue(Arguments):
    """Arguments of a rescue: the image as it was at the request."""

    rescue_image: Image
    rescue_image_ref: str


class UnrescueGuests(GuestStep):
    call, event, plugs = ComputeRPC.unrescue_guests, "compute_unrescue_instance", True


class RescueGuests(GuestStep):
    """Boot the guests from the image of the request. A conductor that takes over from a dead one has no rescue
    password: then only the image's own credentials work."""

    call, event, plugs = ComputeRPC.rescue_guests, "compute_rescue_instance", True

    def order(self, deps: Deps, op: Op) -> RescueOrder:
        build = connected(deps, op, build_order(deps, op.server, op, fence(op)))
        return RescueOrder(
            server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build,
            image=op.asked(Rescue).rescue_image,
            admin_password=op.secrets.get("admin_password"), timeout_s=deps.settings.shutdown_timeout)


def rescued(ops: Sequence[Op]) -> Mapping[str, object]:
    """Record the rescue image in the servers' memos. (One server: no request rescues several.)"""
    return {**powered(ops), **remembering(ops, rescue_image_id=ops[0].asked(Rescue).rescue_image_ref)}


def unrescued(ops: Sequence[Op]) -> Mapping[str, object]:
    """Clear the rescue from the servers' memos."""
    return {**powered(ops), **remembering(ops, rescue_image_id=None)}


RESCUE_SERVER = Workflow("rescue", RescueGuests(), asks=Rescue, ending=rescued)
UNRESCUE_SERVER = Workflow("unrescue", UnrescueGuests(), ending=unrescued)
