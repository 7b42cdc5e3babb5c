"""Rescue: boot a server temporarily from another image, with its own disk attached."""

from __future__ import annotations

from nova.api import versions
from nova.api.handlers.server_create import passwords
from nova.api.handlers.server_targets import actor, order
from nova.api.request import Request
from nova.api.view import answers
from nova.model.server.server_orders import RescueServer


@answers({"adminPass?": "string"})
def rescue(req: Request, server_id: str) -> dict[str, object]:
    """Rescue a server; the response has the rescue system's password, if the deployment shows passwords. Raises
    server.NotFound (404); server.BadImage, volume.NoRescue, NotInUse (400); server.Locked, server.WrongState (409)."""
    asked = req.body["rescue"] or {}
    actor(req, server_id, "rescue")
    password, shown = passwords(req, asked.get("adminPass"))
    req.conductor.rescue_server(RescueServer(uuid=server_id, image_id=asked.get("rescue_image_ref"),
                                             admin_password=password,
                                             from_volume=versions.rescue_knows_volumes(req.version)))
    return {} if shown is None else {"adminPass": shown}


def unrescue(req: Request, server_id: str) -> None:
    """Boot a rescued server from its own disk again. Raises server.NotFound (404); server.Locked, server.WrongState,
    server.NoHost (409)."""
    order(req, server_id, "unrescue")
