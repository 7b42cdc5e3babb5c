"""Flavors with their extra specs and the projects that may use private ones."""

from __future__ import annotations

import functools
import uuid as uuids
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models.api import flavor_extra_specs, flavor_projects, flavors
from nova.db.quota import ledger
from nova.db.sql.statements import delete_some, insert_all
from nova.db.sql.types import Columns, later, utc_now
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor

_FIELDS = [flavors.c[name] for name in Flavor.__struct_fields__ if name in flavors.c]
SORT_KEYS = {"flavorid": flavors.c.flavorid, "name": flavors.c.name, "memory_mb": flavors.c.memory_mb,
             "root_gb": flavors.c.root_gb, "vcpus": flavors.c.vcpus, "id": flavors.c.id,
             "created_at": flavors.c.created_at,
             "updated_at": sa.func.coalesce(flavors.c.updated_at, flavors.c.created_at),
             "description": sa.func.coalesce(flavors.c.description, ""),
             "ephemeral_gb": flavors.c.ephemeral_gb, "swap": flavors.c.swap_mb, "swap_mb": flavors.c.swap_mb,
             "rxtx_factor": flavors.c.rxtx_factor, "is_public": flavors.c.is_public, "disabled": flavors.c.disabled}


#: Flavors that the requesting project may access; ``project_id`` is bound when ``scoped`` statements are executed.
_MINE = sa.select(flavor_projects.c.flavor_id).where(
    flavor_projects.c.project_id == sa.bindparam("project_id", type_=flavor_projects.c.project_id.type))


def _visible(query: sa.Select[*Columns], scoped: bool) -> sa.Select[*Columns]:
    return query.where(sa.or_(flavors.c.is_public, flavors.c.id.in_(_MINE))) if scoped else query


@functools.cache
def _one(scoped: bool) -> sa.Select[*tuple[object, ...]]:
    extras = sa.union_all(
        sa.select(flavor_extra_specs.c.flavor_id.label("flavor_id"), flavor_extra_specs.c.key.label("key"),
                  flavor_extra_specs.c.value.label("value")),
        sa.select(flavor_projects.c.flavor_id, flavor_projects.c.project_id, sa.null())).subquery("extras")
    return _visible(sa.select(*_FIELDS, extras.c.key, extras.c.value)
                    .join_from(flavors, extras, extras.c.flavor_id == flavors.c.id, isouter=True)
                    .where(flavors.c.flavorid == sa.bindparam("wanted"), flavors.c.deleted == 0), scoped)


def get(tx: Connection, flavorid: str, scope: Scope) -> Flavor:
    """Return a live flavor with its extra specs and projects, in one statement. Raises flavor.NotFound."""
    bound = {"wanted": flavorid} | ({"project_id": scope.project_id} if scope.project_id is not None else {})
    found = _gather(tx.execute(_one(scope.project_id is not None), bound))
    if not found:
        raise errors.flavor.NotFound(flavor_id=flavorid)
    return found[0]


def _gather(rows: Iterable[sa.Row[*tuple[object, ...]]]) -> list[Flavor]:
    by_id: dict[int, tuple[dict[str, Any], dict[str, str], list[str]]] = {}
    for row in rows:
        found = dict(row._mapping)
        key, value = found.pop("key"), found.pop("value")
        _fields, specs, projects = by_id.setdefault(found["id"], (found, {}, []))
        if value is not None:
            specs[key] = value
        elif key is not None:
            projects.append(key)
    return [Flavor(**fields, extra_specs=specs, projects=tuple(sorted(projects)))
            for fields, specs, projects in by_id.values()]


#: Filters of a list: field of the query -> condition.
_NARROWED = {"min_ram_mb": flavors.c.memory_mb >= sa.bindparam("min_ram_mb"),
             "min_disk_gb": flavors.c.root_gb >= sa.bindparam("min_disk_gb"),
             "name": flavors.c.name == sa.bindparam("name")}


@functools.cache
def _page(scoped: bool, is_public: bool | None, narrowed: tuple[str, ...], sort_key: str, descending: bool
          ) -> sa.Select[*tuple[object, ...]]:
    chosen = _visible(sa.select(*_FIELDS).where(flavors.c.deleted == 0), scoped)
    if is_public is not None:
        public = flavors.c.is_public.is_(is_public)
        chosen = chosen.where(sa.or_(public, flavors.c.id.in_(_MINE)) if is_public and scoped else public)
    key = SORT_KEYS[sort_key]
    order = [key.desc(), flavors.c.id.desc()] if descending else [key.asc(), flavors.c.id.asc()]
    return (chosen.where(*[_NARROWED[name] for name in narrowed]).order_by(*order)
            .limit(sa.bindparam("most", type_=sa.Integer)))


_SPECS_OF = sa.select(flavor_extra_specs).where(
    flavor_extra_specs.c.flavor_id.in_(sa.bindparam("ids", expanding=True)))


def select(tx: Connection, query: FlavorQuery, limit: int) -> tuple[Flavor, ...]:
    """Return a page of flavors, in two statements (three with a marker). Raises api.PageMarkerNotFound."""
    descending, project_id = query.sort_dir == "desc", query.scope.project_id
    bound = {name: value for name in _NARROWED if (value := getattr(query, name)) is not None}
    sort_key = query.sort_key if query.sort_key in SORT_KEYS else "flavorid"
    chosen = _page(project_id is not None, query.is_public, tuple(bound), sort_key, descending)
    if query.page.marker:
        chosen = chosen.where(_after(tx, SORT_KEYS[sort_key], query.page.marker, descending))
    bound |= {"most": limit} | ({"project_id": project_id} if project_id is not None else {})
    rows = [dict(row._mapping) for row in tx.execute(chosen, bound)]
    specs: dict[int, dict[str, str]] = {}
    for spec in tx.execute(_SPECS_OF, {"ids": [row["id"] for row in rows]}) if rows else ():
        specs.setdefault(spec.flavor_id, {})[spec.key] = spec.value
    return tuple(Flavor(**row, extra_specs=specs.get(row["id"], {})) for row in rows)


