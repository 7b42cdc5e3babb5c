"""Queries of server lists: filters and their permissions, sorting, pages."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import msgspec

from nova import errors
from nova.api import versions
from nova.api.request import Request
from nova.api.schemas.servers import IDLE_SORT_KEYS, JOINED
from nova.model.base import Scope
from nova.model.server import states
from nova.model.server.server_parts import MOST_TAGS
from nova.model.server.servers import Condition, ServerListQuery
from nova.web.formats import BOOLEANS, is_time, to_time

ALL_FILTERS_RULE = "os_compute_api:servers:allow_all_filters"
EQUAL, REGEX = "eq", "regex"
DELETED = "DELETED"  # the status


@dataclass(frozen=True)
class ListFilter:
    """A filter: its column and comparison. ``everybody``: the first version in which non-admins may use it; None:
    never."""

    name: str
    column: str
    op: str = EQUAL
    everybody: str | None = None


FILTERS = (
    ListFilter("name", "name", REGEX, "2.1"),
    ListFilter("image", "image_id", EQUAL, "2.1"),
    ListFilter("flavor", "flavorid", EQUAL, "2.1"),
    ListFilter("reservation_id", "reservation_id", REGEX, "2.1"),
    ListFilter("availability_zone", "availability_zone", REGEX, "2.83"),
    ListFilter("config_drive", "config_drive", EQUAL, "2.83"),
    ListFilter("key_name", "key_name", REGEX, "2.83"),
    ListFilter("power_state", "power_state", EQUAL, "2.83"),
    ListFilter("progress", "progress", EQUAL, "2.83"),
    ListFilter("task_state", "task_state", EQUAL, "2.83"),
    ListFilter("vm_state", "vm_state", EQUAL, "2.83"),
    ListFilter("user_id", "user_id", EQUAL, "2.83"),
    ListFilter("created_at", "created_at", EQUAL, "2.83"),
    ListFilter("launched_at", "launched_at", EQUAL, "2.83"),
    ListFilter("terminated_at", "terminated_at", EQUAL, "2.83"),
    ListFilter("hostname", "hostname", REGEX, "2.90"),
    ListFilter("display_name", "name", REGEX),
    ListFilter("description", "description", REGEX),
    ListFilter("display_description", "description", REGEX),
    ListFilter("host", "host"),
    ListFilter("node", "node", REGEX),
    ListFilter("uuid", "uuid"),
    ListFilter("image_ref", "image_id"),
    ListFilter("kernel_id", "kernel_id", REGEX),
    ListFilter("ramdisk_id", "ramdisk_id", REGEX),
    ListFilter("launch_index", "launch_index"),
    ListFilter("root_device_name", "root_device_name", REGEX),
    ListFilter("locked_by", "locked_by", REGEX),
    ListFilter("access_ip_v4", "access_ip_v4", REGEX),
    ListFilter("access_ip_v6", "access_ip_v6", REGEX),
    ListFilter("auto_disk_config", "disk_config"),
)
TIMES = ("created_at", "launched_at", "terminated_at")

#: First version in which non-admins may use a filter that is not a column.
EVERYBODY = {"status": "2.1", "ip": "2.1", "changes-since": "2.1", "ip6": "2.5", "tags": "2.26", "tags-any": "2.26",
             "not-tags": "2.26", "not-tags-any": "2.26", "changes-before": "2.66", "locked": "2.73",
             "deleted": None, "project_id": None, "tenant_id": None, "soft_deleted": None,
             **{row.name: row.everybody for row in FILTERS}}

#: Sort keys whose column has another name.
SORT_COLUMNS = {"display_name": "name", "display_description": "description", "image_ref": "image_id",
                "instance_type_id": "flavorid", "auto_disk_config": "disk_config", "locked": "locked_by"}
ADMIN_SORT_KEYS = ("host", "node")


def query_of(req: Request, detail: bool) -> ServerListQuery:
    """Return the conductor's query for this request. Policy is checked first; filters that the caller may not use are
    ignored."""
    req.authorize()
    usable = _Usable(req)
    for name in req.query:
        if name in JOINED or name.startswith("_"):
            raise errors.server.ServersBadFilter(name=name, value=req.query.one(name),
                                                 reason="servers cannot be filtered by it")
    all_tenants = _all_tenants(req, detail)
    since, before = changes(req)
    statuses = _statuses(req, usable)
    query = ServerListQuery(
        scope=Scope() if all_tenants else Scope(project_id=req.project_id), detail=detail,
        deleted=_deleted(usable, statuses, since is not None or before is not None),
        soft_deleted=bool(usable.boolean("soft_deleted")),
        conditions=_conditions(usable, all_tenants), statuses=statuses,
        ip_regex=usable.one("ip"), ip6_regex=usable.one("ip6"),
        tags_all=usable.words("tags"), tags_any=usable.words("tags-any"),
        not_tags_all=usable.words("not-tags"), not_tags_any=usable.words("not-tags-any"),
        changes_since=since, changes_before=before, locked=usable.boolean("locked"),
        sort=_sort(req), page=req.page())
    return msgspec.structs.replace(query, silent_cells=_silent_cells(req, query))


def _silent_cells(req: Request, query: ServerListQuery) -> str:
    """Return how to handle servers whose cell does not answer: show, skip or fail. They can be shown if the query needs
    no data of the cell for filters, order or pages. A filter that matches the default (``deleted=false``) needs
    none."""
    plain = ServerListQuery(scope=query.scope, detail=query.detail, page=query.page)
    if (versions.silent_cells_are_shown(req.version) and query == plain
            and "limit" not in req.query and "marker" not in req.query):
        return "show"
    return "skip" if req.options.skips_silent_cells else "fail"


class _Usable:
    """The query's filters that the caller may use."""

    def __init__(self, req: Request) -> None:
        self._query = req.query
        self.everything = req.allows(ALL_FILTERS_RULE)
        self._names = {name for name, since in EVERYBODY.items()
                       if self.everything or (since is not None and versions.within(req.version, since, None))}

    def one(self, name: str) -> str | None:
        return self._query.one(name) if name in self._names else None

    def all(self, name: str) -> list[str]:
        return self._query.all(name) if name in self._names else []

    def words(self, name: str) -> tuple[str, ...]:
        """Split a comma-separated list of tags, without duplicates. Raises server.ServersBadFilter for more tags than a
        server can have."""
        found = tuple(dict.fromkeys(filter(None, (self.one(name) or "").split(","))))
        if len(found) > MOST_TAGS:
            raise errors.server.ServersBadFilter(name=name, value=f"{found[0]},...",
                                                 reason=f"it has {len(found)} tags, but {MOST_TAGS} is the maximum")
        return found

    def boolean(self, name: str) -> bool | None:
        text = self.one(name)
        return None if text is None else _boolean(name, text)


