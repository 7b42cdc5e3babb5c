"""The network service: the calls of its API v2.0 that nova uses.

Calls whose results depend on the user's visibility use the user's token (``as_user``); other calls use nova's own
credentials. A write that is not idempotent (POST) is attempted once; the caller checks for the result of a lost answer.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from nova import concurrency, errors, failures
from nova.clients import neutron_values as values
from nova.clients.answers import NULL, PageLink, UnreadableError, decoded_list, links_of
from nova.clients.neutron_caller import NeutronCaller, strange
from nova.clients.session import Credentials, ServiceEndpoint
from nova.conf.neutron import NeutronOptions
from nova.model.network.ports import (
    Counted,
    NeutronFloating,
    NeutronGroup,
    NeutronNetwork,
    NeutronRule,
    NeutronSubnet,
    Port,
    PortBinding,
)

DEADLINE = 1.5  # multiple of read_timeout: for all attempts of a call
DOUBTS_S = (1.0, 3.0)  # pauses before each repetition of a check that found nothing
IDS_AT_ONCE = 100  # in one URL, which servers limit to about 8 KB

#: Extensions by their aliases.
BINDINGS, DNS = "binding-extended", "dns-integration"
QUOTA_DETAILS, TOPOLOGY = "quota_details", "auto-allocated-topology"
IF_MATCH = "revision-if-match"

R = TypeVar("R")
T = TypeVar("T")


def of_groups(neutron: NeutronOptions, credentials: Credentials) -> Neutron:
    """Return a client for the ``[neutron]`` group."""
    addresses = (neutron.endpoint_override.rstrip("/"),) if neutron.endpoint_override else ()
    service = ServiceEndpoint("network", neutron.service_type, addresses, neutron.region_name,
                              tuple(neutron.valid_interfaces),
                              neutron.http_retries, _patience(neutron), deadline_s=DEADLINE * _patience(neutron))
    return Neutron(NeutronCaller(service, credentials), neutron.extension_sync_interval)


def _patience(neutron: NeutronOptions) -> float:
    """Return the read timeout in seconds; ``timeout`` is keystoneauth's name."""
    return float(getattr(neutron, "timeout", None) or neutron.read_timeout)


