"""Host aggregates: create and change them, their hosts and metadata, and cache images on their hosts."""

from __future__ import annotations

import collections
import re
import uuid

from nova import errors
from nova.api.request import Answer, Request
from nova.api.view import answers
from nova.api.views import aggregates as views
from nova.model.host.aggregates import ZONE, AggregateUpdate, NewAggregate

_WHOLE = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)


@answers({"aggregates": [views.FULL]})
def index(req: Request) -> dict[str, object]:
    """List all aggregates with their hosts and metadata. The list is not paged."""
    return views.listed(req.conductor.list_aggregates(), req)


@answers({"aggregate": views.FULL})
def show(req: Request, aggregate_id: str) -> dict[str, object]:
    """Show one aggregate. Raises aggregate.BadId (400), aggregate.NotFound (404)."""
    return views.one(req.conductor.get_aggregate(_number(aggregate_id)), req)


@answers({"aggregate": views.CREATED})
def create(req: Request) -> dict[str, object]:
    """Create an aggregate without hosts. Raises aggregate.NameTaken (409); aggregate.BadZone (400)."""
    asked = req.body["aggregate"]
    made = req.conductor.create_aggregate(NewAggregate(
        name=str(_text(req, asked["name"])), availability_zone=_text(req, asked.get("availability_zone"))))
    return {"aggregate": views.CREATED(made, req)}


@answers({"aggregate": views.FULL})
def update(req: Request, aggregate_id: str) -> dict[str, object]:
    """Change the name or the zone of an aggregate; omitted fields stay. Raises aggregate.NotFound (404);
    aggregate.NameTaken (409); aggregate.BadId, BadZone, SecondZone, HasServers (400)."""
    asked = req.body["aggregate"]
    name = asked.get("name")
    return views.one(req.conductor.update_aggregate(AggregateUpdate(
        id=_number(aggregate_id), name=None if name is None else name.strip(),
        changes_zone="availability_zone" in asked, availability_zone=_text(req, asked.get("availability_zone")))), req)


def delete(req: Request, aggregate_id: str) -> None:
    """Delete an aggregate that has no hosts. Raises aggregate.NotFound (404); aggregate.BadId, aggregate.NotEmpty
    (400)."""
    req.conductor.delete_aggregate(_number(aggregate_id))


@answers({"aggregate": views.FULL})
def add_host(req: Request, aggregate_id: str) -> dict[str, object]:
    """Add a compute host to an aggregate. Raises aggregate.NotFound, host.NotFound (404); aggregate.HostExists,
    HostInZone, PinnedServers (409)."""
    return views.one(req.conductor.add_aggregate_host(_number(aggregate_id), req.body["add_host"]["host"]), req)


@answers({"aggregate": views.FULL})
def remove_host(req: Request, aggregate_id: str) -> dict[str, object]:
    """Remove a compute host from an aggregate. Raises aggregate.NotFound, aggregate.HostNotFound (404);
    aggregate.PinnedServers (409)."""
    return views.one(req.conductor.remove_aggregate_host(_number(aggregate_id), req.body["remove_host"]["host"]), req)


@answers({"aggregate": views.FULL})
def set_metadata(req: Request, aggregate_id: str) -> dict[str, object]:
    """Write metadata of an aggregate, key by key; null removes a key, other keys stay. Raises aggregate.NotFound (404);
    aggregate.EmptyZone, BadZone, SecondZone, HasServers (400)."""
    items = req.body["set_metadata"]["metadata"]
    if items.get(ZONE) == "":
        raise errors.aggregate.EmptyZone(key=ZONE)
    return views.one(req.conductor.set_aggregate_metadata(_number(aggregate_id), items), req)


@answers(None)
def cache_images(req: Request, aggregate_id: str) -> Answer:
    """Make the aggregate's hosts cache images; responds before they have them. Raises aggregate.NotFound (404);
    aggregate.ImageDoubled, aggregate.BadImage (400)."""
    ids = [str(uuid.UUID(item["id"])) for item in req.body["cache"]]
    for id, times in collections.Counter(ids).items():
        if times > 1:
            raise errors.aggregate.ImageDoubled(id=id)
    req.conductor.cache_images(_number(aggregate_id), tuple(ids))
    return Answer()


def _number(id: str) -> int:
    """Return the id as a number. Raises aggregate.BadId; aggregate.NotFound for a number that cannot be a key."""
    if not _WHOLE.fullmatch(id):
        raise errors.aggregate.BadId(id=id)
    number = int(id)
    if not 0 < number < 2**63:
        raise errors.aggregate.NotFound(id=id)
    return number


def _text(req: Request, text: str | None) -> str | None:
    """Return a name; under /v2, without leading and trailing blanks, which are allowed there but ignored."""
    return text.strip() if text is not None and req.legacy else text