def _after(tx: Connection, key: sa.ColumnElement[object], marker: str, descending: bool) -> sa.ColumnElement[bool]:
    row = tx.execute(sa.select(key, flavors.c.id).where(flavors.c.flavorid == marker,
                                                        flavors.c.deleted == 0)).one_or_none()
    if row is None:
        raise errors.api.PageMarkerNotFound(marker=marker)
    value, same = sa.literal(row[0], key.type), row[1]  # typed, so that booleans compare too
    beyond = "<" if descending else ">"
    return sa.or_(key.op(beyond)(value), sa.and_(key == value, flavors.c.id.op(beyond)(same)))


def insert(tx: Connection, flavor: NewFlavor) -> None:
    """Insert a flavor. Raises flavor.NameTaken or flavor.IdTaken. Inserts are serialized, so that the error names the
    right conflict."""
    ledger.lock_owner(tx, "flavors")
    values = {name: getattr(flavor, name) for name in NewFlavor.__struct_fields__ if name in flavors.c}
    values["flavorid"] = flavor.flavorid or str(uuids.uuid4())
    taken = {row.name for row in tx.execute(sa.select(flavors.c.name).where(flavors.c.name == flavor.name,
                                                                           flavors.c.deleted == 0))}
    if taken:
        raise errors.flavor.NameTaken(name=flavor.name)
    with failures.replaced(exc.IntegrityError, lambda _: errors.flavor.IdTaken(flavorid=values["flavorid"])):
        tx.execute(sa.insert(flavors).values(**values, created_at=utc_now()))


def locked_id(tx: Connection, flavorid: str) -> int:
    """Return the flavor's primary key and lock its row. Raises flavor.NotFound."""
    key = tx.execute(sa.select(flavors.c.id).where(flavors.c.flavorid == flavorid, flavors.c.deleted == 0)
                     .with_for_update()).scalar_one_or_none()
    if key is None:
        raise errors.flavor.NotFound(flavor_id=flavorid)
    return int(key)


def update(tx: Connection, flavorid: str, description: str | None) -> None:
    """Update the description, the only mutable field. Raises flavor.NotFound."""
    key = locked_id(tx, flavorid)
    tx.execute(sa.update(flavors).where(flavors.c.id == key).values(description=description, updated_at=utc_now()))


def delete(tx: Connection, flavorid: str) -> None:
    """Mark the flavor as deleted, which frees its id and name; delete its extra specs and access rows. Raises
    flavor.NotFound."""
    key = locked_id(tx, flavorid)
    tx.execute(sa.update(flavors).where(flavors.c.id == key).values(deleted=key, updated_at=utc_now()))
    for table in (flavor_extra_specs, flavor_projects):
        tx.execute(sa.delete(table).where(table.c.flavor_id == key))


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Delete up to ``limit`` rows of flavors deleted long ago; return their number. Servers embed a copy of their
    flavor."""
    changed_at = sa.func.coalesce(flavors.c.updated_at, flavors.c.created_at)
    return delete_some(tx, flavors, sa.and_(flavors.c.deleted != 0, changed_at < later(-older_than_s)), limit)


def set_specs(tx: Connection, flavorid: str, specs: Mapping[str, str]) -> dict[str, str]:
    """Add or replace extra specs; return all of the flavor's specs. Raises flavor.NotFound."""
    key = locked_id(tx, flavorid)
    table = flavor_extra_specs
    tx.execute(sa.delete(table).where(table.c.flavor_id == key, table.c.key.in_(list(specs))))
    insert_all(tx, table, [{"flavor_id": key, "key": name, "value": value} for name, value in specs.items()])
    tx.execute(sa.update(flavors).where(flavors.c.id == key).values(updated_at=utc_now()))
    return {row.key: row.value for row in tx.execute(sa.select(table).where(table.c.flavor_id == key))}


def delete_spec(tx: Connection, flavorid: str, name: str) -> None:
    """Remove an extra spec from a flavor. Raises flavor.NotFound or flavor.NoSuchSpec."""
    key = locked_id(tx, flavorid)
    table = flavor_extra_specs
    if not tx.execute(sa.delete(table).where(table.c.flavor_id == key, table.c.key == name)).rowcount:
        raise errors.flavor.NoSuchSpec(flavor_id=flavorid, key=name)


def change_access(tx: Connection, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
    """Add or remove a project's access; return the projects that have access. Raises flavor.AccessGiven if the project
    already has access, flavor.AccessMissing if it has none."""
    key = locked_id(tx, flavorid)
    table = flavor_projects
    mine = sa.and_(table.c.flavor_id == key, table.c.project_id == project_id)
    if allowed:
        if tx.execute(sa.select(table.c.flavor_id).where(mine)).first():
            raise errors.flavor.AccessGiven(flavor_id=flavorid, project_id=project_id)
        insert_all(tx, table, [{"flavor_id": key, "project_id": project_id}])
    elif not tx.execute(sa.delete(table).where(mine)).rowcount:
        raise errors.flavor.AccessMissing(flavor_id=flavorid, project_id=project_id)
    return tuple(sorted(tx.execute(sa.select(table.c.project_id).where(table.c.flavor_id == key)).scalars()))
