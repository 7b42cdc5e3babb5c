"""Binding and releasing ports: created for servers, or given by users.

Every created port has the server's UUID as its ``device_id``, so that repeating or undoing a step finds it.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from nova import errors, failures
from nova.clients.neutron import DNS, IF_MATCH, Neutron
from nova.clients.neutron_values import NeutronFloating
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import CreateArguments, Op, Result
from nova.conductor.neutron import views
from nova.conductor.neutron.admission import AUTO, PortAdmission
from nova.conductor.neutron.cache import NeutronCache
from nova.conductor.neutron.port_resources import ClaimedPorts, profile_of
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.network.ports import FAILED, OWNER, Port, belongs
from nova.model.network.security_groups import DEFAULT

LOG = logging.getLogger(__name__)

AT_ONCE = 20  # ports created by one request, which takes some seconds


@dataclasses.dataclass
class WantedPorts:
    """The wanted ports of a server, by their place among its requested networks."""

    op: Op
    requested: tuple[RequestedNetwork, ...]
    found: dict[int, Port] = dataclasses.field(default_factory=dict)
    error: errors.NovaError | None = None
    others: frozenset[str] = frozenset()  # ports of the server that belong to other requests
    with_groups: bool = True

    @property
    def host(self) -> str:
        """The host for binding the ports."""
        return host_of(self.op)

    def missing(self) -> Iterator[tuple[int, RequestedNetwork]]:
        """Yield (place, request) of the requests that have no port yet."""
        return ((at, one) for at, one in enumerate(self.requested) if at not in self.found)


class Binder:
    def __init__(self, deps: Deps, client: Neutron, known: NeutronCache, ovs_bridge: str) -> None:
        self.deps, self.client, self.known, self.ovs_bridge = deps, client, known, ovs_bridge
        self.admission = PortAdmission(client, known)

    # -- binding

    def bind(self, ops: Sequence[Op]) -> list[Result]:
        """Bind the ports of servers on one host."""
        wanted = [WantedPorts(op, tuple(op.server.requested_networks or ())) for op in ops]
        again = [one.op.uuid for one in wanted if (one.op.progress.ports or 1) > 1 and one.requested]
        self.known.note_pending(again)  # a request of another runner that died may still create ports
        self._adopt(wanted, self.client.ports_of(again))
        for one in wanted:
            self._guarded(one, functools.partial(self._own_network, one))
            self._guarded(one, functools.partial(self._take_given, one))
        self._make(one for one in wanted if one.error is None)
        for one in wanted:
            self._guarded(one, functools.partial(_check_bound, one.found.values(), one.host))
        self._show(one for one in wanted if one.error is None)
        overtaken = self._leave_overtaken(ops)
        return [errors.Overtaken() if one.op.uuid in overtaken else one.error or {} for one in wanted]

    def _leave_overtaken(self, ops: Sequence[Op]) -> set[str]:
        """Remove the ports of servers that a newer operation owns, and return these servers. It is mostly a delete,
        which may have looked for ports before they were created."""
        mine = self.deps.journal.still_mine([op.entry for op in ops])
        lost = [op for op in ops if op.uuid not in mine]
        if lost:
            with failures.best_effort(LOG, "the ports of servers deleted meanwhile were not removed: %s; see "
                                      "nova-manage orphan list", on=errors.NovaError):
                self.unbind(lost)
        return {op.uuid for op in lost}

    @staticmethod
    def _guarded(one: WantedPorts, part: Callable[[], object]) -> None:
        if one.error is not None:
            return
        try:
            part()
        except errors.NovaError as error:
            one.error = error

    def _adopt(self, wanted: Iterable[WantedPorts], ports: Sequence[Port]) -> None:
        """Find ports that an earlier attempt created, also if their creation was never recorded."""
        for one in wanted:
            mine = [port for port in ports if port.id not in one.others
                    and belongs(port, one.op.uuid, one.op.server.project_id)]
            taken = {port.id for port in one.found.values()}
            for at, request in one.missing():
                port = next((port for port in mine if port.id not in taken and _is(port, request)), None)
                if port is None:
                    continue
                taken.add(port.id)
                one.found[at] = self._follows(one.op, port)

    def _follows(self, op: Op, port: Port) -> Port:
        """Bind the port to the operation's host if it is bound to another one, by an attempt whose undo did not
        finish."""
        if port.host == host_of(op):
            return port
        return self.client.update_port(port.id, self._given_fields(op, port))

    def _own_network(self, one: WantedPorts) -> None:
        """Create a network for the project, if it has none yet."""
        if any(request.network_id == AUTO for request in one.requested):
            project = one.op.server.project_id
            network = self.client.own_network(project)
            if not network:
                raise errors.network.NoAutoAllocation(project_id=project)
            one.requested = tuple(msgspec.structs.replace(request, network_id=network)
                                  if request.network_id == AUTO else request for request in one.requested)
            self._adopt([one], self.client.ports_of([one.op.uuid]) if (one.op.progress.ports or 1) > 1 else ())

    # -- given ports

    def _take_given(self, one: WantedPorts) -> None:
        for at, request in one.missing():
            if request.port_id:
                one.found[at] = self.take(one.op, request.port_id)

    def take(self, op: Op, port_id: str) -> Port:
        """Assign a user's port to the server and bind it to its host. Raises network.PortInUse if another server got it
        meanwhile."""
        port = self.known.ports.take(port_id) or self._read(port_id)
        for attempt in range(3):
            if port.device_id not in ("", op.uuid):
                raise errors.network.PortInUse(port_id=port_id)
            if port.dns_name and port.dns_name != op.server.hostname and self.client.has(DNS):
                raise errors.network.PortDnsName(port_id=port_id, server=op.uuid, dns_name=port.dns_name,
                                                 hostname=op.server.hostname)
            match = port.revision if self.client.has(IF_MATCH) else None
            try:
                return self.client.update_port(port_id, self._given_fields(op, port), match)
            except errors.service.ResourceNotFound:
                raise errors.network.BadPort(port_id=port_id) from None
            except (errors.service.Conflict, errors.service.Unavailable):
                if attempt == 2:
                    raise
                port = self._read(port_id)
        raise errors.network.PortInUse(port_id=port_id)

    def _read(self, port_id: str) -> Port:
        with failures.replaced(errors.service.ResourceNotFound, lambda _: errors.network.BadPort(port_id=port_id)):
            return self.client.port(port_id)

    def _given_fields(self, op: Op, port: Port) -> dict[str, object]:
        host = host_of(op)
        fields = {**self._whose(op), "binding:host_id": host}
        claimed = ClaimedPorts(self.deps, op, host)
        profile = profile_of(port.profile, claimed.allocation(port.id), claimed.device(port.id))
        if profile != dict(port.profile):
            fields["binding:profile"] = profile
        return fields

    def _whose(self, op: Op) -> dict[str, object]:
        zone = op.server.availability_zone or op.progress.zone or self.deps.settings.default_availability_zone
        named = {"dns_name": op.server.hostname} if op.server.hostname and self.client.has(DNS) else {}
        return {"device_id": op.uuid, "device_owner": f"{OWNER}{zone}", **named}

    # -- created ports

    def _make(self, wanted: Iterable[WantedPorts]) -> None:
        """Create ports for as many servers as fit in one call. If a server's ports fail, the others are still
        created."""
        batch: list[WantedPorts] = []
        size = 0
        for one in wanted:
            count = sum(1 for _ in one.missing())
            if batch and size + count > AT_ONCE:
                self._make_some(batch)
                batch, size = [], 0
            if count:
                batch.append(one)
                size += count
        self._make_some(batch)

    def _make_some(self, batch: Sequence[WantedPorts]) -> None:
        try:
            self._post(batch)
        except errors.service.Unavailable:
            self.known.note_pending(one.op.uuid for one in batch)
            self._post_again(batch)
        except errors.NovaError as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for one in batch:
                self._make_some([one])

    def _asked(self, batch: Sequence[WantedPorts]) -> list[tuple[WantedPorts, int, dict[str, object]]]:
        return [(one, at, self.body(one.op, request, one.with_groups))
                for one in batch for at, request in one.missing()]

    def _post(self, batch: Sequence[WantedPorts]) -> None:
        asked = self._asked(batch)
        made = self.client.create_ports([body for _one, _at, body in asked])
        for (one, at, _body), port in zip(asked, made, strict=True):
            one.found[at] = port

    def _post_again(self, batch: Sequence[WantedPorts]) -> None:
        """Repeat a create without an answer: ports that were created anyway are found, and only the others are
        requested again."""
        try:
            self._adopt(batch, self.client.ports_of(one.op.uuid for one in batch))
            self._post(batch)
        except errors.NovaError as error:
            for one in batch:
                one.error = error

    def body(self, op: Op, request: RequestedNetwork, with_groups: bool = True) -> dict[str, object]:
        """Return the request body of a new port. Without groups: in the project's default group."""
        groups = self._group_ids(op) if with_groups else []
        return {"network_id": request.network_id, "admin_state_up": True, "tenant_id": op.server.project_id,
                "binding:host_id": host_of(op), **self._whose(op),
                **({"security_groups": groups} if groups else {}),
                **({"fixed_ips": [{"ip_address": request.fixed_ip}]} if request.fixed_ip else {})}

    def _group_ids(self, op: Op) -> list[str]:
        """Return the group IDs that the create began with. Names are resolved again only for a create begun by a
        release that stored only names."""
        ids = op.asked(CreateArguments).group_ids
        words = tuple(op.server.security_groups or ())
        if ids is None and words not in ((), (DEFAULT,)):
            return [one.id for one in self.admission.look_up_groups(op.server.project_id, words).values()]
        return list(ids or ())

    # -- results

    def around(self, ports: Sequence[Port], floating: Sequence[NeutronFloating] = ()) -> views.Around:
        """Return the networks, subnets and floating addresses of the ports."""
        return views.Around(self.known.networks(dict.fromkeys(port.network_id for port in ports)),
                            self.known.subnets(dict.fromkeys(one.subnet_id for port in ports
                                                             for one in port.addresses)),
                            floating, self.ovs_bridge)

    def _show(self, wanted: Iterable[WantedPorts]) -> None:
        bound = list(wanted)
        around = self.around([port for one in bound for port in one.found.values()])
        for one in bound:
            one.op.write(interfaces=tuple(
                views.interface(one.found[at], around, request.tag, given=bool(request.port_id))
                for at, request in enumerate(one.requested)))

    # -- release

    def unbind(self, ops: Sequence[Op]) -> None:
        """Remove all ports of the servers, and raise any error, because none may be left. Known ports that the list
        lacks are read by ID, more than once."""
        ports = self.client.ports_of(op.uuid for op in ops)
        servers = {op.uuid: op for op in ops}
        lacking = {one for op in ops for one in known_ids(op)} - {port.id for port in ports}
        for port in (*ports, *self.client.known_ports(lacking)):
            op = servers.get(port.device_id)
            if op is None or not belongs(port, op.uuid, op.server.project_id, known_ids(op)):
                continue
            self.free(port) if port.id in given_ids(op) else self.client.delete_port(port.id)

    def free(self, port: Port) -> None:
        """Release the port to its owner, without nova's data in it."""
        fields: dict[str, Any] = {"device_id": "", "device_owner": "", "binding:host_id": ""}
        profile = profile_of(port.profile)
        if profile != dict(port.profile):
            fields["binding:profile"] = profile
        if port.dns_name and self.client.has(DNS):
            fields["dns_name"] = ""
        with failures.expected(LOG, "port %s was deleted by its owner", port.id, on=errors.service.ResourceNotFound):
            self.client.update_port(port.id, fields)

    # -- one interface of an existing server

    def make_one(self, op: Op, requested: RequestedNetwork) -> Interface:
        """Create one more interface of an existing server, on its host. A port that an earlier try created is found
        again. Raises network.BindingFailed after deleting or releasing the port; errors as of ``take``."""
        one = WantedPorts(op, (requested,), others=frozenset(known_ids(op) - {requested.port_id or ""}),
                          with_groups=False)
        self._adopt([one], self.client.ports_of([op.uuid]))
        self._take_given(one)
        self._make([one])
        if one.error is not None:
            raise one.error
        [port] = one.found.values()

        def undo() -> None:
            self.free(port) if requested.port_id else self.client.delete_port(port.id)
        with failures.on_failure(undo, on=errors.network.BindingFailed):
            _check_bound([port], one.host)
        return views.interface(port, self.around([port]), requested.tag, given=bool(requested.port_id))

    def remove_one(self, op: Op, interface: Interface) -> None:
        """Delete the port, or release it to its owner. A port that belongs to another server by now is left alone."""
        for port in self.client.ports_by_id([interface.id]):
            if port.device_id != op.uuid:
                LOG.info("port %s no longer belongs to this server; left it unchanged",
                         port.id, extra={"server": op.uuid})
            elif interface.given:
                self.free(port)
            else:
                self.client.delete_port(port.id)


