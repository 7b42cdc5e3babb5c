"""Floating addresses of Neutron: its external networks are the pools."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping

from nova import errors, failures
from nova.clients.neutron import Neutron
from nova.conductor.engine.deps import Deps
from nova.conductor.neutron.proxies.asking import known_id, ports_of, server_row, translated_errors
from nova.model.base import Scope
from nova.model.network.floating import FloatingAddress, FloatingAssociation, FloatingPool, FloatingQuery
from nova.model.network.ports import NeutronFloating, NeutronNetwork, Port


class FloatingByNeutron:
    """The calls of FloatingCalls that Neutron supports. ``changed``: called with each server whose addresses
    changed."""

    def __init__(self, deps: Deps, client: Neutron, default_pool: str,
                 changed: Callable[[str], None] = lambda uuid: None) -> None:
        self._world, self._client = deps, client
        self._default_pool, self._changed = default_pool, changed

    # -- reads

    def list_floating_pools(self, scope: Scope) -> tuple[FloatingPool, ...]:
        """Return the external networks that the user sees, by name."""
        return tuple(FloatingPool(name=one.name or one.id) for one in self._outside())

    def list_floating_addresses(self, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
        """Return the floating addresses of the scope's project, by address; without a project, all that the user
        sees."""
        project = query.scope.project_id
        found = self._client.floating_ips({"project_id": project} if project else None, as_user=True)
        return self._shown(sorted(found, key=lambda one: ipaddress.ip_address(one.address).packed))

    def get_floating_address(self, id: str, scope: Scope) -> FloatingAddress:
        """Return one floating address. Raises network.BadId; network.Absent, also outside the scope."""
        return self._shown([self._own(id, scope)])[0]

    # -- writes

    def allocate_floating_address(self, project_id: str, pool: str | None) -> FloatingAddress:
        """Allocate a floating address. ``pool``: a network's name or ID; None: the configured one. Raises
        floating.NoPool, floating.SeveralPools, floating.PoolEmpty; network.Refused with Neutron's reason; OverQuota."""
        network = self._pool(pool or self._default_pool)
        try:
            made = self._client.create_floating_ip(floating_network_id=network.id)
        except errors.service.Conflict as error:
            if getattr(error, "neutron_type", "") == "IpAddressGenerationFailure":
                raise errors.floating.PoolEmpty(pool=network.name) from error
            raise errors.network.Refused(reason=error.data.get("reason", error.message)) from error
        return _value(made, {network.id: network.name}, {})

    def release_floating_address(self, id: str, scope: Scope) -> None:
        """Release a floating address. Raises network.BadId; network.Absent, also outside the scope."""
        found = self._own(id, scope)
        holder = self._holders([found]).get(found.port_id or "")
        with translated_errors("Floating IP", id, errors.service.Conflict):
            self._client.delete_floating_ip(found.id)
        if holder:
            self._changed(holder)

    def associate_floating_address(self, association: FloatingAssociation) -> None:
        """Associate a floating address, also if another port has it. Raises network.Absent for an unknown address;
        floating.NoFixedAddress, floating.OtherFixedAddress; network.Refused with Neutron's reason."""
        row = server_row(self._world, association.server_uuid)
        found = self._named(association.address)
        port, fixed = _target(ports_of(self._client, row), association)
        before = self._holders([found]).get(found.port_id or "")
        # no router in between, or the port has another
        with failures.translated((errors.service.Conflict, errors.NotFound),
                lambda error: errors.network.Refused(reason=error.data.get("reason", error.message))):
            self._client.update_floating_ip(found.id, port_id=port.id, fixed_ip_address=fixed)
        for server in {row.uuid, before or row.uuid}:
            self._changed(server)

    def disassociate_floating_address(self, association: FloatingAssociation) -> None:
        """Disassociate a floating address. Raises network.Absent for an unknown address; floating.NotItsOwn."""
        found = self._named(association.address)
        if self._holders([found]).get(found.port_id or "") != association.server_uuid:
            raise errors.floating.NotItsOwn(address=association.address, server=association.server_uuid)
        with translated_errors("Floating IP", association.address, errors.service.Conflict):
            self._client.update_floating_ip(found.id, port_id=None)
        self._changed(association.server_uuid)

    # -- internals

    def _outside(self) -> tuple[NeutronNetwork, ...]:
        found: tuple[NeutronNetwork, ...] = self._client.networks({"router:external": "true"}, as_user=True)
        return found

    def _pool(self, named: str) -> NeutronNetwork:
        outside = self._outside()
        found = [one for one in outside if one.id == named] or [one for one in outside if one.name == named]
        if not found:
            raise errors.floating.NoPool(pool=named)
        if len(found) > 1:
            raise errors.floating.SeveralPools(pool=named)
        return found[0]

    def _own(self, id: str, scope: Scope) -> NeutronFloating:
        with translated_errors("Floating IP", id):
            found: NeutronFloating = self._client.floating_ip(known_id(id, "Floating IP"))
        if scope.project_id not in (None, found.project_id):
            raise errors.network.Absent(what="Floating IP", id=id)
        return found

    def _named(self, address: str) -> NeutronFloating:
        found = self._client.floating_ips({"floating_ip_address": address}, as_user=True)
        if not found:
            raise errors.network.Absent(what="Floating IP", id=address)
        only: NeutronFloating = found[0]
        return only

    def _holders(self, found: Iterable[NeutronFloating]) -> dict[str, str]:
        """Return server by port, from the addresses; with an older Neutron, from one more call."""
        known = {one.port_id: one.device_id for one in found if one.port_id and one.device_id}
        unknown = [one.port_id for one in found if one.port_id and not one.device_id]
        asked = {port.id: port.device_id for port in self._client.ports_by_id(unknown)} if unknown else {}
        return {**known, **asked}

    def _shown(self, found: Iterable[NeutronFloating]) -> tuple[FloatingAddress, ...]:
        rows = list(found)
        names = {one.id: one.name for one in self._outside()} if rows else {}
        holders = self._holders(rows)
        return tuple(_value(one, names, holders) for one in rows)


def _value(one: NeutronFloating, names: Mapping[str, str], holders: Mapping[str, str]) -> FloatingAddress:
    return FloatingAddress(id=one.id, address=one.address, pool=names.get(one.network_id) or one.network_id,
                           project_id=one.project_id or None, fixed_address=one.fixed_address,
                           server_uuid=holders.get(one.port_id or "") or None)


def _target(ports: Iterable[Port], association: FloatingAssociation) -> tuple[Port, str]:
    """Return the port and its fixed address for a floating address."""
    wanted = association.fixed_address
    places = [(port, one.address) for port in ports for one in port.addresses]
    for port, address in places:
        if address == wanted or (wanted is None and ipaddress.ip_address(address).version == 4):
            return port, address
    if wanted is None:
        raise errors.floating.NoFixedAddress(server=association.server_uuid)
    raise errors.floating.OtherFixedAddress(address=wanted, server=association.server_uuid)
