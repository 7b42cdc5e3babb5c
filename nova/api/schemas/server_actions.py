"""Bodies of actions on a server: the plain ones, rescue, passwords, images and shelving."""

from __future__ import annotations

from nova.api.schemas.servers import METADATA_KEY
from nova.web.schema import LOOSE_NAME, NAME, Body, row


def plain(action: str) -> Body:
    """Return the body of an action whose value has no meaning."""
    return Body(row(action, required=True))


TRIGGER_CRASH_DUMP = Body(row("trigger_crash_dump", "null", required=True))
CHANGE_PASSWORD = Body(
    row("changePassword", "object", required=True),
    row("changePassword.adminPass", "string", required=True))
RESCUE = Body(
    row("rescue", ("object", "null"), required=True),
    row("rescue.adminPass", "string"),
    row("rescue.rescue_image_ref", "string", format="uuid"))

CREATE_IMAGE = Body(
    row("createImage", "object", required=True),
    row("createImage.name", "string", **NAME, required=True),
    row("createImage.metadata", "object"),
    row(f"createImage.metadata.{METADATA_KEY}", "string", max_length=255))
CREATE_BACKUP = Body(
    row("createBackup", "object", required=True),
    row("createBackup.name", "string", **NAME, required=True),
    row("createBackup.backup_type", "string", required=True),
    row("createBackup.rotation", "integer_like", min_length=1, min=0, required=True),
    row("createBackup.metadata", "object"),
    row(f"createBackup.metadata.{METADATA_KEY}", "string", max_length=255),
    legacy=(row("createBackup.name", "string", **LOOSE_NAME, required=True),))

UNSHELVE = Body(
    row("unshelve", required=True, until="2.76"),
    row("unshelve", ("object", "null"), required=True, since="2.77", until="2.90"),
    row("unshelve", ("object", "null"), any_key=("availability_zone", "host"), required=True, since="2.91"),
    row("unshelve.availability_zone", "string", **NAME, required=True, since="2.77", until="2.90"),
    row("unshelve.availability_zone", ("string", "null"), since="2.91"),
    row("unshelve.host", "string", since="2.91"))
