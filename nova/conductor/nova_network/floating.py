"""Floating IPs of nova-network: allocate them from pools, associate them with servers, disassociate and release them.
Network hosts are notified and translate the addresses."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence

from nova import context, errors, failures
from nova.conductor.engine.announce.resources import once
from nova.conductor.engine.operation import Op
from nova.conductor.networking.network_options import FloatingOptions
from nova.conductor.nova_network.dns import DnsNames
from nova.conductor.quota import quota
from nova.db.host import services
from nova.db.network import floating, network_quota
from nova.db.network.floating import Changed, HeldAddress
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.network import address_ranges
from nova.model.network.floating import (
    FloatingAddress,
    FloatingAssociation,
    FloatingPool,
    FloatingQuery,
    FloatingRange,
)
from nova.model.network.networks import Interface
from nova.model.quota.quotas import UNLIMITED

LOG = logging.getLogger(__name__)

RESOURCE = "floating_ips"
#: Prefixes of error codes that only mean that the host could not be reached.
AWAY = ("rpc.", "network.no_host", "network.host_down", "network.host_late", "network.telling_late")


class Floating(DnsNames):
    """The calls of FloatingCalls, and the effects of boots, moves and deletes on floating addresses."""

    @property
    def options(self) -> FloatingOptions:
        """Options of floating addresses and DNS names, from nova.conf."""
        return self.deps.settings.floating

    @property
    def served(self) -> bool:
        """True if the networks' manager translates addresses; without translation, no project has floating
        addresses."""
        return self.deps.settings.networking.manager.floating

    # -- reads

    def list_floating_pools(self, scope: Scope) -> tuple[FloatingPool, ...]:
        """Return all pools by name, for any project. Empty if the manager does not translate addresses."""
        if not self.served:
            return ()
        with self.deps.cell.reading() as tx:
            return floating.pools(tx)

    def list_floating_addresses(self, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
        """Return the addresses of the scope's project; without a project, all allocated ones (``all_rows``: free ones
        too). Empty if the manager does not translate addresses."""
        if not self.served:
            return ()
        with self.deps.cell.reading() as tx:
            return floating.select(tx, query)

    def get_floating_address(self, id: str, scope: Scope) -> FloatingAddress:
        """Return one floating address. Raises floating.NotFound, also outside the scope; floating.BadId."""
        with self.deps.cell.reading() as tx:
            return floating.get(tx, id, scope)

    # -- allocation

    def allocate_floating_address(self, project_id: str, pool: str | None) -> FloatingAddress:
        """Allocate an address from a pool (None: the configured one). Raises floating.NoSuchPool, floating.PoolEmpty,
        floating.OverQuota."""
        name = pool or self.options.default_floating_pool
        if not self.served:
            raise errors.floating.NoSuchPool(pool=name)
        limit = self._limit(project_id)

        def take(tx: Connection) -> FloatingAddress:
            if limit != UNLIMITED:
                network_quota.lock_owner(tx, project_id)
                if not quota.fits(limit, floating.count(tx, project_id), 1):
                    raise errors.floating.OverQuota()
            [taken] = floating.take(tx, name, project_id)
            return taken
        taken = self.deps.cell.transact(take)
        self._announce("allocate", taken)
        return taken

    def _limit(self, project_id: str) -> int:
        """Return the project's limit. Users have no limit, because the requesting user is not recorded. In Keystone the
        limit is optional."""
        whose = quota.owner(self.deps, project_id, None)
        with self.deps.api.reading() as tx:
            project, _user = quota.effective(self.deps, tx, whose)
        return project.get(RESOURCE, UNLIMITED)

    def release_floating_address(self, id: str, scope: Scope) -> None:
        """Release an address and delete its DNS names. Raises floating.NotFound, floating.NotYours,
        floating.AutoAssigned."""
        def release(tx: Connection) -> Changed:
            held = floating.hold(tx, id=id)
            if scope.project_id not in (None, held.row.project_id):
                raise errors.floating.NotYours(address=held.row.address)
            _refuse_assigned(held)
            return floating.release(tx, held)
        changed = self.deps.cell.transact(release)
        self.update_hosts(changed.networks)
        self.forget_floating(changed.address.address)
        self._announce_left([changed])
        self._announce("deallocate", changed.address)

    # -- association

    def associate_floating_address(self, association: FloatingAssociation) -> None:
        """Associate an address with a server. Returns when the network's host was notified, or is unreachable. An
        auto-assigned address stays where it is, without an error. Raises floating.NoSuchAddress, floating.NotYours;
        floating.NoFixedAddresses, floating.NotItsFixedAddress; Invalid if the host does not have the device."""
        self._ask_host(association)

        def associate(tx: Connection) -> tuple[Changed, HeldAddress] | None:
            fixed = floating.hold_fixed(tx, association)
            held = floating.hold(tx, association.address)
            _check_owner(held)
            if held.row.auto_assigned:
                return None
            host = fixed.host if fixed.multi_host else fixed.network_host
            return floating.associate(tx, held, fixed, host), held
        done = self.deps.cell.transact(associate)
        if done is None:
            LOG.info("floating address %s was auto-assigned; left it unchanged", association.address)
            return
        changed, before = done
        try:
            self.deps.network_updates.send(changed.networks)
        except errors.NovaError as error:
            if error.code.startswith(AWAY):
                LOG.warning("could not notify a network host of %s: %s", association.address, error.message)
            else:
                self._revert(changed, before)
                raise
        if changed.former:
            self._announce_left([changed])
        self._announce("associate", changed.address)

    def _ask_host(self, association: FloatingAssociation) -> None:
        """Check that the host has the device for the address. An unreachable host passes: it gets all addresses when it
        is back. Raises Invalid."""
        with self.deps.cell.reading() as tx:
            place = floating.place_of(tx, association)
            if place is None or place.host is None or not services.up(
                    tx, services.NETWORK, self.deps.settings.service_down_time, {place.host}):
                return
        with failures.best_effort(LOG, "could not check the device on host %s for %s: %s", place.host,
                association.address, on=(errors.Unavailable, errors.PeerTooOld), level=logging.INFO):
            self.deps.network.check_floating_interface(place.host, place.interface)

    def _revert(self, changed: Changed, before: HeldAddress) -> None:
        """Restore the previous association after the host could not translate the address, unless it was changed again
        meanwhile."""
        def undo(tx: Connection) -> Changed | None:
            fixed = None
            if changed.former and changed.former_fixed:
                fixed = None
                with contextlib.suppress(errors.Invalid):  # the former server is gone
                    fixed = floating.hold_fixed(tx, FloatingAssociation(
                        server_uuid=changed.former, address=changed.address.address,
                        fixed_address=changed.former_fixed))
            held = floating.hold(tx, changed.address.address)
            if held.server_uuid != changed.address.server_uuid or \
                    held.fixed_address != changed.address.fixed_address:
                return None
            if fixed is None:
                return floating.disassociate(tx, held)
            return floating.associate(tx, held, fixed, before.row.host)
        undone = self.deps.cell.transact(undo)
        if undone is not None:
            self.update_hosts(undone.networks)

    def disassociate_floating_address(self, association: FloatingAssociation) -> None:
        """Disassociate an address. Raises floating.NoSuchAddress, floating.NotYours, floating.NotAssociated,
        floating.AutoAssigned."""
        def disassociate(tx: Connection) -> Changed:
            held = floating.hold(tx, association.address)
            _check_owner(held)
            if held.server_uuid is None or held.server_uuid != association.server_uuid:
                raise errors.floating.NotAssociated(address=association.address, server=association.server_uuid)
            _refuse_assigned(held)
            return floating.disassociate(tx, held)
        changed = self.deps.cell.transact(disassociate)
        self.update_hosts(changed.networks)
        self._announce_left([changed])

    # -- pools

    def create_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Create all addresses of the range, or none, without the network's own and broadcast addresses. Raises
        floating.BadRange, floating.Exists."""
        addresses = address_ranges.usable(range.ip_range)
        pool = range.pool or self.options.default_floating_pool
        self.deps.cell.transact(lambda tx: floating.insert(tx, addresses, pool, range.interface or None))
        return addresses

    def delete_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Delete the free addresses of a range and return them. Raises floating.BadRange."""
        network, wanted = address_ranges.network(range.ip_range), frozenset(address_ranges.usable(range.ip_range))
        return self.deps.cell.transact(lambda tx: floating.delete_free(tx, network, wanted))

    # -- a server's life

    def at_boot(self, tx: Connection, ops: Sequence[Op], bound: Mapping[str, tuple[Interface, ...]]
                ) -> Mapping[str, tuple[Interface, ...]]:
        """Return the interfaces with the servers' floating addresses: an auto-assigned one, if configured, and the ones
        from an earlier try."""
        assigns = self.options.auto_assign_floating_ip and self.served
        if not assigns and not any(op.server.interfaces for op in ops):
            return bound
        if assigns:
            first = {op.uuid: (op.server.project_id, address) for op in ops
                     if (address := _first_address(bound.get(op.uuid, ()))) is not None}
            if first:
                floating.assign(tx, self.options.default_floating_pool, first)
        held = floating.of_servers(tx, [op.uuid for op in ops])
        return {uuid: floating.with_floating(interfaces, held.get(uuid, {})) for uuid, interfaces in bound.items()}

    def at_leave(self, tx: Connection, ops: Sequence[Op]) -> None:
        """Release the servers' floating addresses, before their fixed addresses are released."""
        left = floating.leave(tx, [op.uuid for op in ops])
        for op in ops:
            self.note_names(op)
            mine = [(one.address, one.project_id) for one in left if one.server_uuid == op.uuid]
            if mine:
                op.note(floating_left=tuple(mine))

    def left(self, ops: Sequence[Op]) -> None:
        """Announce the released floating addresses, after the transaction."""
        for op in ops:
            for address, project in op.progress.floating_left:
                self._announce("disassociate", FloatingAddress(id="", address=address, pool="", project_id=project,
                                                               server_uuid=op.uuid))

    def drop(self, tx: Connection, server_uuid: str, addresses: Iterable[str]) -> None:
        """Release the floating addresses of fixed addresses that are about to be released (a detached interface)."""
        floating.leave(tx, [server_uuid], list(addresses))

    def reread(self, tx: Connection, op: Op) -> None:
        """Refresh the operation's interfaces from the locked row. The operation read them when it began, and floating
        addresses may have changed since."""
        found = floating.interfaces_of(tx, op.uuid)
        if found is not None:
            op.see(interfaces=found)

    def follow(self, tx: Connection, server_uuid: str, host: str) -> None:
        floating.follow(tx, server_uuid, host)

    # -- internals

    def update_hosts(self, networks: Sequence[str]) -> None:
        """Notify network hosts of the current state; an unreachable one reads it when it is back."""
        with failures.best_effort(LOG, "could not notify a network host of changed floating addresses: %s"):
            self.deps.network_updates.send(networks)

    def _announce(self, what: str, address: FloatingAddress) -> None:
        once(self.deps, f"network.floating_ip.{what}", lambda: address)

    def _announce_left(self, changes: Iterable[Changed]) -> None:
        for one in changes:
            if one.former:
                self._announce("disassociate", FloatingAddress(
                    id=one.address.id, address=one.address.address, pool=one.address.pool,
                    project_id=one.address.project_id, server_uuid=one.former))


def _check_owner(held: HeldAddress) -> None:
    """Check that the caller's project has the address; administrators pass. Raises Forbidden."""
    who = context.current()
    if not who.is_admin and who.project_id != held.row.project_id:
        raise errors.floating.NotYours(address=held.row.address)


def _refuse_assigned(held: HeldAddress) -> None:
    if held.row.auto_assigned:
        raise errors.floating.AutoAssigned(address=held.row.address)


def _first_address(interfaces: Iterable[Interface]) -> str | None:
    return next((one.address for interface in interfaces for one in interface.addresses if one.version == 4), None)


__all__ = ["Floating"]