class Neutron:
    """Client of the network service. Calls raise NotFound, Forbidden, Conflict, Invalid, OverQuota according to its
    answer; Unavailable if it does not answer."""

    def __init__(self, caller: NeutronCaller, extension_sync_s: float = 600,
                 doubts_s: Sequence[float] = DOUBTS_S) -> None:
        self._caller, self._doubts_s = caller, doubts_s
        self._extensions = _Extensions(self, extension_sync_s)

    # -- networks

    def networks(self, filters: Mapping[str, object] | None = None, as_user: bool = False) -> tuple[NeutronNetwork,
                 ...]:
        """Return networks from all pages. ``filters`` of the API (id, name, shared ...); without them, all visible
        networks."""
        return self._all("networks", values.NetworkJson, values.network, filters, as_user)

    def subnets(self, ids: Iterable[str] = (), filters: Mapping[str, object] | None = None
                ) -> tuple[NeutronSubnet, ...]:
        """Return the subnets in ``ids`` that match ``filters``; without ids, all that match; without both, none."""
        return self._by_id("subnets", values.SubnetJson, values.subnet, ids, filters)

    def own_network(self, project_id: str, as_user: bool = False, dry_run: bool = False) -> str | None:
        """Return the id of the network that Neutron creates for a project without one; for a dry run, None if that is
        possible. Raises Invalid, Conflict if it is not."""
        params = {"fields": "dry-run"} if dry_run else {}
        found = self._get(values.TopologyAnswer, f"auto-allocated-topology/{project_id}", params, as_user,
                          f"topology for {project_id}")
        return None if dry_run else found.auto_allocated_topology.id

    # -- ports

    def ports(self, filters: Mapping[str, object] | None = None, as_user: bool = False) -> tuple[Port, ...]:
        """Return ports. ``filters`` of the API (device_id, network_id ...; a list matches any of its values)."""
        return self._all("ports", values.PortJson, values.port, filters, as_user)

    def ports_by_id(self, ids: Iterable[str], as_user: bool = False) -> tuple[Port, ...]:
        """Return ports in no particular order; missing ids are left out. Without ids, no request is made."""
        return self._by_id("ports", values.PortJson, values.port, ids, None, as_user)

    def known_ports(self, ids: Iterable[str]) -> tuple[Port, ...]:
        """Return ports that existed before. Missing ports are requested again after ``doubts_s``, before they count as
        deleted: a Neutron that has just started may treat nova as an ordinary user, who cannot see the ports of
        others."""
        wanted, found = set(ids), dict[str, Port]()
        for pause in (0.0, *self._doubts_s):
            lacking = wanted - found.keys()
            if not lacking:
                break
            concurrency.sleep(pause)
            found.update({port.id: port for port in self.ports_by_id(lacking)})
        return tuple(found.values())

    def ports_of(self, device_ids: Iterable[str]) -> tuple[Port, ...]:
        """Return all ports of these servers."""
        return self._by_id("ports", values.PortJson, values.port, device_ids, None, key="device_id")

    def port(self, port_id: str, as_user: bool = False) -> Port:
        """Return a port. Raises service.ResourceNotFound if it does not exist, or if the user cannot see it."""
        return values.port(self._get(values.PortAnswer, f"ports/{port_id}", {}, as_user, f"port {port_id}").port)

    def create_ports(self, ports: Sequence[Mapping[str, object]]) -> tuple[Port, ...]:
        """Create all of the ports or none, in one request. After a lost answer, check with :meth:`ports_of` before a
        retry."""
        if not ports:
            return ()
        made = self._send(values.PortsAnswer, "POST", "ports", {"ports": list(ports)}, "such network")
        return tuple(map(values.port, made.ports))

    def update_port(self, port_id: str, fields: Mapping[str, object], if_match: int | None = None,
                    as_user: bool = False) -> Port:
        """Update fields, by their names in the API. ``if_match``: only if the port still has that revision, else raise
        service.Conflict (extension revision-if-match)."""
        headers = {"If-Match": f"revision_number={if_match}"} if if_match is not None else {}
        changed = self._caller.read(values.PortAnswer, "PUT", f"/v2.0/ports/{port_id}", what=f"port {port_id}",
                                    headers=headers, json={"port": dict(fields)}, as_user=as_user)
        return values.port(changed.port)

    def delete_port(self, port_id: str) -> None:
        """Delete a port; does nothing if it is already gone."""
        self._delete(f"ports/{port_id}", f"port {port_id}")

    # -- bindings (extension binding-extended)

    def bindings(self, port_id: str) -> tuple[PortBinding, ...]:
        """Return all bindings of a port, including the active one. Raises service.ResourceNotFound if the port does not
        exist."""
        found = self._get(values.BindingsAnswer, f"ports/{port_id}/bindings", {}, False, f"port {port_id}")
        return tuple(map(values.binding, found.bindings))

    def create_binding(self, port_id: str, host: str, vnic_type: str, profile: Mapping[str, object]) -> PortBinding:
        """Create an inactive binding. Raises service.Conflict if that host has one."""
        body = {"binding": {"host": host, "vnic_type": vnic_type, "profile": dict(profile)}}
        made = self._send(values.BindingAnswer, "POST", f"ports/{port_id}/bindings", body, f"port {port_id}")
        return values.binding(made.binding)

    def activate_binding(self, port_id: str, host: str) -> None:
        """Activate the binding, which deactivates the others; does nothing if it is active. Raises NotFound."""
        try:
            self._send(dict[str, msgspec.Raw], "PUT", f"ports/{port_id}/bindings/{host}/activate", None,
                       f"binding of port {port_id} on {host}")
        except errors.service.Conflict:
            if any(one.host == host and one.status == "ACTIVE" for one in self.bindings(port_id)):
                return
            raise

    def delete_binding(self, port_id: str, host: str) -> None:
        """Delete a binding; does nothing if it is already gone."""
        self._delete(f"ports/{port_id}/bindings/{host}", f"binding of port {port_id} on {host}")

    # -- security groups

    def security_groups(self, filters: Mapping[str, object] | None = None, as_user: bool = False
                        ) -> tuple[NeutronGroup, ...]:
        """Return security groups with their rules, from all pages. ``filters`` of the API (name, project_id ...)."""
        return self._all("security-groups", values.GroupJson, values.group, filters, as_user)

    def security_groups_by_id(self, ids: Iterable[str], fields: Sequence[str] = ()) -> tuple[NeutronGroup, ...]:
        """Return existing security groups, in no particular order. ``fields``: the fields to request (others have
        defaults); it requires ``ids``."""
        return self._by_id("security-groups", values.GroupJson, values.group, ids,
                           {"fields": list(fields)} if fields else None)

    def security_group(self, group_id: str, as_user: bool = False) -> NeutronGroup:
        """Return a security group with its rules. Raises service.ResourceNotFound."""
        return values.group(self._get(values.GroupAnswer, f"security-groups/{group_id}", {}, as_user,
                                      f"security group {group_id}").security_group)

    def create_security_group(self, as_user: bool = True, **fields: object) -> NeutronGroup:
        """Create a security group; ``fields`` by their names in the API. Raises network.OverPortQuota if Neutron's
        quota is exhausted."""
        made = self._send(values.GroupAnswer, "POST", "security-groups", {"security_group": fields}, "such project",
                          as_user)
        return values.group(made.security_group)

    def update_security_group(self, group_id: str, as_user: bool = True, **fields: object) -> NeutronGroup:
        """Update only ``fields``; return the updated group. Raises service.ResourceNotFound."""
        changed = self._send(values.GroupAnswer, "PUT", f"security-groups/{group_id}", {"security_group": fields},
                             f"security group {group_id}", as_user)
        return values.group(changed.security_group)

    def delete_security_group(self, group_id: str, as_user: bool = True) -> None:
        """Delete a security group. Raises NotFound; Conflict if it is in use."""
        self._caller.call("DELETE", f"/v2.0/security-groups/{group_id}", as_user=as_user,
                          what=f"security group {group_id}")

    def security_rules(self, filters: Mapping[str, object] | None = None, as_user: bool = True
                       ) -> tuple[NeutronRule, ...]:
        """Return rules from all pages. ``filters`` of the API (security_group_id, direction ...)."""
        return self._all("security-group-rules", values.RuleJson, values.rule, filters, as_user)

    def create_security_rule(self, as_user: bool = True, **fields: object) -> NeutronRule:
        """Create a rule. Raises service.Conflict if the group has this rule; service.ResourceNotFound if the group does
        not exist."""
        made = self._send(values.RuleAnswer, "POST", "security-group-rules", {"security_group_rule": fields},
                          "such security group", as_user)
        return values.rule(made.security_group_rule)

    def delete_security_rule(self, rule_id: str, as_user: bool = True) -> None:
        """Delete a rule. Raises service.ResourceNotFound if it is already gone."""
        self._caller.call("DELETE", f"/v2.0/security-group-rules/{rule_id}", as_user=as_user, what=f"rule {rule_id}")

    # -- floating addresses

    def floating_ips(self, filters: Mapping[str, object] | None = None, as_user: bool = False
                     ) -> tuple[NeutronFloating, ...]:
        """Return floating IPs from all pages. ``filters`` of the API (floating_ip_address, port_id ...)."""
        return self._all("floatingips", values.FloatingJson, values.floating, filters, as_user)

    def floating_ips_of(self, port_ids: Iterable[str]) -> tuple[NeutronFloating, ...]:
        """Return the floating IPs that are associated with these ports."""
        return self._by_id("floatingips", values.FloatingJson, values.floating, port_ids, None, key="port_id")

    def floating_ip(self, floating_id: str, as_user: bool = True) -> NeutronFloating:
        """Return a floating IP by its id. Raises service.ResourceNotFound."""
        return values.floating(self._get(values.FloatingAnswer, f"floatingips/{floating_id}", {}, as_user,
                                         f"floating address {floating_id}").floatingip)

    def create_floating_ip(self, as_user: bool = True, **fields: object) -> NeutronFloating:
        """Create a floating IP of the network ``floating_network_id``. Raises service.Conflict if no address is left
        there."""
        return values.floating(self._send(values.FloatingAnswer, "POST", "floatingips", {"floatingip": fields},
                                          "such network", as_user).floatingip)

    def update_floating_ip(self, floating_id: str, as_user: bool = True, **fields: object) -> NeutronFloating:
        """Update only ``fields``; ``port_id`` None disassociates it. Raises service.ResourceNotFound."""
        return values.floating(self._send(values.FloatingAnswer, "PUT", f"floatingips/{floating_id}",
                                          {"floatingip": fields}, f"floating address {floating_id}",
                                          as_user).floatingip)

    def delete_floating_ip(self, floating_id: str, as_user: bool = True) -> None:
        """Release a floating IP to its network. Raises service.ResourceNotFound if it is already gone."""
        self._caller.call("DELETE", f"/v2.0/floatingips/{floating_id}", as_user=as_user,
                          what=f"floating address {floating_id}")

    # -- quotas and extensions

    def quotas(self, project_id: str) -> Mapping[str, Counted]:
        """Return quotas by Neutron's names (port, network, security_group ...), with usage if the service reports
        it."""
        details = "/details.json" if self.has(QUOTA_DETAILS) else ""
        return values.counted(self._get(values.QuotaAnswer, f"quotas/{project_id}{details}", {}, False,
                                        f"project {project_id}").quota)

    def extensions(self) -> frozenset[str]:
        """Return extension aliases, requested at most every ``[neutron]extension_sync_interval`` seconds."""
        return self._extensions.known()

    def has(self, alias: str) -> bool:
        """Return whether the service has the extension of this alias, according to :meth:`extensions`."""
        return alias in self._extensions.known()

    def read_extensions(self) -> frozenset[str]:
        """Return the current extension aliases: the cheapest request that requires nova's credentials."""
        found = self._get(values.ExtensionsAnswer, "extensions", {"fields": "alias"}, False, "extensions")
        return frozenset(one.alias for one in found.extensions)

    # -- internals

    def _get(self, kind: type[T], path: str, params: Mapping[str, object], as_user: bool, what: str) -> T:
        return self._caller.read(kind, "GET", f"/v2.0/{path}", as_user=as_user, what=what, params=_flat(params))

    def _send(self, kind: type[T], method: str, path: str, body: object, what: str, as_user: bool = False) -> T:
        return self._caller.read(kind, method, f"/v2.0/{path}", as_user=as_user, what=what, json=body)

    def _delete(self, path: str, what: str) -> None:
        with contextlib.suppress(errors.service.ResourceNotFound):
            self._caller.call("DELETE", f"/v2.0/{path}", what=what)

    def _all(self, noun: str, kind: type[R], read: Callable[[R], T], filters: Mapping[str, object] | None,
             as_user: bool = False) -> tuple[T, ...]:
        """Return the entries of all pages of a list."""
        params: Sequence[tuple[str, object]] | None = _flat(filters or {})
        found: list[T] = []
        while params is not None:
            rows, links = self._page(noun, kind, as_user, params)
            found += map(read, rows)
            params = _next(links) if rows else None
        return tuple(found)

    def _page(self, noun: str, kind: type[R], as_user: bool, params: Sequence[tuple[str, object]]
              ) -> tuple[list[R], list[PageLink]]:
        """Return a page of a list, and its links. A server without such a list is not Neutron, or lacks an extension;
        that is neither an empty list nor a missing resource."""
        path, key = f"/v2.0/{noun}", noun.replace("-", "_")
        with failures.replaced(errors.service.ResourceNotFound, lambda _: errors.service.Unavailable(service="network",
                reason=f"GET {path} returned 404: the server is not Neutron, or lacks an extension")), \
                failures.replaced((KeyError, UnreadableError), lambda _: strange(f"GET {path}")):
            body = self._caller.read(dict[str, msgspec.Raw], "GET", path, as_user=as_user, what=f"such {noun}",
                                     params=params)
            return decoded_list(body[key], kind), links_of(body.get(f"{key}_links", NULL))

    def _by_id(self, noun: str, kind: type[R], read: Callable[[R], T], ids: Iterable[str],
               filters: Mapping[str, object] | None, as_user: bool = False, key: str = "id") -> tuple[T, ...]:
        wanted = sorted(set(ids))
        if not wanted:
            return self._all(noun, kind, read, filters, as_user) if filters else ()
        return tuple(itertools.chain.from_iterable(
            self._all(noun, kind, read, {**(filters or {}), key: some}, as_user) for some in _chunks(wanted)))


