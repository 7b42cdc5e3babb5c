"""What every operation refuses: unknown ids (404), who may not (403), bodies and queries that don't fit (400)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.contract import making, rows
from tests.functional.live import scope
from tests.functional.live.caller import MEMBER, operation_of, span
from tests.functional.live.scenario import scenario
from tests.functional.live.world import World

NOBODYS = "00000000-0000-4000-8000-000000000000"
#: Ids of things that are not there, where they are no uuids (up to a version).
UNKNOWN = {"aggregate_id": "999999", "migration_id": "999999", "flavor_id": "nothing", "keypair_name": "nothing",
           "host_name": "nothing", "alias": "nothing", "key": "nothing", "tag": "nothing", "network_label": "nothing",
           "hypervisor_hostname_pattern": "nothing", "request_id": "req-nothing", "api_version": "v9"}
NUMBERED_UNTIL = {"hypervisor_id": 52, "service_id": 52}
#: Operations whose path takes anything.
TOLERANT = ("os-quota", "os-simple-tenant-usage", "os-instance_usage_audit_log", "os-baremetal-nodes")
#: Bodies that must fit the path before anything is looked up.
NAMED: dict[str, Any] = {
    "PUT /flavors/{flavor_id}/os-extra_specs/{key}": {"nothing": "a"},
    "PUT /images/{image_id}/metadata/{key}": {"meta": {"nothing": "a"}},
    "PUT /servers/{server_id}/metadata/{key}": {"meta": {"nothing": "a"}},
}
ADMIN_ONLY = ("rule:context_is_admin",)


def in_scope() -> Iterator[tuple[str, dict[str, Any], list[int]]]:
    """(id, entry, its first and last version)."""
    waiting = scope.untouched()
    for id, entry in rows.operations().items():
        if entry["status"] != "gone" and id not in waiting:
            versions = span(id)
            yield id, entry, sorted({max(versions[0], 1), versions[-1]})


def body_of(id: str, version: int) -> Any:
    """The smallest body that passes its schema."""
    if rows.operations()[id]["method"] not in ("POST", "PUT"):
        return None
    action = id.partition("#")[2]
    if id.startswith("PUT /os-services/") and version >= 53:
        return {"status": "enabled"}
    made = making.smallest_body(rows.tree_of(rows.shapes(id).get("body", []), version), action or None)
    return made if not action or isinstance(made, dict) and action in made else {action: None}


def unknown(name: str, version: int) -> str:
    if version <= NUMBERED_UNTIL.get(name, 0):
        return "999999"
    return UNKNOWN.get(name, NOBODYS)


@scenario
def unknown_ids(world: World) -> None:
    for id, entry, versions in in_scope():
        names = [part[1:-1] for part in entry["path"].split("/") if part.startswith("{")]
        if not names or 404 not in entry["errors_declared"] or any(word in id for word in TOLERANT):
            continue
        for version in versions:
            path = world.fill(id, version, **{name: unknown(name, version) for name in names})
            body = NAMED.get(id) or body_of(id, version)
            world.live.call(entry["method"], path, body, version, expect=scope.refused(id, version) or 404)


@scenario
def who_may_not(world: World) -> None:
    """What is for administrators is refused to a member of the project, who sees the server it is about."""
    for id, entry, versions in in_scope():
        first = next((policy for policy in entry["policies"] if "when" not in policy), None)
        if first is None or first["default"] not in ADMIN_ONLY:
            continue
        for version in versions:
            world.live.call(entry["method"], world.fill(id, version), body_of(id, version), version, MEMBER, expect=403)


@scenario
def bodies_that_do_not_fit(world: World) -> None:
    for id, entry, versions in in_scope():
        table = rows.shapes(id).get("body", [])
        if entry["method"] not in ("POST", "PUT") or not table:
            continue
        for version in versions:
            for body in unfitting(id, version):
                world.live.call(entry["method"], world.fill(id, version), body, version, expect=400)


def unfitting(id: str, version: int) -> Iterator[Any]:
    """Bodies that the contract's rows refuse: nothing, a list, a stranger, each required key left out."""
    tree = rows.tree_of(rows.shapes(id).get("body", []), version)
    right = body_of(id, version)
    tries: list[Any] = [{**right, "stranger": 1}] if isinstance(right, dict) else []
    if "#" not in id:
        tries += [None, [], {}]
    for name, inner in (right if isinstance(right, dict) else {}).items():
        if isinstance(inner, dict):
            tries += [{**right, name: {**inner, "stranger": 1}}, {**right, name: None}]
            tries += [{**right, name: {key: inner[key] for key in inner if key != left}} for left in inner]
    yield from (body for body in tries if rows.judge_by(tree, body))


@scenario
def bodies_come_before_ids_and_rights(world: World) -> None:
    """A bad body is a 400 also for who may not, and for what is not there."""
    for id, entry, versions in in_scope():
        if entry["method"] not in ("POST", "PUT") or not rows.shapes(id).get("body"):
            continue
        version = versions[-1]
        body = next(unfitting(id, version), None)
        if body is not None:
            names = [part[1:-1] for part in entry["path"].split("/") if part.startswith("{")]
            path = world.fill(id, version, **{name: unknown(name, version) for name in names})
            world.live.call(entry["method"], path, body, version, MEMBER, expect=400)


@scenario
def queries_that_do_not_fit(world: World) -> None:
    for id, entry, versions in in_scope():
        table = rows.shapes(id).get("query", [])
        for version in versions:
            row = rows.at(table, version).get("(unknown parameters)", {})
            if row.get("handling") == "refuse":
                path = f"{world.fill(id, version)}?stranger=1"
                world.live.call(entry["method"], path, body_of(id, version), version, expect=400)


@scenario
def versions_without_the_operation(world: World) -> None:
    """Before an operation appears, and after it disappeared: 404, whoever asks."""
    for id, entry, versions in in_scope():
        for outside, near in ((min(versions) - 1, versions[0]), (versions[-1] + 1, versions[-1])):
            path, body = world.fill(id, near), body_of(id, near)
            if 1 <= outside <= 104 and not operation_of(entry["method"], path, body, outside):
                world.live.call(entry["method"], path, body, outside, expect=404)


@scenario
def servers_of_others(world: World) -> None:
    """A server of another project is not there for a member: 404, never 403."""
    theirs = world.theirs
    for id, entry, versions in in_scope():
        if "{server_id}" in entry["path"]:
            path = world.fill(id, versions[-1], server_id=theirs)
            body = {"meta": {"My Server Name": "a"}} if id in NAMED else body_of(id, versions[-1])
            world.live.call(entry["method"], path, body, versions[-1], MEMBER,
                            expect=scope.refused(id, versions[-1]) or 404)
