"""Minimal Glance: ``FakeGlance`` supports the Image API v2: upload, download, metadata, tags, members, schemas.

Source: the Image API reference; facts of the real service in tests/fakes/glance.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from http.client import responses
from pathlib import Path

import webob

from nova import errors, failures
from nova.devel.image import lists, records
from nova.devel.image.data import PART, DataFacts, DataFolder, DataParts
from nova.devel.image.members import ROUTES as MEMBER_ROUTES
from nova.devel.image.metadefs import ROUTES as METADEF_ROUTES
from nova.devel.image.schemas import SCHEMAS
from nova.devel.image.store import FakeImageStore, check_writer
from nova.devel.service import (
    FakeAnswer,
    FakeCall,
    FakeError,
    FakeRoute,
    FakeService,
    Identify,
    TokenOwner,
    admin,
    anybody,
)
from nova.model.base import JsonValue
from nova.web.query import query_pairs

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
OLD_PATCH_TYPE = "application/openstack-images-v2.0-json-patch"  # the operations of this type have another form
DATA_TYPE = "application/octet-stream"
VERSIONS = (("v2.17", "CURRENT"), ("v2.9", "SUPPORTED"), ("v2.0", "SUPPORTED"))


class FakeGlance(FakeService[FakeImageStore]):
    """Glance as a WSGI application. ``identify``: function that returns a token's owner, such as FakeKeystone's;
    ``folder``: directory for images' data, in memory by default. The server limits the size of uploads, which clients
    send in chunks."""

    def __init__(self, identify: Identify, folder: Path | None = None) -> None:
        lock = threading.RLock()
        super().__init__("fake Glance", FakeImageStore(DataFolder(folder), lock), ROUTES, identify, lock)

    def add(self, data: Iterable[bytes], owner: TokenOwner, **members: JsonValue) -> str:
        """Add an image of the owner's project, and return its id. ``members`` are those of Glance's JSON, including
        formats. Raises FakeError as for a request; if ``data`` fail, the record stays and waits for data."""
        with self.lock:
            image = self.state.insert(records.new(members, owner))
            _end_upload(self.state, image["id"], self.state.data.keep(image["id"], data))
            self.save()
        return image["id"]

    def refused(self, http: webob.Request, error: FakeError) -> FakeAnswer:
        title = responses[error.status]
        headers = {"WWW-Authenticate": "Keystone"} if error.status == 401 else {}
        return FakeAnswer(error.status, {"code": f"{error.status} {title}", "title": title, "message": error.message},
                          headers)


def list_versions(store: FakeImageStore, call: FakeCall) -> FakeAnswer:
    """GET / or /versions: list the API's versions."""
    links = [{"rel": "self", "href": f"{call.http.application_url}/v2/"}]
    status = 200 if call.http.path_info.startswith("/versions") else 300
    return FakeAnswer(status, {"versions": [{"id": version, "status": standing, "links": links}
                                            for version, standing in VERSIONS]})


def create(store: FakeImageStore, call: FakeCall) -> FakeAnswer:
    """POST /v2/images: create a record, which waits for its data. Raises 400, 403 or 409."""
    check_writer(call.caller)
    image = store.insert(records.new(call.body(), call.caller))
    return FakeAnswer(201, image, {"Location": f"{call.http.application_url}{image['self']}"})


