"""A server's tags, which can be changed regardless of its lock."""

from __future__ import annotations

import urllib.parse

from nova import errors
from nova.api.handlers.server_targets import target
from nova.api.request import Answer, Request
from nova.api.schemas.server_parts import TAG
from nova.api.view import answers
from nova.model.server.server_parts import TagChange, TagSet
from nova.model.server.servers import ServerDetail, ServerQuery
from nova.model.server.states import METADATA_STATES
from nova.web.specs import Spec, problem_of

_TAG = Spec(type="string", **TAG)


def _tags(req: Request, server_id: str) -> tuple[str, ...]:
    server: ServerDetail = req.conductor.get_server(ServerQuery(uuid=server_id, scope=req.scope(), as_kept=True))
    req.authorize(server.project_id, server.user_id)
    return server.tags


@answers({"tags": ["string"]})
def index(req: Request, server_id: str) -> dict[str, object]:
    """List the tags of a server. Raises server.NotFound (404)."""
    return {"tags": _tags(req, server_id)}


def show(req: Request, server_id: str, tag: str) -> None:
    """Check that a server has the tag; the response has no body. Raises server.NotFound, server.NoSuchTag (404)."""
    if tag not in _tags(req, server_id):
        raise errors.server.NoSuchTag(server=server_id, tag=tag)


@answers(None, codes=(204,))
def update(req: Request, server_id: str, tag: str) -> Answer:
    """Add a tag to a server: 201 with its location for a new tag, 204 for an existing one. The body is ignored."""
    reason = problem_of(_TAG, tag)
    if reason is not None:
        raise errors.server.BadTag(tag=tag, reason=reason)
    if not _change(req, TagChange(uuid=server_id, add=(tag,))).changed:
        return Answer(status=204)
    where = f"{req.links.self_of('servers', server_id)}/tags/{urllib.parse.quote(tag, safe='')}"
    return Answer(status=201, headers=(("Location", where),))


@answers({"tags": ["string"]})
def replace(req: Request, server_id: str) -> dict[str, object]:
    """Replace all tags of a server by these; duplicates count once. Raises server.NotFound (404); server.TooManyTags
    (400); server.WrongState (409)."""
    tags = tuple(dict.fromkeys(req.body["tags"]))
    return {"tags": _change(req, TagChange(uuid=server_id, add=tags, replace=True)).tags}


def delete(req: Request, server_id: str, tag: str) -> None:
    """Remove one tag from a server. Raises server.NotFound, server.NoSuchTag (404); server.WrongState (409)."""
    _change(req, TagChange(uuid=server_id, remove=(tag,)))


def delete_all(req: Request, server_id: str) -> None:
    """Remove all tags from a server. Idempotent. Raises server.NotFound (404); server.WrongState (409)."""
    _change(req, TagChange(uuid=server_id, replace=True))


def _change(req: Request, change: TagChange) -> TagSet:
    found = target(req, change.uuid)
    if found.vm_state not in METADATA_STATES:
        raise errors.server.WrongState(action=change.verb, server=found.uuid, attribute="vm_state",
                                       value=found.vm_state.value)
    made: TagSet = req.conductor.change_tags(change)
    return made
