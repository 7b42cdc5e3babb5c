"""Images of servers: snapshots, and backups with rotation."""

from __future__ import annotations

from nova.api import versions
from nova.api.handlers.server_targets import actor
from nova.api.request import Answer, Request
from nova.api.view import During, answers
from nova.model.server.server_orders import CreateBackup, CreateImage

MADE = During({"image_id": "string"}, since="2.45")


@answers(MADE)
def create_image(req: Request, server_id: str) -> Answer:
    """Start a snapshot of a server, and return the image's id; the image exists immediately and is active later. Raises
    server.NotFound (404); server.WrongState, server.NoHost (409); quota.TooMany for its metadata (403)."""
    asked = req.body["createImage"]
    actor(req, server_id, "createImage")
    return _made(req, req.conductor.create_image(CreateImage(
        uuid=server_id, name=asked["name"], metadata=asked.get("metadata", {}),
        metadata_limited=versions.image_metadata_is_limited(req.version))))


@answers(MADE)
def create_backup(req: Request, server_id: str) -> Answer:
    """Start a backup of a server. With a rotation of 0 no backup is kept, including this one, and the response has no
    image."""
    asked = req.body["createBackup"]
    actor(req, server_id, "createBackup")
    return _made(req, req.conductor.create_backup(CreateBackup(
        uuid=server_id, name=asked["name"].strip(), backup_type=asked["backup_type"], rotation=asked["rotation"],
        metadata=asked.get("metadata", {}), metadata_limited=versions.image_metadata_is_limited(req.version))))


def _made(req: Request, image_id: str) -> Answer:
    if not image_id:
        return Answer()
    if versions.snapshot_is_named_in_the_body(req.version):
        return Answer({"image_id": image_id})
    return Answer(headers=(("Location", f"{req.links.images}/{image_id}"),))