def _boolean(name: str, text: str) -> bool:
    if text not in BOOLEANS:
        raise errors.server.ServersBadFilter(name=name, value=text,
                                             reason="it must be a boolean, such as true or false")
    return BOOLEANS[text]


def _all_tenants(req: Request, detail: bool) -> bool:
    text = req.query.one("all_tenants")
    if text is None or (text != "" and not _boolean("all_tenants", text)):
        return False
    rule = "detail" if detail else "index"
    req.authorize(rule=f"os_compute_api:servers:{rule}:get_all_tenants")
    return True


def changes(req: Request) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """Return ``changes-since`` and ``changes-before`` of the query. Raises server.ServersBadFilter if they are
    reversed.

    Rows have microseconds, but responses show whole seconds: changes within the last shown second are included.
    """
    since, before = (None if (text := req.query.one(name)) is None else to_time(text)
                     for name in ("changes-since", "changes-before"))
    if since is not None and before is not None and since > before:
        raise errors.server.ServersBadFilter(name="changes-before", value=before.isoformat(),
                                             reason="it is before changes-since")
    return since, before and before.replace(microsecond=999_999)


def _statuses(req: Request, usable: _Usable) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.upper() for name in usable.all("status")))
    if DELETED in names and not usable.everything:
        raise errors.server.ServersDeletedForbidden
    if names and versions.unknown_status_is_refused(req.version) and not any(states.states_of(name)[0]
                                                                             for name in names):
        known = sorted({shown for row in states.STATUS.values() for shown in row.values()})
        raise errors.server.ServersBadFilter(name="status", value=", ".join(names),
                                             reason=f"it must be one of {', '.join(known)}")
    return names


def _deleted(usable: _Usable, statuses: tuple[str, ...], by_change: bool) -> str:
    """Return whether to list live servers, deleted ones, or both: by ``deleted``, by the statuses, or both for a list
    of changes."""
    asked = usable.boolean("deleted")
    if asked is not None:
        return "deleted" if asked else "live"
    if DELETED in statuses:
        return "deleted" if set(statuses) == {DELETED} else "any"
    return "any" if by_change else "live"


def _conditions(usable: _Usable, all_tenants: bool) -> tuple[Condition, ...]:
    found = [_condition(row, value) for row in FILTERS if (value := usable.one(row.name)) is not None]
    project = usable.one("project_id") or usable.one("tenant_id")
    if all_tenants and project is not None:
        found.append(Condition(column="project_id", value=project))
    return tuple(found)


def _condition(row: ListFilter, value: str) -> Condition:
    if row.name in TIMES:
        return Condition(column=row.column, value=_time(row.name, value))
    if row.name == "config_drive":
        value = "true" if BOOLEANS.get(value, False) else "false"
    if row.name == "auto_disk_config":
        value = {"1": "AUTO", "true": "AUTO", "auto": "AUTO"}.get(value.lower(), "MANUAL")
    return Condition(column=row.column, op=row.op, value=value)


def _time(name: str, value: str) -> str:
    """Return the time as text in the database's form."""
    if not is_time(value):
        raise errors.server.ServersBadFilter(name=name, value=value, reason="it must be an ISO 8601 date and time")
    return to_time(value).isoformat(sep=" ")


def _sort(req: Request) -> tuple[tuple[str, str], ...]:
    keys, directions = list(req.query.all("sort_key")), list(req.query.all("sort_dir"))
    wrong = [direction for direction in directions if direction not in ("asc", "desc")]
    if wrong:
        raise errors.server.ServersBadSort(reason=f"sort_dir {wrong[0]} must be asc or desc")
    if len(directions) > max(1, len(keys)):
        raise errors.server.ServersBadSort(reason="more sort_dir than sort_key")
    forbidden = [key for key in keys if key in ADMIN_SORT_KEYS]
    if forbidden and not req.context.is_admin:
        raise errors.server.ServersSortForbidden(keys=", ".join(forbidden))
    keys = keys or (["created_at"] if directions else [])
    directions += [directions[0] if directions else "desc"] * (len(keys) - len(directions))
    idle: tuple[str, ...] = IDLE_SORT_KEYS if versions.locked_is_sort_key(req.version) else (*IDLE_SORT_KEYS, "locked")
    return tuple((SORT_COLUMNS.get(key, key), direction)
                 for key, direction in zip(keys, directions, strict=True) if key not in idle)

