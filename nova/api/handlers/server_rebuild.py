"""Rebuild a server from an image; it keeps its id, addresses and host."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from nova import decoding, errors
from nova.api import versions
from nova.api.handlers.server_create import AskedFile, files_of, passwords
from nova.api.handlers.server_targets import actor
from nova.api.handlers.servers import flags
from nova.api.request import Answer, Request
from nova.api.view import answers
from nova.api.views import servers as views
from nova.model.server.server_orders import RebuildServer
from nova.model.server.servers import ServerDetail
from nova.web.formats import canonical_address

TRUSTED_CERTS = "os_compute_api:servers:rebuild:trusted_certs"


class RebuildFields(msgspec.Struct, frozen=True):
    """Fields of the order that a body may name; omitted fields stay."""

    name: str | UnsetType = UNSET
    metadata: Mapping[str, str] | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    hostname: str | UnsetType = UNSET
    key_name: str | None | UnsetType = UNSET
    user_data: str | None | UnsetType = UNSET
    access_ip_v4: str | UnsetType = msgspec.field(name="accessIPv4", default=UNSET)
    access_ip_v6: str | UnsetType = msgspec.field(name="accessIPv6", default=UNSET)
    disk_config: str | UnsetType = msgspec.field(name="OS-DCF:diskConfig", default=UNSET)
    trusted_certs: tuple[str, ...] | None | UnsetType = msgspec.field(name="trusted_image_certificates", default=UNSET)
    files: tuple[AskedFile, ...] | UnsetType = msgspec.field(name="personality", default=UNSET)


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
    password, shown = passwords(req, asked.get("adminPass"))
    values = _values(decoding.convert(asked, RebuildFields))
    order = RebuildServer(
        uuid=server_id, image_id=asked["imageRef"], fields=tuple(values), admin_password=password,
        preserve_ephemeral=asked.get("preserve_ephemeral", False),
        reimage=versions.rebuild_writes_over_a_volume(req.version))
    server: ServerDetail = req.conductor.rebuild_server(msgspec.structs.replace(order, **values))
    view = views.REBUILT if versions.update_answers_in_full(req.version) else views.REBUILT_IN_PART
    body = view(server, req, flags(req, found.project_id) | {views.ALONE})
    if shown is not None:
        body["adminPass"] = shown
    return Answer({"server": body}, headers=(("Location", req.links.self_of("servers", server_id)),))


def _values(asked: RebuildFields) -> dict[str, object]:
    """Return the values that the order writes, by field."""
    found = {field: value for field in asked.__struct_fields__ if (value := getattr(asked, field)) is not UNSET}
    if asked.name is not UNSET:
        found["name"] = asked.name.strip()
    if asked.files is not UNSET:
        found["files"] = files_of(asked.files)
    return found | {name: canonical_address(found[name]) for name in ("access_ip_v4", "access_ip_v6") if name in found}
