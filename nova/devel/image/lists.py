"""Lists of FakeGlance's images: visibility, filters, sorting and pages."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlencode

from nova import failures
from nova.devel.image.records import VISIBILITIES, ImageMembership, ImageRecord
from nova.devel.service import FakeError, TokenOwner

#: Members of an image: project -> membership.
Members = Mapping[str, ImageMembership]
DEFAULT_LIMIT, MOST = 25, 1000
SORTED_BY = ("name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at", "owner",
             "visibility", "min_disk", "min_ram", "protected")
MEMBER_STATUSES = ("pending", "accepted", "rejected")
#: Members that are times, and the comparisons of their filters.
TIMES = ("created_at", "updated_at")
_COMPARED: Mapping[str, Callable[[datetime.datetime, datetime.datetime], bool]] = {
    "eq": operator.eq, "neq": operator.ne, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt,
    "lte": operator.le}
#: Query parameters that do not filter by a member or property.
_OF_THE_PAGE = ("limit", "marker", "sort", "sort_key", "sort_dir", "visibility", "member_status", "tag", "size_min",
                "size_max")

Query = Sequence[tuple[str, str]]


def may_see(image: ImageRecord, members: Members, owner: TokenOwner) -> bool:
    """Return whether a caller who knows the image's id may see it."""
    return (owner.is_admin or image["visibility"] in ("public", "community") or _is_own(image, owner)
            or (image["visibility"] == "shared" and owner.project_id in members))


def page(images: Iterable[ImageRecord], members: Mapping[str, Members], query: Query,
         owner: TokenOwner) -> dict[str, object]:
    """Return the body of a list. Raises 400, which names the parameter."""
    said = dict(query)
    listed = [one for one in images if _is_listed(one, members.get(one["id"], {}), said, owner)
              and _fits(one, query)]
    _sort(listed, query)
    limit = _number(said, "limit", DEFAULT_LIMIT)
    begin = _after(listed, said.get("marker"))
    found = listed[begin:begin + min(limit, MOST)]
    others = [(name, value) for name, value in query if name != "marker"]
    body: dict[str, object] = {"images": found, "schema": "/v2/schemas/images", "first": _link([
        (name, value) for name, value in others])}
    if found and begin + len(found) < len(listed):
        body["next"] = _link([*others, ("marker", found[-1]["id"])])
    return body


def _link(query: Query) -> str:
    return f"/v2/images?{urlencode(query)}" if query else "/v2/images"


def _is_own(image: ImageRecord, owner: TokenOwner) -> bool:
    return owner.project_id is not None and image["owner"] == owner.project_id


def _is_listed(image: ImageRecord, members: Members, said: Mapping[str, str], owner: TokenOwner) -> bool:
    """Return whether the image is listed: other projects' community images only on request, shared images by their
    member status."""
    wanted = said.get("visibility")
    if wanted not in (None, "all", *VISIBILITIES):
        raise FakeError(400, f"Invalid visibility value: {wanted}")
    status = said.get("member_status", "accepted")
    if status not in (*MEMBER_STATUSES, "all"):
        raise FakeError(400, f"Invalid status: {status}")
    if not may_see(image, members, owner) or wanted not in (None, "all", image["visibility"]):
        return False
    if _is_own(image, owner) or owner.is_admin:
        return wanted is not None or image["visibility"] != "community" or _is_own(image, owner)
    if image["visibility"] == "shared":
        return status in ("all", members[owner.project_id or ""]["status"])
    return image["visibility"] != "community" or wanted in ("community", "all")


def _fits(image: ImageRecord, query: Query) -> bool:
    """Return whether the image passes all filters. Hidden images are only listed if ``os_hidden`` requests them."""
    said = dict(query)
    if "os_hidden" not in said and image["os_hidden"]:
        return False
    size = image["size"] or 0
    if not _number(said, "size_min", 0) <= size <= _number(said, "size_max", size):
        return False
    if any(value not in image["tags"] for name, value in query if name == "tag"):
        return False
    members: Mapping[str, object] = image
    return all(_is_then(str(members[name]), value) if name in TIMES else _text(members.get(name)) in _choices(value)
               for name, value in query if name not in _OF_THE_PAGE)


def _is_then(time: str, wanted: str) -> bool:
    """Compare a time with a filter such as ``gte:2026-11-24T10:00:00Z``; the default comparison is equality. Raises
    400."""
    word, colon, text = wanted.partition(":")
    if word not in _COMPARED:
        word, text = "eq", wanted
    with failures.replaced(ValueError, lambda _: FakeError(400, f"Invalid time value: {wanted}")):
        return _COMPARED[word](datetime.datetime.fromisoformat(time), _utc(datetime.datetime.fromisoformat(text)))


def _utc(time: datetime.datetime) -> datetime.datetime:
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def _choices(value: str) -> list[str]:
    """Return the values of a filter: ``in:one,"two, three"`` matches either."""
    if not value.startswith("in:"):
        return [value.lower() if value.lower() in ("true", "false") else value]
    inside, found = False, [""]
    for letter in value.removeprefix("in:"):
        if letter == '"':
            inside = not inside
        elif letter == "," and not inside:
            found.append("")
        else:
            found[-1] += letter
    return found


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(said: Mapping[str, str], name: str, default: int) -> int:
    text = said.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise FakeError(400, f"{name} must be a non-negative integer.")
    return int(text)


def _sort(images: list[ImageRecord], query: Query) -> None:
    """Sort by ``sort=name:asc,size:desc``, or by pairs of sort_key and sort_dir; by default, the newest first."""
    for key, direction in reversed([*_orders(query), ("created_at", "desc"), ("id", "desc")]):
        if key not in SORTED_BY:
            raise FakeError(400, f"Invalid sort key: {key}. It must be one of {', '.join(SORTED_BY)}.")
        if direction not in ("asc", "desc"):
            raise FakeError(400, f"Invalid sort direction: {direction}")
        images.sort(key=_sortable(key), reverse=direction == "desc")


def _sortable(key: str) -> Callable[[Mapping[str, object]], tuple[bool, str | int]]:
    def sortable(image: Mapping[str, object]) -> tuple[bool, str | int]:
        value = image[key]
        return value is not None, value if isinstance(value, str | int) else 0
    return sortable


def _orders(query: Query) -> list[tuple[str, str]]:
    text = dict(query).get("sort")
    if text is not None:
        pairs = [one.strip().partition(":") for one in text.split(",")]
        return [(key, direction or "desc") for key, _, direction in pairs]
    keys = [value for name, value in query if name == "sort_key"]
    directions = [value for name, value in query if name == "sort_dir"]
    if len(directions) > max(len(keys), 1):
        raise FakeError(400, "Number of sort dirs does not match the number of sort keys.")
    keys = keys or (["created_at"] if directions else [])
    last = directions[-1] if len(directions) == 1 else "desc"
    return [(key, directions[at] if at < len(directions) else last) for at, key in enumerate(keys)]


def _after(images: list[ImageRecord], marker: str | None) -> int:
    """Return the index at which the page begins. Raises 400 for an unknown marker."""
    if marker is None:
        return 0
    found = [at for at, one in enumerate(images) if one["id"] == marker]
    if not found:
        raise FakeError(400, f"The marker {marker} is not in this list.")
    return found[0] + 1
