"""What FakeNeutron has: networks, ports and all else, and which of them a caller may see or change."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from nova import decoding
from nova.devel.network.kinds import (
    GROUP,
    KINDS,
    NETWORK,
    PORT,
    RULE,
    SUBNET,
    NetworkError,
    NeutronKind,
    is_privileged,
)
from nova.devel.service import FakeCall, TokenOwner
from nova.model.base import Json, utcnow

Thing = dict[str, Json]
QUOTAS: Mapping[str, int] = {"network": 100, "subnet": 100, "port": 500, "router": 10, "floatingip": 50,
                             "security_group": 10, "security_group_rule": 100}
DEFAULT = "default"  # the name of each project's own security group
OF_SERVERS = "compute:"  # how the device_owner of servers' ports begins


class PortNews(NamedTuple):
    """What nova is told of a server's port. ``name``: of an external event."""

    name: str
    server_id: str
    port_id: str


class NetworkShelf:
    """``things``: by kind's plural and id. ``bindings``: by the port's id and the host. ``quotas``: what projects may
    have that the defaults do not say. ``news``: of servers' ports, since somebody took them."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Thing]] = {kind.plural: {} for kind in KINDS}
        self.bindings: dict[str, dict[str, Thing]] = {}
        self.quotas: dict[str, dict[str, int]] = {}
        self.segments = 0  # how many have been given to networks
        self.news: list[PortNews] = []
        self.changed: Callable[[], None] = lambda: None  # is called for changes that a GET makes

    def packed(self) -> bytes:
        """All of it, but for news: whoever starts again looks for itself."""
        return msgspec.msgpack.encode((self.things, self.bindings, self.quotas, self.segments))

    def restore(self, packed: bytes) -> None:
        """Become what was packed."""
        self.things, self.bindings, self.quotas, self.segments = decoding.from_msgpack(packed, _PACKED)

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """All that the block changes, or nothing of it."""
        before, news = self.packed(), len(self.news)
        try:
            yield
        except Exception:
            self.restore(before)
            del self.news[news:]
            raise

    def of(self, kind: NeutronKind) -> dict[str, Thing]:
        """All of a kind, by id."""
        return self.things[kind.plural]

    def where(self, kind: NeutronKind, **members: Json) -> list[Thing]:
        """Those whose members are so."""
        return [one for one in self.of(kind).values() if all(one[name] == value for name, value in members.items())]

    def insert(self, kind: NeutronKind, project_id: str | None, members: Mapping[str, Json]) -> Thing:
        """A new one, with an id, times and a revision."""
        now = time_text()
        thing = {"id": str(uuid.uuid4()), "tenant_id": project_id or "", "project_id": project_id or "",
                 **{name: member.default for name, member in kind.members.items()}, **members,
                 "revision_number": 0, "created_at": now, "updated_at": now, "tags": []}
        self.of(kind)[thing["id"]] = thing
        return thing

    def remove(self, kind: NeutronKind, thing: Thing) -> None:
        """It is no more."""
        del self.of(kind)[thing["id"]]

    # --- who may see and change what

    def may_see(self, kind: NeutronKind, thing: Thing, owner: TokenOwner) -> bool:
        """Whether one who knows its id sees it."""
        if is_privileged(owner) or is_own(thing, owner):
            return True
        if kind == NETWORK:
            return bool(thing["shared"] or thing["router:external"])
        if kind in (SUBNET, PORT):
            network = self.of(NETWORK)[thing["network_id"]]
            return bool(kind == SUBNET and network["shared"]) or is_own(network, owner)
        return False

    def seen(self, kind: NeutronKind, key: str, owner: TokenOwner) -> Thing:
        """The one of that id. 404, also where the caller may not see it."""
        thing = self.of(kind).get(key)
        if thing is None or not self.may_see(kind, thing, owner):
            raise kind.missing(key)
        return thing

    def own(self, kind: NeutronKind, key: str, owner: TokenOwner) -> Thing:
        """The same, to be changed: 403 for what is another project's."""
        thing = self.seen(kind, key, owner)
        if not is_privileged(owner) and not is_own(thing, owner) and not (
                kind == PORT and is_own(self.of(NETWORK)[thing["network_id"]], owner)):
            raise forbidden(f"update_{kind.name}")
        check_writer(owner, f"update_{kind.name}")
        return thing

    def shown(self, kind: NeutronKind, thing: Thing, owner: TokenOwner) -> Thing:
        """As its caller sees it."""
        found = {name: value for name, value in thing.items()
                 if is_privileged(owner) or name not in kind.members or not kind.members[name].hidden}
        if kind == GROUP:
            found["security_group_rules"] = self.where(RULE, security_group_id=thing["id"])
        if kind == PORT:
            found |= self._of_binding(thing) if is_privileged(owner) else {}
            found["dns_assignment"] = [dns_record(thing["dns_name"], one["ip_address"]) for one in thing["fixed_ips"]]
        if kind == NETWORK:
            found["subnets"] = [one["id"] for one in self.where(SUBNET, network_id=thing["id"])]
        return found

    def _of_binding(self, port: Thing) -> Thing:
        mine = self.bindings.get(port["id"], {}).get(port["binding:host_id"])
        return {"binding:vif_type": mine["vif_type"] if mine else "unbound",
                "binding:vif_details": mine["vif_details"] if mine else {}}

    # --- quotas

    def limit(self, project_id: str, name: str) -> int:
        """How many the project may have; -1 is any number."""
        return self.quotas.get(project_id, {}).get(name, QUOTAS[name])

    def used(self, project_id: str, name: str) -> int:
        """How many it has."""
        return sum(one["project_id"] == project_id for one in self.things[f"{name}s"].values())

    def check_quota(self, kind: NeutronKind, project_id: str) -> None:
        """409: one more is too many."""
        if 0 <= self.limit(project_id, kind.name) <= self.used(project_id, kind.name):
            raise NetworkError(409, "OverQuota", f"Quota exceeded for resources: ['{kind.name}'].")

    # --- security groups that come by themselves

    def default_group(self, project_id: str) -> Thing:
        """The project's, made when it is first needed."""
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

    def let_out(self, group: Thing) -> None:
        """The rules of every new group: whatever leaves may leave."""
        for ethertype in ("IPv4", "IPv6"):
            self.insert(RULE, group["project_id"], {"security_group_id": group["id"], "direction": "egress",
                                                    "ethertype": ethertype})

    # --- nova

    def tell(self, name: str, port: Thing) -> None:
        """Nova shall know it, where the port is a server's."""
        if port["device_owner"].startswith(OF_SERVERS) and port["device_id"]:
            self.news.append(PortNews(name, port["device_id"], port["id"]))


