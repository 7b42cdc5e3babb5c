"""Volumes and their snapshots, which need Cinder: this release has none, so there are none to be read.

Clients read them on every page and for every server they show; they get empty lists. What would change a volume is in
``nova/api/absent.py``.
"""

from __future__ import annotations

from nova import errors
from nova.api.handlers.server_targets import target
from nova.api.request import Request
from nova.api.view import answers
from nova.model.base import Json


@answers({"volumes": ["object"]})
def index(req: Request) -> dict[str, object]:
    """List no volumes: the list is always empty."""
    return {"volumes": []}


@answers({"volumes": ["object"]})
def detail(req: Request) -> dict[str, Json]:
    """List no volumes: the list is always empty."""
    return index(req)


@answers({"volume": "object"})
def show(req: Request, volume_id: str) -> dict[str, Json]:
    """Always volume.NotFound (404)."""
    raise errors.volume.NotFound(volume=volume_id)


@answers({"snapshots": ["object"]})
def snapshots(req: Request) -> dict[str, object]:
    """List no snapshots of volumes: the list is always empty."""
    return {"snapshots": []}


@answers({"snapshots": ["object"]})
def snapshot_details(req: Request) -> dict[str, object]:
    """List no snapshots of volumes: the list is always empty."""
    return snapshots(req)


@answers({"snapshot": "object"})
def snapshot(req: Request, snapshot_id: str) -> dict[str, object]:
    """Always volume.SnapshotNotFound (404)."""
    raise errors.volume.SnapshotNotFound(snapshot=snapshot_id)


@answers({"volumeAttachments": ["object"]})
def attachments(req: Request, server_id: str) -> dict[str, object]:
    """List no volumes of a server: the list is always empty. server.NotFound (404)."""
    target(req, server_id)
    return {"volumeAttachments": []}


@answers({"volumeAttachment": "object"})
def attachment(req: Request, server_id: str, volume_id: str) -> dict[str, object]:
    """Always volume.NotAttached (404), or server.NotFound (404) for a server that the caller does not see."""
    target(req, server_id)
    raise errors.volume.NotAttached(server=server_id, volume=volume_id)
