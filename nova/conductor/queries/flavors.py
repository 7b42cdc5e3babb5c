"""Flavors and keypairs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec

from nova import context
from nova.conductor.engine.deps import Deps
from nova.conductor.quota import quota
from nova.conductor.quota.projects import check_project
from nova.db import flavors, keypairs
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.server.keypairs import Keypair, KeypairQuery, NewKeypair


def capped(limit: int | None, most: int) -> int:
    """As many rows as were asked for, and no more than ``most`` ([api]max_limit); None asks for as many as may be."""
    return most if limit is None else min(limit, most)


class Flavors:
    """The flavor calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        """In the order that the query asks for. api.PageMarkerNotFound."""
        limit = capped(query.page.limit, self.deps.settings.max_limit)
        if limit <= 0:
            return ()
        with self.deps.api.reading() as tx:
            return flavors.select(tx, query, limit)

    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        """flavor.NotFound, also for a private flavor that the scope's project has no access to."""
        with self.deps.api.reading() as tx:
            return flavors.get(tx, flavorid, scope)

    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        """A ``flavorid`` of None is made up: a uuid. flavor.IdTaken, flavor.NameTaken."""
        if flavor.flavorid is None:
            flavor = msgspec.structs.replace(flavor, flavorid=str(uuid.uuid4()))
        return self._write(str(flavor.flavorid), lambda tx: flavors.insert(tx, flavor))

    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        """``description`` None takes it away. flavor.NotFound. Servers keep the flavor as they were made of it."""
        return self._write(flavorid, lambda tx: flavors.update(tx, flavorid, description))

    def _write(self, flavorid: str, write: AnyColumn) -> Flavor:
        def both(tx: Connection) -> Flavor:
            write(tx)
            return flavors.get(tx, flavorid, Scope())
        return self.deps.api.transact(both)

    def delete_flavor(self, flavorid: str) -> None:
        """flavor.NotFound. Its name and id are free again."""
        self.deps.api.transact(lambda tx: flavors.delete(tx, flavorid))

    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        """Keys that are not named stay. flavor.NotFound."""
        return self.deps.api.transact(lambda tx: flavors.set_specs(tx, flavorid, specs))

    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        """flavor.NotFound, flavor.NoSuchSpec."""
        self.deps.api.transact(lambda tx: flavors.delete_spec(tx, flavorid, key))

    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        """flavor.NotFound, flavor.AccessGiven, flavor.AccessMissing; service.NotAProject: of access that is given, so
        that what a project left behind can be taken away."""
        if allowed:
            check_project(self.deps, project_id)
        return self.deps.api.transact(lambda tx: flavors.change_access(tx, flavorid, project_id, allowed))


class Keypairs:
    """The keypair calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        """In the order of their names. api.PageMarkerNotFound."""
        limit = capped(query.limit, self.deps.settings.max_limit)
        if limit <= 0:
            return ()
        with self.deps.api.reading() as tx:
            return keypairs.select(tx, query, limit)

    def get_keypair(self, user_id: str, name: str) -> Keypair:
        """server.KeypairNotFound."""
        with self.deps.api.reading() as tx:
            return keypairs.get(tx, user_id, name)

    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        """server.KeypairTaken; quota.TooMany: the user has as many as may be."""
        whose = quota.owner(self.deps, context.current().project_id, keypair.user_id)

        def write(tx: Connection) -> Keypair:
            quota.check_keypair(self.deps, tx, whose, keypair.user_id, keypair.name)
            keypairs.insert(tx, keypair)
            return keypairs.get(tx, keypair.user_id, keypair.name)
        return self.deps.api.transact(write)

    def delete_keypair(self, user_id: str, name: str) -> None:
        """server.KeypairNotFound. Servers keep the key that they were made with."""
        self.deps.api.transact(lambda tx: keypairs.delete(tx, user_id, name))
