"""Floating addresses: taken from pools, and given to servers; their network hosts are told, and translate them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from nova import context, errors
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
#: How errors are called that say of a host only that it could not be asked.
AWAY = ("rpc.", "network.no_host", "network.host_down", "network.host_late", "network.telling_late")


class Floating(DnsNames):
    """The calls of FloatingCalls, and what boots, moves and deletes mean for floating addresses."""

    @property
    def options(self) -> FloatingOptions:
        """What nova.conf says of floating addresses and of names in DNS."""
        return self.deps.settings.floating

    @property
    def served(self) -> bool:
        """Whether the networks' manager translates addresses: with one that does not, nobody has any."""
        return self.deps.settings.networking.manager.floating

    # -- reads

    def list_floating_pools(self, scope: Scope) -> tuple[FloatingPool, ...]:
        """By name, whosever their addresses are. () where nobody translates addresses."""
        if not self.served:
            return ()
        with self.deps.cell.reading() as tx:
            return floating.pools(tx)

    def list_floating_addresses(self, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
        """The scope's project's; without a project, those that any has (``all_rows``: free ones, too). () where nobody
        translates addresses."""
        if not self.served:
            return ()
        with self.deps.cell.reading() as tx:
            return floating.select(tx, query)

    def get_floating_address(self, id: str, scope: Scope) -> FloatingAddress:
        """floating.NotFound, also outside the scope; floating.BadId."""
        with self.deps.cell.reading() as tx:
            return floating.get(tx, id, scope)

    # -- whose they are

    def allocate_floating_address(self, project_id: str, pool: str | None) -> FloatingAddress:
        """``pool`` None: the configured one. floating.NoSuchPool, floating.PoolEmpty, floating.OverQuota."""
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
        """Of the project; users have none of their own, since nothing says which of them asked for an address. In
        Keystone, only where somebody registered one: it is no resource that must have a limit there."""
        whose = quota.owner(self.deps, project_id, None)
        with self.deps.api.reading() as tx:
            project, _user = quota.effective(self.deps, tx, whose)
        return project.get(RESOURCE, UNLIMITED)

    def release_floating_address(self, id: str, scope: Scope) -> None:
        """Its names in DNS go, too. floating.NotFound, floating.NotYours, floating.AutoAssigned."""
        def release(tx: Connection) -> Changed:
            held = floating.hold(tx, id=id)
            if scope.project_id not in (None, held.row.project_id):
                raise errors.floating.NotYours(address=held.row.address)
            _refuse_assigned(held)
            return floating.let_go(tx, held)
        changed = self.deps.cell.transact(release)
        self.update_hosts(changed.networks)
        self.forget_floating(changed.address.address)
        self._announce_left([changed])
        self._announce("deallocate", changed.address)

    # -- where their packets go

    def associate_floating_address(self, association: FloatingAssociation) -> None:
        """Answered when the network's host was told, unless it is away. floating.NoSuchAddress, floating.NotYours;
        floating.NoFixedAddresses, floating.NotItsFixedAddress; Invalid: the host has not the device. An address that
        was assigned by itself stays where it is, and nothing is raised."""
        self._ask_host(association)

        def associate(tx: Connection) -> tuple[Changed, HeldAddress] | None:
            fixed = floating.hold_fixed(tx, association)
            held = floating.hold(tx, association.address)
            _check_owner(held)
            if held.row.auto_assigned:
                return None
            host = fixed.host if fixed.multi_host else fixed.network_host
            return floating.point(tx, held, fixed, host), held
        done = self.deps.cell.transact(associate)
        if done is None:
            LOG.info("floating address %s was assigned by itself, and stays where it is", association.address)
            return
        changed, before = done
        try:
            self.deps.network_updates.send(changed.networks)
        except errors.NovaError as error:
            if error.code.startswith(AWAY):
                LOG.warning("a network host was not told of %s: %s", association.address, error.message)
            else:
                self._revert(changed, before)
                raise
        if changed.former:
            self._announce_left([changed])
        self._announce("associate", changed.address)

    def _ask_host(self, association: FloatingAssociation) -> None:
        """Whether the host has the device that the address shall stand on. Invalid. One that cannot be asked is no
        reason to refuse: it is told all when it is back."""
        with self.deps.cell.reading() as tx:
            place = floating.place_of(tx, association)
            if place is None or place.host is None or not services.up(
                    tx, services.NETWORK, self.deps.settings.service_down_time, {place.host}):
                return
        try:
            self.deps.network.check_floating_interface(place.host, place.interface)
        except (errors.Unavailable, errors.PeerTooOld) as error:
            LOG.info("host %s could not be asked about its device for %s: %s", place.host, association.address,
                     error.message)

    def _revert(self, changed: Changed, before: HeldAddress) -> None:
        """The host could not translate it: as it was before, unless somebody has changed it again meanwhile."""
        def undo(tx: Connection) -> Changed | None:
            fixed = None
            if changed.former and changed.former_fixed:
                try:
                    fixed = floating.hold_fixed(tx, FloatingAssociation(
                        server_uuid=changed.former, address=changed.address.address,
                        fixed_address=changed.former_fixed))
                except errors.Invalid:  # that server has left meanwhile
                    fixed = None
            held = floating.hold(tx, changed.address.address)
            if held.server_uuid != changed.address.server_uuid or \
                    held.fixed_address != changed.address.fixed_address:
                return None
            return floating.unpoint(tx, held) if fixed is None else floating.point(tx, held, fixed, before.row.host)
        undone = self.deps.cell.transact(undo)
        if undone is not None:
            self.update_hosts(undone.networks)

    def disassociate_floating_address(self, association: FloatingAssociation) -> None:
        """floating.NoSuchAddress, floating.NotYours, floating.NotAssociated, floating.AutoAssigned."""
        def disassociate(tx: Connection) -> Changed:
            held = floating.hold(tx, association.address)
            _check_owner(held)
            if held.server_uuid is None or held.server_uuid != association.server_uuid:
                raise errors.floating.NotAssociated(address=association.address, server=association.server_uuid)
            _refuse_assigned(held)
            return floating.unpoint(tx, held)
        changed = self.deps.cell.transact(disassociate)
        self.update_hosts(changed.networks)
        self._announce_left([changed])

    # -- pools

    def create_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """All of the range, or none: floating.BadRange, floating.Exists. A network's own address and its broadcast
        address are not among them."""
        addresses = address_ranges.usable(range.ip_range)
        pool = range.pool or self.options.default_floating_pool
        self.deps.cell.transact(lambda tx: floating.insert(tx, addresses, pool, range.interface or None))
        return addresses

    def delete_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Those that were deleted; of others nothing is said. floating.BadRange."""
        network, wanted = address_ranges.network(range.ip_range), frozenset(address_ranges.usable(range.ip_range))
        return self.deps.cell.transact(lambda tx: floating.delete_free(tx, network, wanted))

    # -- with a server

    def at_boot(self, tx: Connection, ops: Sequence[Op], bound: Mapping[str, tuple[Interface, ...]]
                ) -> Mapping[str, tuple[Interface, ...]]:
        """The interfaces with the floating addresses that the servers have: one by itself, where it is configured so,
        and those of an earlier try."""
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
        """Before the servers' addresses are given back."""
        left = floating.leave(tx, [op.uuid for op in ops])
        for op in ops:
            self.note_names(op)
            mine = [(one.address, one.project_id) for one in left if one.server_uuid == op.uuid]
            if mine:
                op.note(floating_left=tuple(mine))

    def left(self, ops: Sequence[Op]) -> None:
        """After it, outside the transaction: others are told."""
        for op in ops:
            for address, project in op.progress.floating_left:
                self._announce("disassociate", FloatingAddress(id="", address=address, pool="", project_id=project,
                                                               server_uuid=op.uuid))

    def drop(self, tx: Connection, server_uuid: str, addresses: Iterable[str]) -> None:
        """Some of a server's fixed addresses are about to be nobody's (an interface goes): so are their floating
        ones."""
        floating.leave(tx, [server_uuid], list(addresses))

    def reread(self, tx: Connection, op: Op) -> None:
        """The interfaces as the row has them now, locked: an operation that is about to write them read them when it
        began, and a floating address may have come or gone since."""
        found = floating.interfaces_of(tx, op.uuid)
        if found is not None:
            op.see(interfaces=found)

    def follow(self, tx: Connection, server_uuid: str, host: str) -> None:
        floating.follow(tx, server_uuid, host)

    # -- inside

    def update_hosts(self, networks: Sequence[str]) -> None:
        """Network hosts learn what is so now; one that is away, when it is back."""
        try:
            self.deps.network_updates.send(networks)
        except errors.NovaError as error:
            LOG.warning("a network host was not told of floating addresses that changed: %s", error.message)

    def _announce(self, what: str, address: FloatingAddress) -> None:
        once(self.deps, f"network.floating_ip.{what}", lambda: address)

    def _announce_left(self, changes: Iterable[Changed]) -> None:
        for one in changes:
            if one.former:
                self._announce("disassociate", FloatingAddress(
                    id=one.address.id, address=one.address.address, pool=one.address.pool,
                    project_id=one.address.project_id, server_uuid=one.former))


def _check_owner(held: HeldAddress) -> None:
    """Forbidden, but for the project whose it is and administrators."""
    who = context.current()
    if not who.is_admin and who.project_id != held.row.project_id:
        raise errors.floating.NotYours(address=held.row.address)


def _refuse_assigned(held: HeldAddress) -> None:
    if held.row.auto_assigned:
        raise errors.floating.AutoAssigned(address=held.row.address)


def _first_address(interfaces: Iterable[Interface]) -> str | None:
    return next((one.address for interface in interfaces for one in interface.addresses if one.version == 4), None)


__all__ = ["Floating"]
