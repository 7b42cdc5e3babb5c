"""What actions on one host ask for: refused at once, or begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova.conductor.admission.servers import usable_image
from nova.conductor.admission.wishes import NoSuchHost
from nova.conductor.engine import zones
from nova.conductor.engine.begin import SHELVED, begin, begin_on_host, builtins, locked, row_of
from nova.conductor.engine.deps import World
from nova.db import servers, services, states
from nova.db.engine import Connection
from nova.model.images import Image
from nova.model.server_orders import ChangePassword, RescueServer, UnshelveServer
from nova.model.states import VmState


class Actions:
    """Calls of ConductorRPC."""

    def __init__(self, world: World) -> None:
        self.world = world

    def rescue_server(self, order: RescueServer) -> None:
        """From the image that is asked for, or the server's own as it was when it was made."""
        image = usable_image(self.world, order.image_id) if order.image_id else row_of(self.world, order.uuid).image

        def write(tx: Connection) -> states.Entry:
            return begin_on_host(self.world, tx, "rescue", order.uuid,
                                 lambda row: {**_rescue(image), "metadata": _metadata(tx, row)})
        entry = self.world.cell.transact(write)
        self.world.runner.start([entry], secrets={"admin_password": order.admin_password})

    def change_password(self, order: ChangePassword) -> None:
        entry = self.world.cell.transact(lambda tx: begin_on_host(self.world, tx, "changePassword", order.uuid,
                                                                  lambda row: {}))
        self.world.runner.start([entry], secrets={"password": order.password})

    def unshelve_server(self, order: UnshelveServer) -> None:
        zones.check(self.world, order.availability_zone)
        entry = self.world.cell.transact(lambda tx: self._unshelve(tx, order))
        self.world.runner.start([entry])

    def _unshelve(self, tx: Connection, order: UnshelveServer) -> states.Entry:
        """A zone that is asked for pins the server, and none unpins it. Only what has left its host is placed."""
        row = locked(tx, order.uuid)
        if order.fields and row.vm_state in SHELVED and row.vm_state != VmState.SHELVED_OFFLOADED.value:
            raise states.NotInState(action="unshelve", server=order.uuid, attribute="vm_state", value=row.vm_state)
        if order.host is not None and order.host not in services.compute_hosts(tx):
            raise NoSuchHost(host=order.host)
        away = row.host is None
        entry = begin(self.world, tx, "unshelve", order.uuid, {
            "offloaded": away, "on_host": not away, "host": order.host, "metadata": _metadata(tx, row)})
        if "availability_zone" in order.fields:
            servers.update(tx, order.uuid, {"pinned_availability_zone": order.availability_zone})
        return entry


def _rescue(image: Image | None) -> Mapping[str, Any]:
    return {"rescue_image": builtins(image), "rescue_image_ref": image.id if image else None}


def _metadata(tx: Connection, row: Any) -> dict[str, str]:
    """For a config drive that is made anew."""
    return servers.children(tx, [row.uuid])[0].get(row.uuid, {})
