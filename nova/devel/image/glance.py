"""Glance in small: ``FakeGlance`` speaks the Image API v2: upload, download, metadata, tags, members, schemas.

Source: the Image API reference; facts of the real service in tests/fakes/glance.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from http.client import responses
from pathlib import Path

import webob

from nova import errors
from nova.devel.image import lists, records
from nova.devel.image.data import PART, DataFacts, DataFolder, DataParts
from nova.devel.image.members import ROUTES as MEMBER_ROUTES
from nova.devel.image.metadefs import ROUTES as METADEF_ROUTES
from nova.devel.image.schemas import SCHEMAS
from nova.devel.image.store import ImageShelf, check_writer
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
from nova.model.base import Json
from nova.web.query import query_pairs

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
OLD_PATCH_TYPE = "application/openstack-images-v2.0-json-patch"  # whose operations name what they do otherwise
DATA_TYPE = "application/octet-stream"
VERSIONS = (("v2.17", "CURRENT"), ("v2.9", "SUPPORTED"), ("v2.0", "SUPPORTED"))


class FakeGlance(FakeService[ImageShelf]):
    """A WSGI application. ``identify``: whose a token is, such as FakeKeystone's; ``folder``: where images' data are
    kept, in memory if not given. Uploads are as large as the server in front lets through: clients send them in chunks.
    """

    def __init__(self, identify: Identify, folder: Path | None = None) -> None:
        lock = threading.RLock()
        super().__init__("fake Glance", ImageShelf(DataFolder(folder), lock), ROUTES, identify, lock)

    def add(self, data: Iterable[bytes], owner: TokenOwner, **members: Json) -> str:
        """An image to begin with, of the owner's project; its id. ``members`` are of Glance's JSON, formats among them.
        FakeError as for a request; where ``data`` fail, the record stays and waits for others."""
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


def list_versions(shelf: ImageShelf, call: FakeCall) -> FakeAnswer:
    """GET /, /versions: the API's versions."""
    links = [{"rel": "self", "href": f"{call.http.application_url}/v2/"}]
    status = 200 if call.http.path_info.startswith("/versions") else 300
    return FakeAnswer(status, {"versions": [{"id": version, "status": standing, "links": links}
                                            for version, standing in VERSIONS]})


def create(shelf: ImageShelf, call: FakeCall) -> FakeAnswer:
    """POST /v2/images: a record that waits for its data. 400, 403, 409."""
    check_writer(call.caller)
    image = shelf.insert(records.new(call.body(), call.caller))
    return FakeAnswer(201, image, {"Location": f"{call.http.application_url}{image['self']}"})


def list_all(shelf: ImageShelf, call: FakeCall) -> Json:
    """GET /v2/images. 400 names the parameter."""
    try:
        query = query_pairs(call.http.environ)
    except errors.NovaError as error:
        raise FakeError(400, error.message) from None
    return lists.page(shelf.images.values(), shelf.members, query, call.caller)


def show(shelf: ImageShelf, call: FakeCall) -> Json:
    """GET /v2/images/{image_id}. 404, also for an image that the caller may not see."""
    return shelf.seen(call)


def update(shelf: ImageShelf, call: FakeCall) -> Json:
    """PATCH /v2/images/{image_id}. 400, 403, 404, 409, 415."""
    image = shelf.own(call)
    _check_type(call, PATCH_TYPE, OLD_PATCH_TYPE)
    patch = call.body()
    if call.http.content_type == OLD_PATCH_TYPE:
        patch = records.modern(patch)
    shelf.images[image["id"]] = changed = records.patched(image, patch, call.caller)
    return changed


def delete(shelf: ImageShelf, call: FakeCall) -> None:
    """DELETE /v2/images/{image_id}: record, members and data. 403 while it is protected."""
    image = shelf.own(call)
    if image["protected"]:
        raise FakeError(403, f"Image {image['id']} is protected and cannot be deleted.")
    del shelf.images[image["id"]]
    shelf.members.pop(image["id"], None)
    shelf.data.forget(image["id"])


