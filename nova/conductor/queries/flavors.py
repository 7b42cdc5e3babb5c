"""Queries and changes of flavors and keypairs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

import msgspec

from nova import context
from nova.conductor.engine.deps import Deps
from nova.conductor.quota import quota
from nova.conductor.quota.projects import check_project
from nova.db import flavors, keypairs
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.server.keypairs import Keypair, KeypairQuery, NewKeypair


def capped(limit: int | None, most: int) -> int:
    """Return the requested number of rows, at most ``most`` ([api]max_limit); None: ``most``."""
    return most if limit is None else min(limit, most)


class Flavors:
    """The flavor calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        """Return flavors in the query's order. Raises api.PageMarkerNotFound."""
        limit = capped(query.page.limit, self.deps.settings.max_limit)
        if limit <= 0:
            return ()
        with self.deps.api.reading() as tx:
            return flavors.select(tx, query, limit)

    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        """Return a flavor. Raises flavor.NotFound, also for a private flavor that the scope's project has no access
        to."""
        with self.deps.api.reading() as tx:
            return flavors.get(tx, flavorid, scope)

    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        """Create a flavor; a ``flavorid`` of None gets a UUID. Raises flavor.IdTaken, flavor.NameTaken."""
        if flavor.flavorid is None:
            flavor = msgspec.structs.replace(flavor, flavorid=str(uuid.uuid4()))
        return self._write(str(flavor.flavorid), lambda tx: flavors.insert(tx, flavor))

    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        """Change the description; None removes it. Servers keep their copy of the flavor. Raises flavor.NotFound."""
        return self._write(flavorid, lambda tx: flavors.update(tx, flavorid, description))

    def _write(self, flavorid: str, write: Callable[[Connection], object]) -> Flavor:
        def both(tx: Connection) -> Flavor:
            write(tx)
            return flavors.get(tx, flavorid, Scope())
        return self.deps.api.transact(both)

    def delete_flavor(self, flavorid: str) -> None:
        """Delete a flavor; its name and id may be used again. Raises flavor.NotFound."""
        self.deps.api.transact(lambda tx: flavors.delete(tx, flavorid))

    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        """Set extra specs and keep all others. Raises flavor.NotFound."""
        return self.deps.api.transact(lambda tx: flavors.set_specs(tx, flavorid, specs))

    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        """Delete an extra spec. Raises flavor.NotFound, flavor.NoSuchSpec."""
        self.deps.api.transact(lambda tx: flavors.delete_spec(tx, flavorid, key))

    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        """Add or remove a project's access to a flavor.

        Raises flavor.NotFound, flavor.AccessGiven, flavor.AccessMissing; service.NotAProject only when access is added,
        so that a deleted project's access can be removed.
        """
        if allowed:
            check_project(self.deps, project_id)
        return self.deps.api.transact(lambda tx: flavors.change_access(tx, flavorid, project_id, allowed))


class Keypairs:
    """The keypair calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        """Return a user's keypairs, ordered by name. Raises api.PageMarkerNotFound."""
        limit = capped(query.limit, self.deps.settings.max_limit)
        if limit <= 0:
            return ()
        with self.deps.api.reading() as tx:
            return keypairs.select(tx, query, limit)

    def get_keypair(self, user_id: str, name: str) -> Keypair:
        """Return a keypair. Raises server.KeypairNotFound."""
        with self.deps.api.reading() as tx:
            return keypairs.get(tx, user_id, name)

    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        """Create a keypair. Raises server.KeypairTaken; quota.TooMany if the user has reached the limit."""
        whose = quota.owner(self.deps, context.current().project_id, keypair.user_id)

        def write(tx: Connection) -> Keypair:
            quota.check_keypair(self.deps, tx, whose, keypair.user_id, keypair.name)
            keypairs.insert(tx, keypair)
            return keypairs.get(tx, keypair.user_id, keypair.name)
        return self.deps.api.transact(write)

    def delete_keypair(self, user_id: str, name: str) -> None:
        """Delete a keypair; servers keep the public key they were created with. Raises server.KeypairNotFound."""
        self.deps.api.transact(lambda tx: keypairs.delete(tx, user_id, name))
