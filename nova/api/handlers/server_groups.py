"""Server groups: list, show, create, delete."""

from __future__ import annotations

import uuid

import msgspec

from nova import errors
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views.server_groups import GROUP
from nova.model.base import Scope
from nova.model.server.server_groups import ANTI_AFFINITY, MAX_PER_HOST, NewServerGroup, ServerGroupQuery
from nova.web.formats import is_uuid

ALL_PROJECTS_RULE = "os_compute_api:os-server-groups:index:all_projects"
MOST_PER_HOST = 2**31 - 1


@answers({"server_groups": [GROUP]})
def index(req: Request) -> dict[str, object]:
    """List the server groups of the caller's project; of all projects if policy allows (else the option is ignored).
    Limit 0 means unlimited."""
    everywhere = "all_projects" in req.query and req.allows(ALL_PROJECTS_RULE)
    scope = Scope() if everywhere else Scope(project_id=req.project_id)
    page = msgspec.structs.replace(req.page(), limit=req.limit() or None, marker=None)
    groups = req.conductor.list_server_groups(ServerGroupQuery(scope=scope, page=page))
    return {"server_groups": GROUP.all(groups, req)}


@answers({"server_group": GROUP})
def show(req: Request, server_group_id: str) -> dict[str, object]:
    """Show one server group with its members. Raises server.ServerGroupNotFound (404)."""
    _check(server_group_id)
    return {"server_group": GROUP(req.conductor.get_server_group(server_group_id, req.scope()), req)}


@answers({"server_group": GROUP})
def create(req: Request) -> dict[str, object]:
    """Create a server group of the caller's project and user; its policy cannot change. Raises server.ServerGroupRules,
    server.ServerGroupRuleTooLarge (400); quota.TooMany (403)."""
    asked = req.body["server_group"]
    policy = asked["policy"] if "policy" in asked else asked["policies"][0]
    rules = asked.get("rules", {})
    if rules and policy != ANTI_AFFINITY:
        raise errors.server.ServerGroupRules(policy=policy)
    if rules.get(MAX_PER_HOST, 1) > MOST_PER_HOST:
        raise errors.server.ServerGroupRuleTooLarge(value=rules[MAX_PER_HOST], most=MOST_PER_HOST)
    group = NewServerGroup(uuid=str(uuid.uuid4()), name=asked["name"], policy=policy, rules=rules)
    return {"server_group": GROUP(req.conductor.create_server_group(group), req)}


def delete(req: Request, server_group_id: str) -> None:
    """Delete a server group; its servers stay. Raises server.ServerGroupNotFound (404)."""
    _check(server_group_id)
    req.conductor.delete_server_group(server_group_id, req.scope())


def _check(server_group_id: str) -> None:
    """Raise server.ServerGroupNotFound for a malformed id, without a call of the conductor."""
    if not is_uuid(server_group_id):
        raise errors.server.ServerGroupNotFound(group=server_group_id)
