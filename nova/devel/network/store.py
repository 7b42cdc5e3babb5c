"""Store of FakeNeutron: networks, ports and all other resources, and the callers' access to them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, cast

import msgspec

from nova import decoding, failures
from nova.devel.network.kinds import (
    GROUP,
    KINDS,
    NETWORK,
    PORT,
    RULE,
    SUBNET,
    NetworkError,
    NeutronKind,
    Record,
    is_privileged,
)
from nova.devel.network.records import BindingRecord, GroupRecord, NeutronResource, PortRecord, SubnetRecord
from nova.devel.service import FakeCall, TokenOwner
from nova.model.base import Json, utcnow

QUOTAS: Mapping[str, int] = {"network": 100, "subnet": 100, "port": 500, "router": 10, "floatingip": 50,
                             "security_group": 10, "security_group_rule": 100}
DEFAULT = "default"  # name of each project's own security group
OF_SERVERS = "compute:"  # prefix of the device_owner of servers' ports


class PortNews(NamedTuple):
    """Event for nova about a server's port. ``name``: of the external event."""

    name: str
    server_id: str
    port_id: str


class FakeNetworkStore:
    """Store of all resources. ``things``: by the kind's plural and id. ``bindings``: by the port's id and the host.
    ``quotas``: non-default limits of projects. ``news``: undelivered events about servers' ports."""

    def __init__(self) -> None:
        self.things: _Shelves = {kind.plural: {} for kind in KINDS}
        self.bindings: dict[str, dict[str, BindingRecord]] = {}
        self.quotas: dict[str, dict[str, int]] = {}
        self.segments = 0  # number of segments assigned to networks
        self.news: list[PortNews] = []
        self.changed: Callable[[], None] = lambda: None  # called after changes that a GET causes

    def packed(self) -> bytes:
        """Return all data except events: after a restart, nova reads the ports itself."""
        return msgspec.msgpack.encode((self.things, self.bindings, self.quotas, self.segments))

    def restore(self, packed: bytes) -> None:
        """Load packed data."""
        self.things, bindings, self.quotas, self.segments = decoding.from_msgpack(packed, _PACKED)
        self.bindings = cast(dict[str, dict[str, BindingRecord]], bindings)

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Run the block as a transaction: its changes are undone if it raises."""
        before, news = self.packed(), len(self.news)

        def undo() -> None:
            self.restore(before)
            del self.news[news:]
        with failures.on_failure(undo):
            yield

    def of(self, kind: NeutronKind[Record]) -> dict[str, Record]:
        """Return all resources of a kind, by id."""
        return cast(dict[str, Record], self.things[kind.plural])

    def where(self, kind: NeutronKind[Record], **members: object) -> list[Record]:
        """Return the resources with these values of members."""
        stored = self.things[kind.plural]
        return [one for key, one in self.of(kind).items()
                if all(stored[key][name] == value for name, value in members.items())]

    def insert(self, kind: NeutronKind[Record], project_id: str | None, members: Mapping[str, object]) -> Record:
        """Add a resource, with an id, times and a revision."""
        now = time_text()
        key = str(uuid.uuid4())
        self.things[kind.plural][key] = {
                 "id": key, "tenant_id": project_id or "", "project_id": project_id or "",
                 **{name: member.default for name, member in kind.members.items()}, **members,
                 "revision_number": 0, "created_at": now, "updated_at": now, "tags": []}
        return self.of(kind)[key]

    def remove(self, kind: NeutronKind[Record], thing: Record) -> None:
        """Delete a resource."""
        del self.of(kind)[thing["id"]]

    # --- access

    def may_see(self, kind: NeutronKind[Record], thing: Record, owner: TokenOwner) -> bool:
        """Return whether a caller who knows its id may see the resource."""
        if is_privileged(owner) or is_own(thing, owner):
            return True
        if kind == NETWORK:
            network = self.of(NETWORK)[thing["id"]]
            return network["shared"] or network["router:external"]
        if kind in (SUBNET, PORT):
            network = self.of(NETWORK)[cast(SubnetRecord | PortRecord, thing)["network_id"]]
            return bool(kind == SUBNET and network["shared"]) or is_own(network, owner)
        return False

    def seen(self, kind: NeutronKind[Record], key: str, owner: TokenOwner) -> Record:
        """Return the resource of that id. Raises 404, also if the caller may not see it."""
        thing = self.of(kind).get(key)
        if thing is None or not self.may_see(kind, thing, owner):
            raise kind.missing(key)
        return thing

    def own(self, kind: NeutronKind[Record], key: str, owner: TokenOwner) -> Record:
        """Return the resource for a change. Raises 403 for another project's."""
        thing = self.seen(kind, key, owner)
        if not is_privileged(owner) and not is_own(thing, owner) and not (
                kind == PORT and is_own(self.of(NETWORK)[self.of(PORT)[key]["network_id"]], owner)):
            raise forbidden(f"update_{kind.name}")
        check_writer(owner, f"update_{kind.name}")
        return thing

    def shown(self, kind: NeutronKind[Record], thing: Record, owner: TokenOwner) -> dict[str, object]:
        """Return the resource as the caller may see it."""
        found: dict[str, object] = {
                 name: value for name, value in thing.items()
                 if is_privileged(owner) or name not in kind.members or not kind.members[name].hidden}
        if kind == GROUP:
            found["security_group_rules"] = self.where(RULE, security_group_id=thing["id"])
        if kind == PORT:
            port = self.of(PORT)[thing["id"]]
            found |= self._of_binding(port) if is_privileged(owner) else {}
            found["dns_assignment"] = [dns_record(port["dns_name"], one["ip_address"]) for one in port["fixed_ips"]]
        if kind == NETWORK:
            found["subnets"] = [one["id"] for one in self.where(SUBNET, network_id=thing["id"])]
        return found

    def _of_binding(self, port: PortRecord) -> dict[str, object]:
        mine = self.bindings.get(port["id"], {}).get(port["binding:host_id"])
        return {"binding:vif_type": mine["vif_type"] if mine else "unbound",
                "binding:vif_details": mine["vif_details"] if mine else {}}

    # --- quotas

    def limit(self, project_id: str, name: str) -> int:
        """Return the limit of a project; -1 means unlimited."""
        return self.quotas.get(project_id, {}).get(name, QUOTAS[name])

    def used(self, project_id: str, name: str) -> int:
        """Return the number of a project's resources."""
        return sum(one["project_id"] == project_id for one in self.things[f"{name}s"].values())

    def check_quota(self, kind: NeutronKind[NeutronResource], project_id: str) -> None:
        """Raise 409 if one more resource would exceed the quota."""
        if 0 <= self.limit(project_id, kind.name) <= self.used(project_id, kind.name):
            raise NetworkError(409, "OverQuota", f"Quota exceeded for resources: ['{kind.name}'].")

    # --- default security groups

    def default_group(self, project_id: str) -> GroupRecord:
        """Return the project's default group, created on first use."""
        found = self.where(GROUP, project_id=project_id, name=DEFAULT)
        if found:
            return found[0]
        made = self.insert(GROUP, project_id, {"name": DEFAULT, "description": "Default security group"})
        self.let_out(made)
        for ethertype in ("IPv4", "IPv6"):
            self.insert(RULE, project_id, {"security_group_id": made["id"], "direction": "ingress",
                                           "ethertype": ethertype, "remote_group_id": made["id"]})
        self.changed()
        return made

    def let_out(self, group: GroupRecord) -> None:
        """Add the rules of every new group, which allow all outgoing traffic."""
        for ethertype in ("IPv4", "IPv6"):
            self.insert(RULE, group["project_id"], {"security_group_id": group["id"], "direction": "egress",
                                                    "ethertype": ethertype})

    # --- nova

    def tell(self, name: str, port: PortRecord) -> None:
        """Queue an event for nova, if the port is a server's."""
        if port["device_owner"].startswith(OF_SERVERS) and port["device_id"]:
            self.news.append(PortNews(name, port["device_id"], port["id"]))


