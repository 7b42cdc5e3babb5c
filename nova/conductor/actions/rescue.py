"""Rescue and unrescue: another system boots beside the server's disks, and goes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nova import errors
from nova.conductor.actions.checks import usable_image
from nova.conductor.actions.endings import powered, remembering
from nova.conductor.engine.begin import begin_on_host, metadata_of, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op
from nova.conductor.engine.workflow import Workflow
from nova.conductor.steps.guests import GuestStep, build_order, fence
from nova.conductor.steps.volumes import connected
from nova.db import states
from nova.db.engine import Connection
from nova.model.images import Image
from nova.model.orders import RescueOrder
from nova.model.server_orders import RescueServer
from nova.rpc.contracts.compute import ComputeRPC


class Rescues:
    """Calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def rescue_server(self, order: RescueServer) -> None:
        """From the image that is asked for, or the server's own as it was when it was made."""
        image = usable_image(self.deps, order.image_id) if order.image_id else row_of(self.deps, order.uuid).image
        if image is None:
            raise errors.server.BadImage(image_id=order.image_id, reason="the server was made from none")

        def write(tx: Connection) -> states.Entry:
            return begin_on_host(self.deps, tx, "rescue", order.uuid,
                                 lambda row: Rescue(rescue_image=image, rescue_image_ref=image.id,
                                                    metadata=metadata_of(tx, row)))
        entry = self.deps.cell.transact(write)
        self.deps.runner.start([entry], secrets={"admin_password": order.admin_password})


class Rescue(Arguments):
    """What a rescue is begun with: the image as it was found then."""

    rescue_image: Image
    rescue_image_ref: str




class UnrescueGuests(GuestStep):
    call, event, plugs = ComputeRPC.unrescue_guests, "compute_unrescue_instance", True


class RescueGuests(GuestStep):
    """From the image that its admission found. The rescue system's password is lost with the runner that has it: then
    the image's own way in is all there is."""

    call, event, plugs = ComputeRPC.rescue_guests, "compute_rescue_instance", True

    def order(self, deps: Deps, op: Op) -> RescueOrder:
        build = connected(deps, op, build_order(deps, op.server, op, fence(op)))
        return RescueOrder(
            server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build,
            image=op.asked(Rescue).rescue_image,
            admin_password=op.secrets.get("admin_password"), timeout_s=deps.settings.shutdown_timeout)


def rescued(ops: Sequence[Op]) -> Mapping[str, object]:
    """The server remembers which image was asked for. (One server: no request rescues several.)"""
    return {**powered(ops), **remembering(ops, rescue_image_id=ops[0].asked(Rescue).rescue_image_ref)}


def unrescued(ops: Sequence[Op]) -> Mapping[str, object]:
    """The server remembers no rescue."""
    return {**powered(ops), **remembering(ops, rescue_image_id=None)}


RESCUE_SERVER = Workflow("rescue", RescueGuests(), asks=Rescue, ending=rescued)
UNRESCUE_SERVER = Workflow("unrescue", UnrescueGuests(), ending=unrescued)
