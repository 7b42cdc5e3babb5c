"""Members of FakeGlance's shared images: projects that the images are shared with."""

from __future__ import annotations

from collections.abc import Mapping

from nova.devel.image.lists import MEMBER_STATUSES
from nova.devel.image.records import LONGEST, ImageMembership, ImageRecord, time_text
from nova.devel.image.store import FakeImageStore
from nova.devel.service import FakeCall, FakeError, FakeRoute


def create(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """POST {"member": project}: share the image with a project. Raises 400, 403 or 409."""
    image, body = store.own(call), call.body()
    project_id = body.get("member") if isinstance(body, dict) else None
    if not isinstance(project_id, str) or not 0 < len(project_id) <= LONGEST:
        raise FakeError(400, "'member' is a required property: a project's id.")
    if image["visibility"] != "shared":
        raise FakeError(403, "Only shared images have members.")
    members = store.members.setdefault(image["id"], {})
    if project_id in members:
        raise FakeError(409, f"Image member {project_id} already exists for image {image['id']}.")
    now = time_text()
    members[project_id] = {"member_id": project_id, "image_id": image["id"], "status": "pending", "created_at": now,
                           "updated_at": now, "schema": "/v2/schemas/member"}
    return members[project_id]


def list_all(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET: list members; the owner sees all, a member only itself. Raises 404 for other callers."""
    image = store.seen(call)
    if image["visibility"] != "shared":
        raise FakeError(403, "Only shared images have members.")
    found = [one for one in store.members.get(image["id"], {}).values() if _may_see(image, one, call)]
    return {"members": found, "schema": "/v2/schemas/members"}


def show(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET one member. Raises 404, also if the caller may not see it."""
    return _found(store, call)


def update(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """PUT {"status": ...}: accept or reject the image; only the member may do so. Raises 400, 403 or 404."""
    member, body = _found(store, call), call.body()
    status = body.get("status") if isinstance(body, dict) else None
    if not isinstance(status, str) or status not in MEMBER_STATUSES:
        raise FakeError(400, f"'status' must be one of {', '.join(MEMBER_STATUSES)}.")
    if not call.caller.is_admin and call.caller.project_id != member["member_id"]:
        raise FakeError(403, "You are not permitted to modify the status of this image member.")
    member["status"], member["updated_at"] = status, time_text()
    return member


def delete(store: FakeImageStore, call: FakeCall) -> None:
    """DELETE: unshare the image. Raises 403 or 404."""
    image = store.own(call)
    del store.members[image["id"]][_found(store, call)["member_id"]]


def _found(store: FakeImageStore, call: FakeCall) -> ImageMembership:
    image = store.seen(call)
    member = store.members.get(image["id"], {}).get(call.named["member_id"])
    if member is None or not _may_see(image, member, call):
        raise FakeError(404, f"{call.named['member_id']} is not a member of image {image['id']}.")
    return member


def _may_see(image: ImageRecord, member: ImageMembership, call: FakeCall) -> bool:
    return call.caller.is_admin or call.caller.project_id in (image["owner"], member["member_id"])


_PATH = "/v2/images/{image_id}/members"
ROUTES: tuple[FakeRoute[FakeImageStore], ...] = (
    FakeRoute("POST", _PATH, create),
    FakeRoute("GET", _PATH, list_all),
    FakeRoute("GET", f"{_PATH}/{{member_id}}", show),
    FakeRoute("PUT", f"{_PATH}/{{member_id}}", update),
    FakeRoute("DELETE", f"{_PATH}/{{member_id}}", delete, success=204),
)