def upload(shelf: ImageShelf, call: FakeCall) -> None:
    """PUT /v2/images/{image_id}/file, once. 409 when there are data, or formats are missing; 410 when the image is
    deleted meanwhile. An upload that breaks off leaves the image as it was before."""
    with shelf.lock:
        image = shelf.own(call)
        _check_type(call, DATA_TYPE)
        if image["status"] != "queued":
            raise FakeError(409, f"Image status transition from {image['status']} to saving is not allowed")
        if not (image["disk_format"] and image["container_format"]):
            raise FakeError(409, "Properties disk_format, container_format must be set prior to saving data.")
        image["status"] = "saving"
    facts = None
    try:
        facts = shelf.data.keep(image["id"], _sent(call))
    finally:
        with shelf.lock:
            _end_upload(shelf, image["id"], facts)


def _end_upload(shelf: ImageShelf, image_id: str, facts: DataFacts | None) -> None:
    """The record says what came, or that nothing did (None). The record may be another dictionary than before."""
    image = shelf.images.get(image_id)
    if image is None:
        shelf.data.forget(image_id)
        raise FakeError(410, f"Image {image_id} could not be found after upload. It may have been deleted.")
    if facts is None:
        image["status"] = "queued"
        return
    image.update(facts._asdict(), status="active", os_hash_algo="sha512", updated_at=records.time_text())


def download(shelf: ImageShelf, call: FakeCall) -> FakeAnswer:
    """GET /v2/images/{image_id}/file, whole or a range of it. 204 while there are no data; 403 for one that was
    deactivated, but for administrators."""
    with shelf.lock:
        image = shelf.seen(call)
        if image["status"] == "deactivated" and not call.caller.is_admin:
            raise FakeError(403, "The requested image has been deactivated. Image data download is forbidden.")
        if image["status"] not in ("active", "deactivated"):
            return FakeAnswer(204)
        data = DataParts(shelf.data.open(image["id"]), image["size"])
    return FakeAnswer(200, data=data, headers={"Content-Type": DATA_TYPE, "Content-Length": str(image["size"]),
                                               "Content-MD5": image["checksum"], "Accept-Ranges": "bytes"})


def deactivate(shelf: ImageShelf, call: FakeCall) -> None:
    """POST /v2/images/{image_id}/actions/deactivate."""
    _turn(shelf, call, "active", "deactivated")


def reactivate(shelf: ImageShelf, call: FakeCall) -> None:
    """POST /v2/images/{image_id}/actions/reactivate."""
    _turn(shelf, call, "deactivated", "active")


def add_tag(shelf: ImageShelf, call: FakeCall) -> None:
    """PUT /v2/images/{image_id}/tags/{tag}; again is no error."""
    image, tag = shelf.own(call), call.named["tag"]
    records.check("tags", [tag])
    image["tags"] = sorted({*image["tags"], tag})


def remove_tag(shelf: ImageShelf, call: FakeCall) -> None:
    """DELETE of the same. 404."""
    image, tag = shelf.own(call), call.named["tag"]
    if tag not in image["tags"]:
        raise FakeError(404, f"Image {image['id']} has no tag {tag}.")
    image["tags"] = [one for one in image["tags"] if one != tag]


def list_tasks(shelf: ImageShelf, call: FakeCall) -> Json:
    """GET /v2/images/{image_id}/tasks: none, since nothing is imported here. 404."""
    shelf.seen(call)
    return {"tasks": []}


def show_schema(shelf: ImageShelf, call: FakeCall) -> Json:
    """GET /v2/schemas/{name}."""
    if call.named["name"] not in SCHEMAS:
        raise FakeError(404, f"There is no schema {call.named['name']}.")
    return SCHEMAS[call.named["name"]]


def _turn(shelf: ImageShelf, call: FakeCall, old: str, new: str) -> None:
    """Again is no error. 403 for an image that is neither."""
    image = shelf.own(call)
    if image["status"] not in (old, new):
        raise FakeError(403, f"Image status transition from {image['status']} to {new} is not allowed")
    image["status"] = new


def _check_type(call: FakeCall, *wanted: str) -> None:
    sent = (call.http.content_type or "").lower()
    if sent not in wanted:
        raise FakeError(415, f"Unsupported Content-Type: {wanted[0]} is wanted.")


def _sent(call: FakeCall) -> Iterator[bytes]:
    """The data as the client sends them. 400 when it breaks off."""
    try:
        while part := call.http.body_file.read(PART):
            yield part
    except OSError:
        raise FakeError(400, "The data broke off.") from None


_ONE = "/v2/images/{image_id}"
ROUTES: tuple[FakeRoute[ImageShelf], ...] = (
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
