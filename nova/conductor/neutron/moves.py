"""Ports of a server that moves from one host to another.

With the extension ``binding-extended`` a port has one binding for each host, one of which is active: a live migration
creates the second one beforehand. Without it the port's only binding is updated when the guest has arrived.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from nova import errors
from nova.clients.neutron import BINDINGS
from nova.conductor.engine.operation import Op
from nova.conductor.neutron import views
from nova.conductor.neutron.binding import Binder, given_ids, known_ids
from nova.conductor.neutron.port_resources import ClaimedPorts, profile_of
from nova.model.network.networks import Interface
from nova.model.network.ports import ACTIVE, FAILED, Port, PortBinding, belongs

LOG = logging.getLogger(__name__)


class Mover:
    def __init__(self, binder: Binder) -> None:
        self._binder, self._client = binder, binder.client

    # -- binding to a single host

    def bind_to(self, op: Op, host: str) -> None:
        claimed = ClaimedPorts(self._binder.deps, op, host)
        ports = [self._bound(op, port, host, claimed) for port in self._ports(op)]
        self._write(op, ports)
        failed = next((port for port in ports if port.vif_type == FAILED), None)
        if failed is None:
            return
        if not op.progress.committed:
            raise errors.network.BindingFailed(port_id=failed.id, host=host)
        LOG.error("could not bind port %s on host %s, where its server is", failed.id, host,
                  extra={"server": op.uuid})

    def _bound(self, op: Op, port: Port, host: str, claimed: ClaimedPorts) -> Port:
        bindings = self._bindings(port)
        profile = profile_of(port.profile, claimed.allocation(port.id), claimed.device(port.id))
        if port.host != host and any(one.host == host for one in bindings):
            self._client.activate_binding(port.id, host)
            port = self._client.port(port.id)
        fields: dict[str, Any] = {"binding:host_id": host} if port.host != host else {}
        if profile != dict(port.profile):  # sent only if changed: Neutron requires one more role for it
            fields["binding:profile"] = profile
        if fields:
            port = self._client.update_port(port.id, fields)
        elif port.vif_type == FAILED:  # unbind first, as an equal update changes nothing
            self._client.update_port(port.id, {"binding:host_id": ""})
            port = self._client.update_port(port.id, {"binding:host_id": host})
        for one in bindings:
            if one.host != host:
                self._client.delete_binding(port.id, one.host)
        return port

    def _bindings(self, port: Port) -> Sequence[PortBinding]:
        """Return the port's bindings; empty without the extension, or if the port is unbound or gone."""
        if not (self._client.has(BINDINGS) and port.host):
            return ()
        with contextlib.suppress(errors.service.ResourceNotFound):
            return self._client.bindings(port.id)
        return ()

    def _ports(self, op: Op) -> list[Port]:
        """Return the server's ports, without ports of other projects that name it."""
        known = known_ids(op)
        return [port for port in self._client.ports_of([op.uuid])
                if belongs(port, op.uuid, op.server.project_id, known)]

    def _write(self, op: Op, ports: Sequence[Port]) -> None:
        """Write the ports as interfaces into the server's row; facts beyond the bindings are kept."""
        before = {one.id: one for one in op.server.interfaces or ()}
        around = self._binder.around(ports)
        given = given_ids(op)
        found = []
        for port in ports:
            old = before.get(port.id)
            new = views.interface(port, around, old.tag if old else None, given=port.id in given)
            found.append(views.keeping(new, old) if old else new)
        lost = [one for one in before.values() if one.id not in {port.id for port in ports}]
        op.write(interfaces=views.ordered([*found, *lost], op.server.interfaces or (),
                                          op.server.requested_networks or ()))

    # -- a live migration's second binding

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        interfaces: tuple[Interface, ...] = op.server.interfaces or ()
        if not self._client.has(BINDINGS):
            return interfaces
        claimed = ClaimedPorts(self._binder.deps, op, host)
        there = {port.id: self._second(port, host, claimed) for port in self._ports(op)}
        for port_id, binding in there.items():
            if binding.vif_type == FAILED:
                raise errors.network.BindingFailed(port_id=port_id, host=host)
        return tuple(views.bound_as(one, there[one.id], self._binder.ovs_bridge) if one.id in there else one
                     for one in interfaces)

    def _second(self, port: Port, host: str, claimed: ClaimedPorts) -> PortBinding:
        found = {one.host: one for one in self._client.bindings(port.id)}
        for one in found.values():
            if one.host != host and one.status != ACTIVE:  # left by an arrival that was never abandoned
                self._client.delete_binding(port.id, one.host)
        if host in found:
            if found[host].vif_type != FAILED or found[host].status == ACTIVE:
                return found[host]
            self._client.delete_binding(port.id, host)
        profile = profile_of(port.profile, claimed.allocation(port.id), claimed.device(port.id))
        try:
            return self._client.create_binding(port.id, host, port.vnic_type, profile)
        except (errors.service.Conflict, errors.Unavailable):  # created by an attempt whose answer was lost
            again = {one.host: one for one in self._client.bindings(port.id)}
            if host in again:
                return again[host]
            raise

    def abandon_arrival(self, op: Op, host: str) -> None:
        if not self._client.has(BINDINGS):
            return
        for port in self._ports(op):
            if port.host != host:
                self._client.delete_binding(port.id, host)

    # -- on no host

    def leave_host(self, ops: Iterable[Op]) -> None:
        leaving = list(ops)
        servers = {op.uuid: op for op in leaving}
        for port in self._client.ports_of(servers):
            op = servers.get(port.device_id)
            if op is None or not port.host or not belongs(port, op.uuid, op.server.project_id, known_ids(op)):
                continue
            fields: dict[str, Any] = {"binding:host_id": ""}
            profile = profile_of(port.profile)
            if profile != dict(port.profile):
                fields["binding:profile"] = profile
            with contextlib.suppress(errors.service.ResourceNotFound):
                self._client.update_port(port.id, fields)


__all__ = ["Mover"]
