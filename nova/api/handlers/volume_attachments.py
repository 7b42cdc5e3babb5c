"""A server's volumes: show, attach, swap, update and detach them."""

from __future__ import annotations

import uuid

from nova import errors
from nova.api import versions
from nova.api.handlers.server_targets import actor, target
from nova.api.request import Request
from nova.api.view import During, answers
from nova.api.views.volumes import ATTACHED, ATTACHMENT
from nova.model.server import states
from nova.model.server.servers import ServerQuery, ServerTarget
from nova.model.server.states import VmState
from nova.model.volumes import AttachVolume, BlockDevice
from nova.web.formats import is_uuid

UPDATE_RULE = "os_compute_api:os-volumes-attachments:update"
SHELVED = (VmState.SHELVED, VmState.SHELVED_OFFLOADED)


@answers({"volumeAttachments": [ATTACHMENT]})
def index(req: Request, server_id: str) -> dict[str, object]:
    """List a server's volumes. Raises server.NotFound (404)."""
    target(req, server_id)
    offset, found = req.query.one("offset", 0), _attached(req, server_id)
    return {"volumeAttachments": ATTACHMENT.all(found[offset:offset + req.limit()], req)}


@answers({"volumeAttachment": ATTACHMENT})
def show(req: Request, server_id: str, volume_id: str) -> dict[str, object]:
    """Show an attachment by its volume's id. Raises server.NotFound, volume.NotAttached (404)."""
    target(req, server_id)
    return {"volumeAttachment": ATTACHMENT(_one(req, server_id, _known(server_id, volume_id)), req)}


@answers(During({"volumeAttachment": ATTACHED}, until="2.100"))
def create(req: Request, server_id: str) -> dict[str, object] | None:
    """Attach a volume. Up to 2.100 responds when the guest has it; later versions when all checks passed.

    Raises server.NotFound, volume.NotFound (404); server.Locked, server.WrongState (409); Invalid (400): the volume, or
    the requested device; Forbidden (403): too many disks; server.AttachFailed (500): the host refused.
    """
    asked, waits = req.body["volumeAttachment"], versions.attaching_is_waited_for(req.version)
    found = _actor(req, server_id, "attach_volume")
    if asked.get("tag") and found.vm_state is VmState.SHELVED_OFFLOADED:
        raise errors.volume.TagOffloaded(server=server_id)
    wanted = AttachVolume(volume_id=str(uuid.UUID(asked["volumeId"])), device=asked.get("device"), tag=asked.get("tag"),
                          delete_on_termination=asked.get("delete_on_termination", False),
                          multiattach=versions.volumes_may_be_shared(req.version))
    made: BlockDevice = req.conductor.attach_volume(server_id, wanted, waits)
    return {"volumeAttachment": ATTACHED(made, req)} if waits else None


def update(req: Request, server_id: str, volume_id: str) -> None:
    """Swap a volume for another one, which only the volume service may request; or, from 2.85, with the path's
    ``volumeId``, set whether the volume is deleted with its server.

    Raises server.NotFound, volume.NotAttached (404); volume.Fixed, Invalid (400); server.Locked, server.WrongState,
    Conflict (409).
    """
    asked = req.body["volumeAttachment"]
    new = str(uuid.UUID(asked["volumeId"]))
    if versions.attachments_can_be_updated(req.version) and is_uuid(volume_id) and str(uuid.UUID(volume_id)) == new:
        target(req, server_id, UPDATE_RULE)
        _keep(req, server_id, new, asked)
        return
    actor(req, server_id, "swap_volume")
    if "delete_on_termination" in asked:
        raise errors.volume.Fixed(field="delete_on_termination", reason="while the volume becomes another one")
    req.conductor.swap_volume(server_id, _known(server_id, volume_id), new)


def delete(req: Request, server_id: str, volume_id: str) -> None:
    """Detach a volume; responds when the detach has started. Raises server.NotFound, volume.NotAttached (404); Invalid
    (400): the server boots from it; server.Locked, server.WrongState, Conflict (409): also while the server's host is
    down."""
    _actor(req, server_id, "detach_volume")
    req.conductor.detach_volume(server_id, _known(server_id, volume_id))


def _actor(req: Request, server_id: str, name: str) -> ServerTarget:
    found = actor(req, server_id, name)
    if found.vm_state in SHELVED and not versions.shelved_servers_have_volumes(req.version):
        raise errors.server.WrongState(action=states.API_NAMES.get(name, name), server=found.uuid,
                                       attribute="vm_state", value=found.vm_state.value)
    return found


def _attached(req: Request, server_id: str) -> tuple[BlockDevice, ...]:
    """Return the devices that are attached at the volume service: others are not attached yet, or detached already."""
    found = req.conductor.list_server_volumes(ServerQuery(uuid=server_id, scope=req.scope()))
    return tuple(device for device in found if device.attachment_id)


def _one(req: Request, server_id: str, volume_id: str) -> BlockDevice:
    for device in _attached(req, server_id):
        if device.volume_id == volume_id:
            return device
    raise errors.volume.NotAttached(server=server_id, volume=volume_id)


def _known(server_id: str, volume_id: str) -> str:
    """Return a volume's id in the volume service's form; an id that is not a UUID cannot be attached."""
    if not is_uuid(volume_id):
        raise errors.volume.NotAttached(server=server_id, volume=volume_id)
    return str(uuid.UUID(volume_id))


def _keep(req: Request, server_id: str, volume_id: str, asked: dict[str, str | bool]) -> None:
    """Update an attachment; its fixed fields may be repeated, but not changed. Raises volume.Fixed."""
    device = _one(req, server_id, volume_id)
    ids: dict[str, str | bool] = {
        name: str(uuid.UUID(str(asked[name]))) for name in ("id", "serverId") if name in asked}
    given = {**asked, **ids}
    now = {"id": volume_id, "serverId": str(uuid.UUID(server_id)), "device": device.device_name, "tag": device.tag}
    for field, value in now.items():
        if given.get(field) not in (None, value):
            raise errors.volume.Fixed(field=field, reason=f"it is {value}")
    if "delete_on_termination" in asked:
        req.conductor.keep_volume(server_id, volume_id, bool(asked["delete_on_termination"]))