_Shelves = dict[str, dict[str, Thing]]
_PACKED: type[tuple[_Shelves, _Shelves, dict[str, dict[str, int]], int]] = tuple[
    _Shelves, _Shelves, dict[str, dict[str, int]], int]


def is_own(thing: Mapping[str, Json], owner: TokenOwner) -> bool:
    """Whether it is the project's that the token is for."""
    return owner.project_id is not None and thing["project_id"] == owner.project_id


def forbidden(rule: str) -> NetworkError:
    """403, as policies word it."""
    return NetworkError(403, "HTTPForbidden", f"rule:{rule} is disallowed by policy")


def check_writer(owner: TokenOwner, rule: str) -> None:
    """403 for a token that may only read, or has no project."""
    if not owner.roles - {"reader"} or (owner.project_id is None and not is_privileged(owner)):
        raise forbidden(rule)


def touch(thing: Thing, members: Mapping[str, Json]) -> None:
    """It is changed: one revision more."""
    thing.update(members, revision_number=thing["revision_number"] + 1, updated_at=time_text())


def check_revision(thing: Thing, call: FakeCall) -> None:
    """412: the caller changes a revision that is not the newest (If-Match)."""
    wanted = call.http.headers.get("If-Match")
    if wanted is not None and wanted.strip('"') != f"revision_number={thing['revision_number']}":
        raise NetworkError(412, "RevisionNumberConstraintFailed", f"Constrained to {wanted}, but current revision is "
                           f"{thing['revision_number']}")


def dns_record(name: str, address: str) -> Thing:
    """Of a port's address; without a name of its own it is called by the address."""
    hostname = name or f"host-{address.replace('.', '-').replace(':', '-')}"
    return {"hostname": hostname, "ip_address": address, "fqdn": f"{hostname}.openstacklocal."}


def time_text() -> str:
    """Now, as Neutron writes it."""
    return utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