def host_of(op: Op) -> str:
    """Return the host for binding the ports: the claimed host, or the server's current one."""
    return str(op.progress.host or op.server.host)


def _check_bound(ports: Iterable[Port], host: str) -> None:
    for port in ports:
        if port.vif_type == FAILED:
            raise errors.network.BindingFailed(port_id=port.id, host=host)


def _is(port: Port, request: RequestedNetwork) -> bool:
    """True if the port is, or was created as, the requested one."""
    if request.port_id:
        return port.id == request.port_id
    return port.network_id == request.network_id and (
        not request.fixed_ip or any(one.address == request.fixed_ip for one in port.addresses))


def known_ids(op: Op) -> set[str]:
    """Return the IDs of ports that are interfaces in the server's row, and of given ports."""
    return {one.id for one in op.server.interfaces or ()} | given_ids(op)


def given_ids(op: Op) -> set[str]:
    """Return the IDs of ports that belonged to the user before the server got them."""
    return {one.id for one in op.server.interfaces or () if one.given} | set(op.progress.given) | {
        one.port_id for one in op.server.requested_networks or () if one.port_id}


def keep_given(op: Op) -> None:
    """Note the given ports: the server's row may no longer have them when they are released."""
    ids = tuple(sorted(given_ids(op)))
    if ids != op.progress.given:
        op.note(given=ids)


def begin_round(op: Op) -> None:
    """Count a round of binding; from the second on, ports may already exist."""
    op.note(ports=(op.progress.ports or 0) + 1)


__all__ = ["Binder", "begin_round", "given_ids", "keep_given", "known_ids"]
