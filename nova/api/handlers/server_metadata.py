"""A server's metadata, and its addresses."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.api.handlers.server_targets import check_lock, target
from nova.api.request import Request
from nova.api.view import Free, answers
from nova.api.views.servers import ADDRESSES, addresses
from nova.model.server.servers import MetadataChange, ServerDetail, ServerQuery
from nova.model.server.states import METADATA_STATES


def _server(req: Request, server_id: str) -> ServerDetail:
    server: ServerDetail = req.conductor.get_server(ServerQuery(uuid=server_id, scope=req.scope(), as_kept=True))
    req.authorize(server.project_id, server.user_id)
    return server


@answers({"metadata": Free()})
def index(req: Request, server_id: str) -> dict[str, object]:
    """Show all metadata of a server. Raises server.NotFound (404)."""
    return {"metadata": _server(req, server_id).metadata}


@answers({"meta": Free()})
def show(req: Request, server_id: str, key: str) -> dict[str, object]:
    """Show one metadata item of a server. Raises server.NotFound, server.NoSuchMetadata (404)."""
    metadata = _server(req, server_id).metadata
    if key not in metadata:
        raise errors.server.NoSuchMetadata
    return {"meta": {key: metadata[key]}}


@answers({"metadata": Free()})
def merge(req: Request, server_id: str) -> dict[str, object]:
    """Write metadata items of a server, and show all items; others stay. Raises server.NotFound (404); server.Locked,
    server.WrongState (409); quota.TooMany (403)."""
    return {"metadata": _change(req, MetadataChange(uuid=server_id, items=req.body["metadata"]))}


@answers({"metadata": Free()})
def replace(req: Request, server_id: str) -> dict[str, object]:
    """Replace all metadata of a server by these items. Raises server.NotFound (404); server.Locked, server.WrongState
    (409); quota.TooMany (403)."""
    return {"metadata": _change(req, MetadataChange(uuid=server_id, items=req.body["metadata"], replace=True))}


@answers({"meta": Free()})
def update(req: Request, server_id: str, key: str) -> dict[str, object]:
    """Write one metadata item; the body must hold the key of the path. Raises server.MetadataKeyMismatch (400);
    server.NotFound (404); server.Locked, server.WrongState (409); quota.TooMany (403)."""
    item = req.body["meta"]
    if key not in item:
        raise errors.server.MetadataKeyMismatch(key=key)
    _change(req, MetadataChange(uuid=server_id, items=item))
    return {"meta": item}


def delete(req: Request, server_id: str, key: str) -> None:
    """Delete one metadata item. Raises server.NotFound, server.NoSuchMetadata (404); server.Locked, server.WrongState
    (409)."""
    _change(req, MetadataChange(uuid=server_id, delete=(key,)))


def _change(req: Request, change: MetadataChange) -> Mapping[str, str]:
    found = target(req, change.uuid)
    check_lock(req, found)
    if found.vm_state not in METADATA_STATES:
        action = "delete metadata" if change.delete else "update metadata"
        raise errors.server.WrongState(action=action, server=found.uuid, attribute="vm_state",
                                       value=found.vm_state.value)
    return req.conductor.change_metadata(change)


@answers({"addresses": ADDRESSES})
def ips(req: Request, server_id: str) -> dict[str, object]:
    """Show a server's addresses by network, as recorded at their last change. Raises server.NotFound (404)."""
    return {"addresses": addresses(_server(req, server_id).interfaces, extended=False)}


@answers(ADDRESSES)
def network_ips(req: Request, server_id: str, network_label: str) -> dict[str, object]:
    """Show a server's addresses on one network, by its label. Raises server.NotFound, server.NoSuchNetwork (404)."""
    shown = addresses(_server(req, server_id).interfaces, extended=False)
    if network_label not in shown:
        raise errors.server.NoSuchNetwork(label=network_label)
    return {network_label: shown[network_label]}
