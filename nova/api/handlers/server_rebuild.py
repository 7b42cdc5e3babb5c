"""Rebuild a server from an image; it keeps its id, addresses and host."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.api import versions
from nova.api.handlers.server_create import files_of, passwords
from nova.api.handlers.server_targets import actor
from nova.api.handlers.servers import flags
from nova.api.request import Answer, Request
from nova.api.view import answers
from nova.api.views import servers as views
from nova.model.base import Json
from nova.model.server.server_orders import RebuildServer
from nova.model.server.servers import ServerDetail
from nova.web.formats import canonical_address

TRUSTED_CERTS = "os_compute_api:servers:rebuild:trusted_certs"

#: name in the body -> field of the order; omitted fields stay.
FIELDS = {"name": "name", "metadata": "metadata", "description": "description", "hostname": "hostname",
          "key_name": "key_name", "user_data": "user_data", "accessIPv4": "access_ip_v4", "accessIPv6": "access_ip_v6",
          "OS-DCF:diskConfig": "disk_config", "trusted_image_certificates": "trusted_certs", "personality": "files"}


@answers({"server": (views.REBUILT, views.REBUILT_IN_PART)})
def rebuild(req: Request, server_id: str) -> Answer:
    """Start to rebuild a server from an image; it keeps its id and addresses, and omitted fields stay. Raises
    server.NotFound (404); server.BadImage, BadImageProperty, BadKeypair, FlavorTooSmall, NoSignatures,
    RebuildOtherTopology (400); volume.RebuildSameImage, NotInUse (400); server.Locked, server.WrongState (409);
    quota.TooMany (403)."""
    asked = req.body["rebuild"]
    found = actor(req, server_id, "rebuild")
    if asked.get("trusted_image_certificates") is not None:
        req.authorize(found.project_id, found.user_id, rule=TRUSTED_CERTS)
        raise errors.server.NoSignatures()
    password, shown = passwords(req, asked)
    values = _values(asked)
    server: ServerDetail = req.conductor.rebuild_server(RebuildServer(
        uuid=server_id, image_id=asked["imageRef"], fields=tuple(values), admin_password=password,
        preserve_ephemeral=asked.get("preserve_ephemeral", False),
        reimage=versions.rebuild_writes_over_a_volume(req.version), **values))
    view = views.REBUILT if versions.update_answers_in_full(req.version) else views.REBUILT_IN_PART
    body = view(server, req, flags(req, found.project_id) | {views.ALONE})
    if shown is not None:
        body["adminPass"] = shown
    return Answer({"server": body}, headers=(("Location", req.links.self_of("servers", server_id)),))


def _values(asked: Mapping[str, Json]) -> dict[str, Json]:
    """Return the values that the order writes, by field."""
    values = {field: asked[name] for name, field in FIELDS.items() if name in asked}
    if "name" in values:
        values["name"] = values["name"].strip()
    if "files" in values:
        values["files"] = files_of(asked)
    if values.get("trusted_certs") is not None:
        values["trusted_certs"] = tuple(values["trusted_certs"])
    return values | {name: canonical_address(values[name]) for name in ("access_ip_v4", "access_ip_v6")
                     if name in values}