def list_all(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/images: list images. Raises 400, which names the parameter."""
    with failures.replaced(errors.NovaError, lambda error: FakeError(400, error.message)):
        query = query_pairs(call.http.environ)
    return lists.page(store.images.values(), store.members, query, call.caller)


def show(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/images/{image_id}: show an image. Raises 404, also if the caller may not see it."""
    return store.seen(call)


def update(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """PATCH /v2/images/{image_id}: change an image. Raises 400, 403, 404, 409 or 415."""
    image = store.own(call)
    _check_type(call, PATCH_TYPE, OLD_PATCH_TYPE)
    patch = call.body()
    if call.http.content_type == OLD_PATCH_TYPE:
        patch = records.modern(patch)
    store.images[image["id"]] = changed = records.patched(image, patch, call.caller)
    return changed


def delete(store: FakeImageStore, call: FakeCall) -> None:
    """DELETE /v2/images/{image_id}: delete record, members and data. Raises 403 for a protected image."""
    image = store.own(call)
    if image["protected"]:
        raise FakeError(403, f"Image {image['id']} is protected and cannot be deleted.")
    del store.images[image["id"]]
    store.members.pop(image["id"], None)
    store.data.forget(image["id"])


def upload(store: FakeImageStore, call: FakeCall) -> None:
    """PUT /v2/images/{image_id}/file: upload data, once. Raises 409 if the image has data or lacks formats, 410 if the
    image is deleted meanwhile. An interrupted upload leaves the image unchanged."""
    with store.lock:
        image = store.own(call)
        _check_type(call, DATA_TYPE)
        if image["status"] != "queued":
            raise FakeError(409, f"Image status transition from {image['status']} to saving is not allowed")
        if not (image["disk_format"] and image["container_format"]):
            raise FakeError(409, "Properties disk_format, container_format must be set prior to saving data.")
        image["status"] = "saving"
    facts = None
    try:
        facts = store.data.keep(image["id"], _sent(call))
    finally:
        with store.lock:
            _end_upload(store, image["id"], facts)


def _end_upload(store: FakeImageStore, image_id: str, facts: DataFacts | None) -> None:
    """Set the record to the result of an upload; None: it failed. The record's dictionary may have been replaced
    since."""
    image = store.images.get(image_id)
    if image is None:
        store.data.forget(image_id)
        raise FakeError(410, f"Image {image_id} could not be found after upload. It may have been deleted.")
    if facts is None:
        image["status"] = "queued"
        return
    image.update({"size": facts.size, "checksum": facts.checksum,
                  "os_hash_value": facts.os_hash_value, "status": "active", "os_hash_algo": "sha512",
                  "updated_at": records.time_text()})


def download(store: FakeImageStore, call: FakeCall) -> FakeAnswer:
    """GET /v2/images/{image_id}/file: download data or a range of them. Returns 204 without data. Raises 403 for a
    deactivated image, except for administrators."""
    with store.lock:
        image = store.seen(call)
        if image["status"] == "deactivated" and not call.caller.is_admin:
            raise FakeError(403, "The requested image has been deactivated. Image data download is forbidden.")
        if image["status"] not in ("active", "deactivated"):
            return FakeAnswer(204)
        size = image["size"] or 0
        data = DataParts(store.data.open(image["id"]), size)
    return FakeAnswer(200, data=data, headers={"Content-Type": DATA_TYPE, "Content-Length": str(size),
                                               "Content-MD5": image["checksum"] or "", "Accept-Ranges": "bytes"})


def deactivate(store: FakeImageStore, call: FakeCall) -> None:
    """POST /v2/images/{image_id}/actions/deactivate: deactivate an image."""
    _turn(store, call, "active", "deactivated")


def reactivate(store: FakeImageStore, call: FakeCall) -> None:
    """POST /v2/images/{image_id}/actions/reactivate: reactivate an image."""
    _turn(store, call, "deactivated", "active")


def add_tag(store: FakeImageStore, call: FakeCall) -> None:
    """PUT /v2/images/{image_id}/tags/{tag}: add a tag; repeating it is not an error."""
    image, tag = store.own(call), call.named["tag"]
    records.check("tags", [tag])
    image["tags"] = sorted({*image["tags"], tag})


def remove_tag(store: FakeImageStore, call: FakeCall) -> None:
    """DELETE a tag. Raises 404."""
    image, tag = store.own(call), call.named["tag"]
    if tag not in image["tags"]:
        raise FakeError(404, f"Image {image['id']} has no tag {tag}.")
    image["tags"] = [one for one in image["tags"] if one != tag]


def list_tasks(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/images/{image_id}/tasks: list import tasks, of which this fake has none. Raises 404."""
    store.seen(call)
    return {"tasks": []}


def show_schema(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/schemas/{name}: show a JSON schema. Raises 404."""
    if call.named["name"] not in SCHEMAS:
        raise FakeError(404, f"Unknown schema {call.named['name']}.")
    return SCHEMAS[call.named["name"]]


def _turn(store: FakeImageStore, call: FakeCall, old: str, new: str) -> None:
    """Change the status; repeating it is not an error. Raises 403 for an image with another status."""
    image = store.own(call)
    if image["status"] not in (old, new):
        raise FakeError(403, f"Image status transition from {image['status']} to {new} is not allowed")
    image["status"] = new


def _check_type(call: FakeCall, *wanted: str) -> None:
    sent = (call.http.content_type or "").lower()
    if sent not in wanted:
        raise FakeError(415, f"Unsupported Content-Type: {wanted[0]} is required.")


def _sent(call: FakeCall) -> Iterator[bytes]:
    """Yield the data as the client sends them. Raises 400 if they are incomplete."""
    with failures.replaced(OSError, lambda _: FakeError(400, "The data are incomplete.")):
        while part := call.http.body_file.read(PART):
            yield part


_ONE = "/v2/images/{image_id}"
ROUTES: tuple[FakeRoute[FakeImageStore], ...] = (
    FakeRoute("GET", "/", list_versions, anybody),
    FakeRoute("GET", "/versions", list_versions, anybody),
    FakeRoute("GET", "/v2", list_versions, anybody),
    FakeRoute("GET", "/v2/schemas/{name}", show_schema),
    FakeRoute("GET", "/v2/images", list_all),
    FakeRoute("POST", "/v2/images", create),
    FakeRoute("GET", _ONE, show),
    FakeRoute("PATCH", _ONE, update),
    FakeRoute("DELETE", _ONE, delete, success=204),
    FakeRoute("GET", f"{_ONE}/tasks", list_tasks),
    FakeRoute("GET", f"{_ONE}/file", download, streams=True),
    FakeRoute("PUT", f"{_ONE}/file", upload, success=204, streams=True),
    FakeRoute("POST", f"{_ONE}/actions/deactivate", deactivate, admin, 204),
    FakeRoute("POST", f"{_ONE}/actions/reactivate", reactivate, admin, 204),
    FakeRoute("PUT", f"{_ONE}/tags/{{tag}}", add_tag, success=204),
    FakeRoute("DELETE", f"{_ONE}/tags/{{tag}}", remove_tag, success=204),
    *MEMBER_ROUTES, *METADEF_ROUTES,
)
