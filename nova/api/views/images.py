"""Images in the form of the proxy in old versions."""

from __future__ import annotations

from collections.abc import Sequence

from nova.api.request import Request
from nova.api.view import LEFT_OUT, LINKS, Out, View, seconds_of
from nova.model.image.images import Image

ALTERNATE = "application/vnd.openstack.image"

#: The image service's status -> (the API's status, progress in percent).
STATUS = {"active": ("ACTIVE", 100), "queued": ("SAVING", 25), "saving": ("SAVING", 50), "uploading": ("SAVING", 50),
          "importing": ("SAVING", 50), "killed": ("ERROR", 0), "deleted": ("DELETED", 0),
          "pending_delete": ("DELETED", 0)}
UNKNOWN = ("UNKNOWN", 0)
#: Spellings of a true property, as in image_properties.
TRUE = ("true", "1", "yes", "on", "t", "y")


def _links(image: Image, req: Request) -> list[dict[str, str]]:
    return [*req.links.of("images", image.id),
            {"rel": "alternate", "type": ALTERNATE, "href": f"{req.links.images}/{image.id}"}]


def _server(image: Image, req: Request) -> object:
    """Return the server from which a snapshot was created."""
    uuid = image.properties.get("instance_uuid")
    return {"id": uuid, "links": req.links.of("servers", uuid)} if uuid else LEFT_OUT


def _disk_config(image: Image, req: Request) -> object:
    automatic = image.properties.get("auto_disk_config", image.properties.get("hw_auto_disk_config"))
    if automatic is None:
        return LEFT_OUT
    return "AUTO" if automatic.strip().lower() in TRUE else "MANUAL"


BRIEF = View(Out("id", "id"), Out("name", "name"), Out("links", _links), of=Image)

FULL = View(
    *BRIEF.fields,
    Out("status", lambda image, req: STATUS.get(image.status, UNKNOWN)[0], type="string"),
    Out("progress", lambda image, req: STATUS.get(image.status, UNKNOWN)[1], type="integer"),
    Out("created", seconds_of("created_at")),
    Out("updated", seconds_of("updated_at")),
    Out("minDisk", "min_disk_gb"),
    Out("minRam", "min_ram_mb"),
    Out("OS-EXT-IMG-SIZE:size", "size_bytes"),
    Out("metadata", "properties"),
    Out("server", _server, optional=True, type={"id": "string", "links": LINKS}),
    Out("OS-DCF:diskConfig", _disk_config, optional=True, type="string"),
    of=Image,
)


def page(view: View, images: Sequence[Image], req: Request) -> dict[str, object]:
    """Return ``images``, and the link to the next page if this one is full."""
    return {"images": view.all(images, req),
            **req.next_links("images_links", images, images[-1].id if images else None)}
