"""Names of traits and resource classes: standard ones, and custom ones created through the API or reported by hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models.api import allocations, custom_classes, custom_traits, inventories, provider_traits
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import utc_now
from nova.model.placement.providers import RequestGroup, TraitQuery
from nova.model.placement.traits import RESOURCE_CLASSES, TRAITS, is_resource_class, is_trait

CUSTOM = "CUSTOM_"


def _custom(name: str, standard: frozenset[str], what: str) -> None:
    if name in standard:
        raise errors.placement.NameStandard(name=name, what=what)
    is_name, most = (is_trait, 255) if what == "trait" else (is_resource_class, 64)
    if not is_name(name) or len(name) > most:
        raise errors.placement.NameInvalid(name=name, what=what, most=most)


def _insert(tx: Connection, table: sa.Table, name: str) -> bool:
    """Insert a custom name. False if it exists."""
    if tx.execute(sa.select(table.c.name).where(table.c.name == name)).first():
        return False
    insert_ignoring(tx, table, [{"name": name, "created_at": utc_now()}])
    return True


def _reported(column: sa.Column[str]) -> sa.Select[str]:
    """Select the custom names in use by providers, recorded or not. The range condition uses an index."""
    return sa.select(column).where(column >= CUSTOM, column < "CUSTOM`").distinct()


def _known(tx: Connection, wanted: Collection[str], table: sa.Table, column: sa.Column[object]) -> set[str]:
    """Return the existing names among these custom names."""
    if not wanted:
        return set()
    return set(tx.execute(sa.select(table.c.name).where(table.c.name.in_(list(wanted))).union(
        sa.select(column).where(column.in_(list(wanted))))).scalars())


# -- traits

def traits(tx: Connection, query: TraitQuery, disabled: bool = False) -> tuple[str, ...]:
    """Return trait names, sorted. ``disabled``: some host is disabled, so that its node has the trait
    COMPUTE_STATUS_DISABLED."""
    found = TRAITS | set(tx.execute(sa.select(custom_traits.c.name).union(_reported(provider_traits.c.trait)))
                         .scalars())
    if query.associated is not None:
        held = set(tx.execute(sa.select(provider_traits.c.trait).distinct()).scalars())
        held |= {"COMPUTE_STATUS_DISABLED"} if disabled else set()
        found = found & held if query.associated else found - held
    if query.names is not None:
        found = found & set(query.names)
    return tuple(sorted(name for name in found if name.startswith(query.prefix or "")))


def unknown_traits(tx: Connection, wanted: Collection[str]) -> list[str]:
    """Return the names in ``wanted`` that are neither standard, nor created, nor on any provider; sorted."""
    custom = set(wanted) - TRAITS
    return sorted(custom - _known(tx, custom, custom_traits, provider_traits.c.trait))


def create_trait(tx: Connection, name: str) -> bool:
    """Create a custom trait. False if it exists. Raises placement.NameInvalid, placement.NameStandard."""
    _custom(name, TRAITS, "trait")
    return _insert(tx, custom_traits, name)


def delete_trait(tx: Connection, name: str) -> None:
    """Delete a custom trait. Raises placement.NameStandard, placement.NameNotFound, placement.NameInuse."""
    if name in TRAITS:
        raise errors.placement.NameStandard(name=name, what="trait")
    if tx.execute(sa.select(provider_traits.c.trait).where(provider_traits.c.trait == name).limit(1)).first():
        raise errors.placement.NameInuse(name=name, what="trait")
    if not tx.execute(sa.delete(custom_traits).where(custom_traits.c.name == name)).rowcount:
        raise errors.placement.NameNotFound(name=name, what="trait")


def check(tx: Connection, groups: Iterable[RequestGroup], roots: Collection[str] = ()) -> None:
    """Check the traits and classes of a request, in two statements, only for custom ones. Raises
    placement.NameUnknown."""
    groups = list(groups)
    asked = {trait for group in groups for any_of in group.required for trait in any_of}
    asked.update(roots, (trait for group in groups for trait in group.forbidden))
    for what, names in (("trait", unknown_traits(tx, asked)),
                        ("resource class", unknown_classes(tx, {name for one in groups for name in one.resources}))):
        if names:
            raise errors.placement.NameUnknown(what=what, names=", ".join(names))


# -- resource classes

def classes(tx: Connection) -> tuple[str, ...]:
    """Return standard classes, then created ones in creation order, then those known only from inventories."""
    made = list(tx.execute(sa.select(custom_classes.c.name).order_by(custom_classes.c.created_at,
                                                                     custom_classes.c.name)).scalars())
    reported = set(tx.execute(_reported(inventories.c.resource_class)).scalars()) - set(made)
    return (*sorted(RESOURCE_CLASSES), *made, *sorted(reported))


def unknown_classes(tx: Connection, wanted: Collection[str]) -> Sequence[str]:
    """Return the names in ``wanted`` that are neither standard, nor created, nor in any inventory; sorted."""
    custom = set(wanted) - RESOURCE_CLASSES
    return sorted(custom - _known(tx, custom, custom_classes, inventories.c.resource_class))


def create_class(tx: Connection, name: str) -> bool:
    """Create a custom resource class. False if it exists. Raises placement.NameInvalid, placement.NameStandard."""
    _custom(name, RESOURCE_CLASSES, "resource class")
    return _insert(tx, custom_classes, name)


def rename_class(tx: Connection, name: str, new_name: str) -> None:
    """Rename a custom class, with its inventories and allocations. Raises placement.NameStandard,
    placement.NameInvalid, placement.NameNotFound, placement.NameTaken."""
    if name in RESOURCE_CLASSES:
        raise errors.placement.NameStandard(name=name, what="resource class")
    _custom(new_name, RESOURCE_CLASSES, "resource class")
    with failures.replaced(exc.IntegrityError, lambda _: errors.placement.NameTaken(name=new_name)):
        changed = tx.execute(sa.update(custom_classes).where(custom_classes.c.name == name).values(name=new_name))
    if not changed.rowcount:
        raise errors.placement.NameNotFound(name=name, what="resource class")
    for table in (inventories, allocations):
        tx.execute(sa.update(table).where(table.c.resource_class == name).values(resource_class=new_name))


def delete_class(tx: Connection, name: str) -> None:
    """Delete a custom class. Raises placement.NameStandard, placement.NameNotFound, placement.NameInuse."""
    if name in RESOURCE_CLASSES:
        raise errors.placement.NameStandard(name=name, what="resource class")
    for table in (inventories, allocations):
        if tx.execute(sa.select(table.c.resource_class).where(table.c.resource_class == name).limit(1)).first():
            raise errors.placement.NameInuse(name=name, what="resource class")
    if not tx.execute(sa.delete(custom_classes).where(custom_classes.c.name == name)).rowcount:
        raise errors.placement.NameNotFound(name=name, what="resource class")
