"""The network service: the calls we use of its API v2.0.

What the user may see is asked with the user's token (``as_user``), everything else with our own credentials. A write
that may not be repeated (POST) is tried once: whoever makes it looks for what a lost answer left.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from nova import concurrency, errors
from nova.clients import neutron_values as values
from nova.clients.neutron_caller import NeutronCaller, strange
from nova.clients.session import Credentials, ServiceEndpoint
from nova.model.base import Json
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

DEADLINE = 1.5  # of read_timeout: for a call's attempts together
DOUBTS_S = (1.0, 3.0)  # how long after one look that found nothing the next is taken
IDS_AT_ONCE = 100  # in one URL, which servers cut at 8 KB or so

#: Extensions by their aliases.
BINDINGS, DNS = "binding-extended", "dns-integration"
QUOTA_DETAILS, TOPOLOGY = "quota_details", "auto-allocated-topology"
IF_MATCH = "revision-if-match"

T = TypeVar("T")


def of_groups(neutron: Json, credentials: Credentials) -> Neutron:
    """A client as the ``[neutron]`` group says."""
    addresses = (neutron.endpoint_override.rstrip("/"),) if neutron.endpoint_override else ()
    service = ServiceEndpoint("network", neutron.service_type, addresses, neutron.region_name,
                              tuple(neutron.valid_interfaces),
                              neutron.http_retries, _patience(neutron), deadline_s=DEADLINE * _patience(neutron))
    return Neutron(NeutronCaller(service, credentials), neutron.extension_sync_interval)


def _patience(neutron: Json) -> float:
    """Seconds; ``timeout`` is keystoneauth's word."""
    return float(getattr(neutron, "timeout", None) or neutron.read_timeout)