class _Extensions:
    """The service's extensions, refreshed periodically by one thread, while others use the previous ones."""

    def __init__(self, client: Neutron, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._every_s, self._clock = client, every_s, clock
        self._known: frozenset[str] | None = None
        self._read_at = 0.0
        self._lock = threading.Lock()

    def known(self) -> frozenset[str]:
        if self._known is None or self._clock() - self._read_at >= self._every_s:
            with self._lock:
                if self._known is None or self._clock() - self._read_at >= self._every_s:
                    self._read()
        assert self._known is not None
        return self._known

    def _read(self) -> None:
        try:
            self._known = self._client.read_extensions()
        except errors.NovaError:
            if self._known is None:
                raise  # otherwise the old extensions stay valid; the next call asks again
            return
        self._read_at = self._clock()


def _flat(params: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return parameters in Neutron's form: ``{"id": ["a", "b"]}`` becomes ``id=a&id=b``."""
    return [(name, one) for name, value in params.items()
            for one in (value if isinstance(value, list | tuple | set | frozenset) else [value])]


def _chunks(ids: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(ids), IDS_AT_ONCE):
        yield list(ids[first:first + IDS_AT_ONCE])


def _next(links: Iterable[PageLink]) -> list[tuple[str, str]] | None:
    """Return the parameters of the next page. (The link's host is the service's own name for itself, at which nova
    cannot always reach it.)"""
    for link in links:
        if link.rel == "next":
            return list(parse_qsl(urlsplit(link.href).query))
    return None


__all__ = ["BINDINGS", "DNS", "IF_MATCH", "QUOTA_DETAILS", "TOPOLOGY", "Neutron", "of_groups"]