_Shelves = dict[str, dict[str, dict[str, Json]]]  # what is loaded, whose members are not checked
_PACKED: type[tuple[_Shelves, _Shelves, dict[str, dict[str, int]], int]] = tuple[
    _Shelves, _Shelves, dict[str, dict[str, int]], int]


def is_own(thing: NeutronResource, owner: TokenOwner) -> bool:
    """Return whether the resource belongs to the token's project."""
    return owner.project_id is not None and thing["project_id"] == owner.project_id


def forbidden(rule: str) -> NetworkError:
    """Return a 403 error in the form of a policy failure."""
    return NetworkError(403, "HTTPForbidden", f"rule:{rule} is disallowed by policy")


def check_writer(owner: TokenOwner, rule: str) -> None:
    """Raise 403 for a token that may only read, or has no project."""
    if not owner.roles - {"reader"} or (owner.project_id is None and not is_privileged(owner)):
        raise forbidden(rule)


def touch(thing: NeutronResource, members: Mapping[str, object]) -> None:
    """Change members, and increment the revision."""
    cast(dict[str, object], thing).update(members, revision_number=thing["revision_number"] + 1, updated_at=time_text())


def check_revision(thing: NeutronResource, call: FakeCall) -> None:
    """Raise 412 if the caller changes an outdated revision (If-Match)."""
    wanted = call.http.headers.get("If-Match")
    if wanted is not None and wanted.strip('"') != f"revision_number={thing['revision_number']}":
        raise NetworkError(412, "RevisionNumberConstraintFailed", f"Constrained to {wanted}, but current revision is "
                           f"{thing['revision_number']}")


def dns_record(name: str, address: str) -> dict[str, str]:
    """Return the DNS record of a port's address; the default name is made of the address."""
    hostname = name or f"host-{address.replace('.', '-').replace(':', '-')}"
    return {"hostname": hostname, "ip_address": address, "fqdn": f"{hostname}.openstacklocal."}


def time_text() -> str:
    """Return the current time in Neutron's format."""
    return utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