class Neutron:
    """NotFound, Forbidden, Conflict, Invalid, OverQuota as the service says; Unavailable when it does not answer."""

    def __init__(self, caller: NeutronCaller, extension_sync_s: float = 600,
                 doubts_s: Sequence[float] = DOUBTS_S) -> None:
        self._caller, self._doubts_s = caller, doubts_s
        self._extensions = _Extensions(self, extension_sync_s)

    # -- networks

    def networks(self, filters: Mapping[str, object] | None = None, as_user: bool = False) -> tuple[NeutronNetwork,
                 ...]:
        """All pages. ``filters``: of the API (id, name, shared ...); none: every network that may be seen."""
        return self._all("networks", values.network, filters, as_user)

    def subnets(self, ids: Iterable[str] = (), filters: Mapping[str, object] | None = None
                ) -> tuple[NeutronSubnet, ...]:
        """Those of ``ids`` that meet ``filters``; without ids all that do, and without both none."""
        return self._by_id("subnets", values.subnet, ids, filters)

    def own_network(self, project_id: str, as_user: bool = False, dry_run: bool = False) -> str | None:
        """The id of the network that is made for a project which has none; of a dry run None, when that can be done.
        Invalid, Conflict: it can't."""
        params = {"fields": "dry-run"} if dry_run else {}
        body = self._get(f"auto-allocated-topology/{project_id}", params, as_user, f"topology for {project_id}")
        found: str | None = body["auto_allocated_topology"].get("id")
        return None if dry_run else found

    # -- ports

    def ports(self, filters: Mapping[str, object] | None = None, as_user: bool = False) -> tuple[Port, ...]:
        """``filters``: of the API (device_id, network_id ...; a list is "any of them")."""
        return self._all("ports", values.port, filters, as_user)

    def ports_by_id(self, ids: Iterable[str], as_user: bool = False) -> tuple[Port, ...]:
        """In no order; an id that is not there is left out. Without ids nothing is asked."""
        return self._by_id("ports", values.port, ids, None, as_user)

    def known_ports(self, ids: Iterable[str]) -> tuple[Port, ...]:
        """Ports that were there once: what is missing is asked for again after ``doubts_s``, before it counts as gone.
        A Neutron that has just begun may take us for an ordinary user, who is shown none of others'."""
        wanted, found = set(ids), dict[str, Port]()
        for pause in (0.0, *self._doubts_s):
            lacking = wanted - found.keys()
            if not lacking:
                break
            concurrency.sleep(pause)
            found.update({port.id: port for port in self.ports_by_id(lacking)})
        return tuple(found.values())

    def ports_of(self, device_ids: Iterable[str]) -> tuple[Port, ...]:
        """All ports of these servers."""
        return self._by_id("ports", values.port, device_ids, None, key="device_id")

    def port(self, port_id: str, as_user: bool = False) -> Port:
        """service.ResourceNotFound: there is none, or the user does not see it."""
        return values.port(self._get(f"ports/{port_id}", {}, as_user, f"port {port_id}")["port"])

    def create_ports(self, ports: Sequence[Mapping[str, Json]]) -> tuple[Port, ...]:
        """All of them or none, in one request. Who gets no answer looks with :meth:`ports_of` before it asks again."""
        if not ports:
            return ()
        body = self._send("POST", "ports", {"ports": list(ports)}, "such network")
        return tuple(values.port(one) for one in body["ports"])

    def update_port(self, port_id: str, fields: Mapping[str, Json], if_match: int | None = None,
                    as_user: bool = False) -> Port:
        """Fields by their names in the API. ``if_match``: only while the port is at that revision, else
        service.Conflict (extension revision-if-match)."""
        headers = {"If-Match": f"revision_number={if_match}"} if if_match is not None else {}
        body = self._caller.json("PUT", f"/v2.0/ports/{port_id}", what=f"port {port_id}", headers=headers,
                          json={"port": dict(fields)}, as_user=as_user)
        return values.port(body["port"])

    def delete_port(self, port_id: str) -> None:
        """Nothing when it is gone already."""
        self._delete(f"ports/{port_id}", f"port {port_id}")

    # -- bindings (extension binding-extended)

    def bindings(self, port_id: str) -> tuple[PortBinding, ...]:
        """All bindings of a port, the active one among them. service.ResourceNotFound: there is no such port."""
        body = self._get(f"ports/{port_id}/bindings", {}, False, f"port {port_id}")
        return tuple(values.binding(one) for one in body["bindings"])

    def create_binding(self, port_id: str, host: str, vnic_type: str, profile: Mapping[str, Json]) -> PortBinding:
        """An inactive one; service.Conflict: there is one of that host."""
        body = {"binding": {"host": host, "vnic_type": vnic_type, "profile": dict(profile)}}
        return values.binding(self._send("POST", f"ports/{port_id}/bindings", body, f"port {port_id}")["binding"])

    def activate_binding(self, port_id: str, host: str) -> None:
        """The one binding that counts; the others are inactive. Nothing when it is. NotFound."""
        try:
            self._send("PUT", f"ports/{port_id}/bindings/{host}/activate", None, f"binding of port {port_id} on {host}")
        except errors.service.Conflict:
            if any(one.host == host and one.status == "ACTIVE" for one in self.bindings(port_id)):
                return
            raise

    def delete_binding(self, port_id: str, host: str) -> None:
        """Nothing when it is gone already."""
        self._delete(f"ports/{port_id}/bindings/{host}", f"binding of port {port_id} on {host}")

    # -- security groups

    def security_groups(self, filters: Mapping[str, object] | None = None, as_user: bool = False
                        ) -> tuple[NeutronGroup, ...]:
        """All pages, with their rules. ``filters``: of the API (name, project_id ...)."""
        return self._all("security-groups", values.group, filters, as_user)

    def security_groups_by_id(self, ids: Iterable[str], fields: Sequence[str] = ()) -> tuple[NeutronGroup, ...]:
        """Those that are there, in no order. ``fields``: what is asked of each (all else has defaults then); ``ids``
        must not be empty with it."""
        return self._by_id("security-groups", values.group, ids, {"fields": list(fields)} if fields else None)

    def security_group(self, group_id: str, as_user: bool = False) -> NeutronGroup:
        """With its rules. service.ResourceNotFound."""
        return values.group(self._get(f"security-groups/{group_id}", {}, as_user,
                                      f"security group {group_id}")["security_group"])

    def create_security_group(self, as_user: bool = True, **fields: Json) -> NeutronGroup:
        """``fields`` by their names in the API. network.OverPortQuota: Neutron's quota is used up."""
        body = self._send("POST", "security-groups", {"security_group": fields}, "such project", as_user)
        return values.group(body["security_group"])

    def update_security_group(self, group_id: str, as_user: bool = True, **fields: Json) -> NeutronGroup:
        """Writes ``fields`` alone; the group after it. service.ResourceNotFound."""
        body = self._send("PUT", f"security-groups/{group_id}", {"security_group": fields},
                          f"security group {group_id}", as_user)
        return values.group(body["security_group"])

    def delete_security_group(self, group_id: str, as_user: bool = True) -> None:
        """NotFound; Conflict: in use."""
        self._caller.call("DELETE", f"/v2.0/security-groups/{group_id}", as_user=as_user,
                          what=f"security group {group_id}")

    def security_rules(self, filters: Mapping[str, object] | None = None, as_user: bool = True
                       ) -> tuple[NeutronRule, ...]:
        """All pages. ``filters``: of the API (security_group_id, direction ...)."""
        return self._all("security-group-rules", values.rule, filters, as_user)

    def create_security_rule(self, as_user: bool = True, **fields: Json) -> NeutronRule:
        """service.Conflict: the group has this rule. service.ResourceNotFound: no such group."""
        body = self._send("POST", "security-group-rules", {"security_group_rule": fields}, "such security group",
                          as_user)
        return values.rule(body["security_group_rule"])

    def delete_security_rule(self, rule_id: str, as_user: bool = True) -> None:
        """service.ResourceNotFound: it is gone already."""
        self._caller.call("DELETE", f"/v2.0/security-group-rules/{rule_id}", as_user=as_user, what=f"rule {rule_id}")

    # -- floating addresses

    def floating_ips(self, filters: Mapping[str, object] | None = None, as_user: bool = False
                     ) -> tuple[NeutronFloating, ...]:
        """All pages. ``filters``: of the API (floating_ip_address, port_id ...)."""
        return self._all("floatingips", values.floating, filters, as_user)

    def floating_ips_of(self, port_ids: Iterable[str]) -> tuple[NeutronFloating, ...]:
        """Those that lead to these ports."""
        return self._by_id("floatingips", values.floating, port_ids, None, key="port_id")

    def floating_ip(self, floating_id: str, as_user: bool = True) -> NeutronFloating:
        """By its id. service.ResourceNotFound."""
        return values.floating(self._get(f"floatingips/{floating_id}", {}, as_user,
                                         f"floating address {floating_id}")["floatingip"])

    def create_floating_ip(self, as_user: bool = True, **fields: Json) -> NeutronFloating:
        """``floating_network_id`` says of which network. service.Conflict: no address is left there."""
        return values.floating(self._send("POST", "floatingips", {"floatingip": fields}, "such network",
                                          as_user)["floatingip"])

    def update_floating_ip(self, floating_id: str, as_user: bool = True, **fields: Json) -> NeutronFloating:
        """Writes ``fields`` alone; ``port_id`` None takes it from its port. service.ResourceNotFound."""
        return values.floating(self._send("PUT", f"floatingips/{floating_id}", {"floatingip": fields},
                                          f"floating address {floating_id}", as_user)["floatingip"])

    def delete_floating_ip(self, floating_id: str, as_user: bool = True) -> None:
        """It goes back to its network. service.ResourceNotFound: it is gone already."""
        self._caller.call("DELETE", f"/v2.0/floatingips/{floating_id}", as_user=as_user,
                          what=f"floating address {floating_id}")

    # -- quotas and extensions

    def quotas(self, project_id: str) -> Mapping[str, Counted]:
        """By Neutron's names (port, network, security_group ...); with what is used, where the service tells."""
        details = "/details.json" if self.has(QUOTA_DETAILS) else ""
        return values.counted(self._get(f"quotas/{project_id}{details}", {}, False, f"project {project_id}")["quota"])

    def extensions(self) -> frozenset[str]:
        """Aliases; asked for at most every ``[neutron]extension_sync_interval`` seconds."""
        return self._extensions.known()

    def has(self, alias: str) -> bool:
        """Whether the service has the extension of this alias, as :meth:`extensions` knows."""
        return alias in self._extensions.known()

    def read_extensions(self) -> frozenset[str]:
        """As they are now: the cheapest question that needs our credentials."""
        body = self._get("extensions", {"fields": "alias"}, False, "extensions")
        return frozenset(one["alias"] for one in body["extensions"])

    # -- inside

    def _get(self, path: str, params: Mapping[str, object], as_user: bool, what: str) -> dict[str, Json]:
        return self._caller.json("GET", f"/v2.0/{path}", as_user=as_user, what=what, params=_flat(params))

    def _send(self, method: str, path: str, body: object, what: str, as_user: bool = False) -> dict[str, Json]:
        kwargs = {} if body is None else {"json": body}
        return self._caller.json(method, f"/v2.0/{path}", as_user=as_user, what=what, **kwargs)

    def _delete(self, path: str, what: str) -> None:
        try:
            self._caller.call("DELETE", f"/v2.0/{path}", what=what)
        except errors.service.ResourceNotFound:
            return

    def _all(self, noun: str, read: Callable[[Mapping[str, Json]], T], filters: Mapping[str, Json] | None,
             as_user: bool = False) -> tuple[T, ...]:
        """Every page of a list."""
        params: Sequence[tuple[str, Any]] | None = _flat(filters or {})
        found: list[T] = []
        key = noun.replace("-", "_")
        while params is not None:
            body = self._page(noun, key, as_user, params)
            found += [read(one) for one in body[key]]
            params = _next(body.get(f"{key}_links") or ()) if body[key] else None
        return tuple(found)

    def _page(self, noun: str, key: str, as_user: bool, params: Sequence[tuple[str, Json]]) -> dict[str, Json]:
        """A page of a list. Whoever has no such list is not Neutron, or lacks an extension: that is no empty list, nor
        a thing that is missing."""
        path = f"/v2.0/{noun}"
        try:
            body = self._caller.json("GET", path, as_user=as_user, what=f"such {noun}", params=params)
        except errors.service.ResourceNotFound:
            raise errors.service.Unavailable(service="network", reason=(
                f"GET {path} is answered with 404: it is not Neutron, or an extension is not loaded there")) from None
        if not isinstance(body.get(key), list):
            raise strange(f"GET {path}")
        return body

    def _by_id(self, noun: str, read: Callable[[Mapping[str, object]], T], ids: Iterable[str],
               filters: Mapping[str, object] | None, as_user: bool = False, key: str = "id") -> tuple[T, ...]:
        wanted = sorted(set(ids))
        if not wanted:
            return self._all(noun, read, filters, as_user) if filters else ()
        return tuple(itertools.chain.from_iterable(
            self._all(noun, read, {**(filters or {}), key: some}, as_user) for some in _chunks(wanted)))


class _Extensions:
    """What the service can do, asked for now and then: by one thread, while others go on with what was known."""

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
                raise  # else it can do what it could; the next one asks again
            return
        self._read_at = self._clock()


def _flat(params: Mapping[str, object]) -> list[tuple[str, object]]:
    """``{"id": ["a", "b"]}`` as Neutron reads it: ``id=a&id=b``."""
    return [(name, one) for name, value in params.items()
            for one in (value if isinstance(value, list | tuple | set | frozenset) else [value])]


def _chunks(ids: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(ids), IDS_AT_ONCE):
        yield list(ids[first:first + IDS_AT_ONCE])


def _next(links: Iterable[Mapping[str, str]]) -> list[tuple[str, Json]] | None:
    """The parameters of the next page. (Its host is what the service thinks it is called: not always how we get
    there.)"""
    for link in links:
        if link.get("rel") == "next":
            return list(parse_qsl(urlsplit(link["href"]).query))
    return None


__all__ = ["BINDINGS", "DNS", "IF_MATCH", "QUOTA_DETAILS", "TOPOLOGY", "Neutron", "of_groups"]
