"""The image proxy of old versions: requests are passed to the image service with the caller's own token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nova import errors
from nova.api.request import Request
from nova.api.view import LINKS, Free, View, answers
from nova.api.views import images as views
from nova.model.image.images import Image, ImageQuery
from nova.model.quota.quotas import UNLIMITED
from nova.web.formats import is_time

PROPERTY = "property-"

#: Parameters that have a meaning in the image service: not custom properties.
NOT_PROPERTIES = frozenset({"limit", "marker", "sort", "sort_key", "sort_dir", "visibility", "owner", "member_status"})

#: A requested status -> the image service's status.
STATUS = {"ACTIVE": "active", "SAVING": "in:queued,saving,uploading,importing", "ERROR": "killed",
          "DELETED": "deleted"}

#: Query parameter -> the image service's filter.
FILTERS = {"name": "name", "minRam": "min_ram", "minDisk": "min_disk", "type": "image_type"}


MOST_SKIPPED = 10_000  # the image service has no offset: skipped images are read, too


@answers({"images": [views.BRIEF], "images_links?": LINKS})
def index(req: Request) -> dict[str, object]:
    """List the names and links of images, as the image service shows them to the caller. Raises image.OffsetTooLarge,
    image.BadTime, api.PageMarkerNotFound (400)."""
    return _listed(req, views.BRIEF)


@answers({"images": [views.FULL], "images_links?": LINKS})
def detail(req: Request) -> dict[str, object]:
    """List images with details, as the image service shows them to the caller. Raises image.OffsetTooLarge,
    image.BadTime, api.PageMarkerNotFound (400)."""
    return _listed(req, views.FULL)


@answers({"image": views.FULL})
def show(req: Request, image_id: str) -> dict[str, object]:
    """Show one image as the caller sees it. Raises image.NotFound (404)."""
    return {"image": views.FULL(req.conductor.get_image(image_id), req)}


def delete(req: Request, image_id: str) -> None:
    """Delete an image, with the caller's own token. Raises image.NotFound (404); service.Forbidden (403)."""
    req.conductor.delete_image(image_id)


def _listed(req: Request, view: View) -> dict[str, object]:
    offset = req.query.one("offset", 0)
    if offset > MOST_SKIPPED:
        raise errors.image.OffsetTooLarge(offset=offset, most=MOST_SKIPPED)
    found: tuple[Image, ...] = req.conductor.list_images(ImageQuery(
        filters=dict(_filters(req)), limit=req.limit() + offset, marker=req.query.one("marker")))
    return views.page(view, found[offset:], req)


def _filters(req: Request) -> Iterator[tuple[str, str]]:
    """Yield the image service's filters for the query."""
    for name in req.query:
        value = req.query.one(name, "")
        if name in FILTERS:
            yield FILTERS[name], value
        elif name == "status":
            yield "status", STATUS.get(value.upper(), value.lower())
        elif name == "server":
            yield "instance_uuid", value.rstrip("/").rpartition("/")[2]  # a server's id, or a link to it
        elif name == "changes-since":
            if not is_time(value):
                raise errors.image.BadTime(value=value)
            yield "updated_at", f"gte:{value}"
        elif name.startswith(PROPERTY) and name.removeprefix(PROPERTY) not in NOT_PROPERTIES:
            yield name.removeprefix(PROPERTY), value


# metadata

@answers({"metadata": Free()})
def metadata(req: Request, image_id: str) -> dict[str, object]:
    """List the custom properties of an image. Raises image.NotFound (404)."""
    return {"metadata": req.conductor.get_image(image_id).properties}


@answers({"meta": Free()})
def metadata_item(req: Request, image_id: str, key: str) -> dict[str, object]:
    """Show one custom property of an image. Raises image.NotFound, image.NoSuchMetadata (404)."""
    return {"meta": {key: _item(req, image_id, key)}}


@answers({"metadata": Free()})
def merge_metadata(req: Request, image_id: str) -> dict[str, object]:
    """Write custom properties of an image, and list all of them; others stay. Raises image.NotFound (404);
    image.TooMuchMetadata (403); image.ReservedName (400)."""
    return {"metadata": _merged(req, image_id, req.body["metadata"])}


@answers({"metadata": Free()})
def replace_metadata(req: Request, image_id: str) -> dict[str, object]:
    """Replace all custom properties of an image by these. Raises image.NotFound (404); image.TooMuchMetadata (403);
    image.ReservedName (400)."""
    items = req.body["metadata"]
    _check_count(req, len(items))
    return {"metadata": req.conductor.update_image_properties(image_id, items, (), True)}


@answers({"meta": Free()})
def update_metadata_item(req: Request, image_id: str, key: str) -> dict[str, object]:
    """Write one custom property; the body must hold the key of the path. Raises image.NotFound (404);
    image.TooMuchMetadata (403); image.MetadataKeyMismatch, image.ReservedName (400)."""
    item = req.body["meta"]
    if key not in item:
        raise errors.image.MetadataKeyMismatch(key=key)
    _merged(req, image_id, item)
    return {"meta": item}


def delete_metadata_item(req: Request, image_id: str, key: str) -> None:
    """Delete one custom property of an image. Raises image.NotFound, image.NoSuchMetadata (404); image.ReservedName
    (400)."""
    _item(req, image_id, key)
    req.conductor.update_image_properties(image_id, {}, (key,), False)


def _item(req: Request, image_id: str, key: str) -> str:
    properties: Mapping[str, str] = req.conductor.get_image(image_id).properties
    if key not in properties:
        raise errors.image.NoSuchMetadata
    return properties[key]


def _merged(req: Request, image_id: str, items: Mapping[str, str]) -> Mapping[str, str]:
    """Return all properties after ``items`` are set."""
    _check_count(req, len({*req.conductor.get_image(image_id).properties, *items}))
    after: Mapping[str, str] = req.conductor.update_image_properties(image_id, items, (), False)
    return after


def _check_count(req: Request, count: int) -> None:
    """Check that an image has at most as many properties as a server may have metadata. The image service checks the
    ownership."""
    limits = req.conductor.get_quotas(req.context.project_id or "", None, False).limits
    limit = limits.get("metadata_items", UNLIMITED)
    if limit != UNLIMITED and count > limit:
        raise errors.image.TooMuchMetadata(limit=limit)
