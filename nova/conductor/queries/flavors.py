"""Flavors and keypairs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec

from nova import context
from nova.conductor.engine import quota
from nova.conductor.engine.deps import Deps
from nova.db import flavors, keypairs
from nova.db.engine import Connection
from nova.db.types import AnyColumn
from nova.model.base import Scope
from nova.model.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.keypairs import Keypair, KeypairQuery, NewKeypair


def capped(limit: int | None, most: int) -> int:
    return most if limit is None else min(limit, most)


class Flavors:
    """The flavor calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        limit = capped(query.page.limit, self.deps.settings.max_limit)
        if limit <= 0:
            return ()
        with self.deps.api.reading() as tx:
            return flavors.select(tx, query, limit)

    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        with self.deps.api.reading() as tx:
            return flavors.get(tx, flavorid, scope)

    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        if flavor.flavorid is None:
            flavor = msgspec.structs.replace(flavor, flavorid=str(uuid.uuid4()))
        return self._write(str(flavor.flavorid), lambda tx: flavors.insert(tx, flavor))

    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        return self._write(flavorid, lambda tx: flavors.update(tx, flavorid, description))

    def _write(self, flavorid: str, write: AnyColumn) -> Flavor:
        def both(tx: Connection) -> Flavor:
            write(tx)
            return flavors.get(tx, flavorid, Scope())
        return self.deps.api.transact(both)

    def delete_flavor(self, flavorid: str) -> None:
        self.deps.api.transact(lambda tx: flavors.delete(tx, flavorid))

    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        return self.deps.api.transact(lambda tx: flavors.set_specs(tx, flavorid, specs))

    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        self.deps.api.transact(lambda tx: flavors.delete_spec(tx, flavorid, key))

    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        return self.deps.api.transact(lambda tx: flavors.change_access(tx, flavorid, project_id, allowed))


class Keypairs:
    """The keypair calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        limit = capped(query.limit, self.deps.settings.max_limit)
        if limit <= 0:
            return ()
        with self.deps.api.reading() as tx:
            return keypairs.select(tx, query, limit)

    def get_keypair(self, user_id: str, name: str) -> Keypair:
        with self.deps.api.reading() as tx:
            return keypairs.get(tx, user_id, name)

    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        whose = quota.owner(self.deps, context.current().project_id, keypair.user_id)

        def write(tx: Connection) -> Keypair:
            quota.check_keypair(self.deps, tx, whose, keypair.user_id, keypair.name)
            keypairs.insert(tx, keypair)
            return keypairs.get(tx, keypair.user_id, keypair.name)
        return self.deps.api.transact(write)

    def delete_keypair(self, user_id: str, name: str) -> None:
        self.deps.api.transact(lambda tx: keypairs.delete(tx, user_id, name))
