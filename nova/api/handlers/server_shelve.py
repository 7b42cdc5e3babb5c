"""Shelving: store a server as an image, and restore it from the image."""

from __future__ import annotations

from nova import errors
from nova.api import versions
from nova.api.handlers.server_targets import actor, order
from nova.api.request import Request
from nova.model.server.server_orders import UnshelveServer
from nova.model.server.states import VmState

TO_HOST = "os_compute_api:os-shelve:unshelve_to_host"

#: Fields that an unshelve may have.
PLACE = ("availability_zone", "host")


def shelve(req: Request, server_id: str) -> None:
    """Stop a server and store it as an image, so that it can leave its host. Raises server.NotFound (404);
    server.Locked, server.WrongState, server.NoHost (409)."""
    order(req, server_id, "shelve")


def shelve_offload(req: Request, server_id: str) -> None:
    """Remove a shelved server from its host; its image stays. Raises server.NotFound (404); server.Locked,
    server.WrongState, server.NoHost (409)."""
    order(req, server_id, "shelveOffload")


def unshelve(req: Request, server_id: str) -> None:
    """Unshelve a server. A zone or host can be selected only for a server that has left its host."""
    asked = _place(req)
    found = actor(req, server_id, "unshelve")
    if "host" in asked:
        req.authorize(found.project_id, found.user_id, rule=TO_HOST)
    if asked and found.vm_state is not VmState.SHELVED_OFFLOADED:
        raise errors.server.WrongState(action="unshelve", server=found.uuid, attribute="vm_state",
                                       value=found.vm_state.value)
    req.conductor.unshelve_server(UnshelveServer(uuid=server_id, fields=tuple(asked), **asked))


def _place(req: Request) -> dict[str, str | None]:
    """Return the requested zone and host; empty if the scheduler selects the host."""
    asked = (req.body["unshelve"] if versions.unshelve_can_name_a_place(req.version) else None) or {}
    return {name: asked[name] for name in PLACE if name in asked}
