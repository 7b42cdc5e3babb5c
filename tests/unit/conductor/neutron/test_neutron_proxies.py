"""Old versions' calls on networks, floating addresses and groups, over a Neutron that keeps its things in dicts."""

from __future__ import annotations

import contextlib
import itertools
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.conductor.neutron.proxies import FloatingByNeutron, GroupsByNeutron, NetworksByNeutron
from nova.db.schema.migrate import sync
from nova.model.base import Page, Scope
from nova.model.network.floating import FloatingAssociation, FloatingQuery
from nova.model.network.networks import NEUTRON, Interface, Network
from nova.model.network.ports import NeutronFloating, NeutronGroup, NeutronNetwork, NeutronRule, Port, PortAddress
from nova.model.network.security_groups import GroupMembership, NewSecurityGroup, NewSecurityRule, SecurityGroupQuery
from nova.model.server.servers import ServerQuery
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import add_servers, server_row

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

MINE = Scope(project_id="demo")


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


PUBLIC, PRIVATE, OTHERS = uuid(1), uuid(2), uuid(3)
DEFAULT, WEB = uuid(11), uuid(12)
PORT, UNGUARDED = uuid(21), uuid(22)


class Client:
    """The calls of ``nova.clients.neutron.Neutron`` that the proxies make, by the same names."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.numbers = itertools.count(100)
        self.nets = [NeutronNetwork(id=PUBLIC, name="public", project_id="admin", external=True),
                     NeutronNetwork(id=PRIVATE, name="private", project_id="demo", mtu=1450),
                     NeutronNetwork(id=OTHERS, name="theirs", project_id="other")]
        self.groups = {DEFAULT: NeutronGroup(id=DEFAULT, name="default", project_id="demo", rules=(
            NeutronRule(id=uuid(31), group_id=DEFAULT, direction="egress"),
            NeutronRule(id=uuid(32), group_id=DEFAULT, remote_group_id=DEFAULT),
            NeutronRule(id=uuid(33), group_id=DEFAULT, protocol="tcp"),
            NeutronRule(id=uuid(34), group_id=DEFAULT, protocol="icmp", remote_prefix="10.0.0.0/8"))),
            WEB: NeutronGroup(id=WEB, name="web", project_id="demo")}
        self.held: dict[str, Port] = {}
        self.floats: dict[str, NeutronFloating] = {}
        self.refusal: Exception | None = None

    def _asked(self, what: str) -> None:
        self.calls.append(what)
        if self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal

    def networks(self, filters: Any = None, as_user: bool = False) -> list[NeutronNetwork]:
        self._asked("networks")
        filters = filters or {}
        assert as_user or "tenant_id" in filters
        return [one for one in self.nets if filters.get("id") in (None, one.id)
                and filters.get("tenant_id") in (None, one.project_id)
                and ("router:external" not in filters or one.external)]

    def floating_ips(self, filters: Any = None, as_user: bool = False) -> list[NeutronFloating]:
        self._asked("floating_ips")
        wanted = (filters or {}).get("floating_ip_address")
        return [one for one in self.floats.values() if wanted in (None, one.address)]

    def floating_ip(self, id: str) -> NeutronFloating:
        self._asked("floating_ip")
        if id not in self.floats:
            raise errors.service.ResourceNotFound(service="network", what=id)
        return self.floats[id]

    def create_floating_ip(self, floating_network_id: str) -> NeutronFloating:
        self._asked("create_floating_ip")
        number = next(self.numbers)
        made = NeutronFloating(id=uuid(number), address=f"172.24.4.{number}", network_id=floating_network_id,
                               project_id="demo")
        self.floats[made.id] = made
        return made

    def update_floating_ip(self, id: str, port_id: str | None, fixed_ip_address: str | None = None) -> None:
        self._asked("update_floating_ip")
        holder = self.held[port_id].device_id if port_id else ""
        self.floats[id] = msgspec.structs.replace(self.floats[id], port_id=port_id, fixed_address=fixed_ip_address,
                                                  device_id=holder)

    def delete_floating_ip(self, id: str) -> None:
        self._asked("delete_floating_ip")
        del self.floats[id]

    def ports_of(self, ids: Any) -> list[Port]:
        self._asked("ports")
        return [one for one in self.held.values() if one.device_id in set(ids)]

    def port(self, id: str) -> Port:
        self._asked("port")
        return self.held[id]

    def update_port(self, id: str, fields: Any, if_match: int | None = None, as_user: bool = False) -> None:
        self._asked("update_port")
        assert as_user
        if if_match != self.held[id].revision:
            raise errors.service.Conflict(service="network", reason="revision")
        self.held[id] = msgspec.structs.replace(self.held[id], security_group_ids=tuple(fields["security_groups"]))

    def security_groups(self, filters: Any = None, as_user: bool = False) -> list[NeutronGroup]:
        self._asked("security_groups")
        filters = filters or {}
        names = filters.get("name")
        names = [names] if isinstance(names, str) else names
        return [one for one in self.groups.values() if filters.get("project_id") in (None, one.project_id)
                and (names is None or one.name in names) and filters.get("id") in (None, one.id)]

    def security_groups_by_id(self, ids: Any, fields: Any = ()) -> list[NeutronGroup]:
        self._asked("security_groups")
        return [self.groups[id] for id in ids]

    def security_group(self, id: str, as_user: bool = False) -> NeutronGroup:
        self._asked("security_group")
        if id not in self.groups:
            raise errors.service.ResourceNotFound(service="network", what=id)
        return self.groups[id]

    def create_security_group(self, **fields: Any) -> NeutronGroup:
        self._asked("create_security_group")
        made = NeutronGroup(id=uuid(next(self.numbers)), project_id="demo", **fields)
        self.groups[made.id] = made
        return made

    def delete_security_group(self, id: str) -> None:
        self._asked("delete_security_group")
        del self.groups[id]

    def create_security_rule(self, security_group_id: str, **fields: Any) -> NeutronRule:
        self._asked("create_security_rule")
        names = {"port_range_min": "port_from", "port_range_max": "port_to", "remote_ip_prefix": "remote_prefix"}
        return NeutronRule(id=uuid(next(self.numbers)), group_id=security_group_id,
                           **{names.get(name, name): value for name, value in fields.items()})


class Proxied:
    """Two servers, each with a port; the first with one that no group applies to as well."""

    def __init__(self, database: QuickDatabase) -> None:
        self.client = Client()
        first, second = Interface(id=PORT, mac="", network_id=PRIVATE, label="private"), None
        self.server, self.other = add_servers(database, server_row(interfaces=(first,)), server_row())
        self.client.held = {
            UNGUARDED: Port(id=UNGUARDED, network_id=PRIVATE, device_id=self.server, port_security=False,
                            device_owner="compute:nova", addresses=(PortAddress(address="10.9.9.9"),)),
            PORT: Port(id=PORT, network_id=PRIVATE, device_id=self.server, security_group_ids=(DEFAULT,),
                       addresses=(PortAddress(address="fd00::5"), PortAddress(address="10.1.1.5"))),
            uuid(23): Port(id=uuid(23), network_id=PRIVATE, device_id=self.other, device_owner="compute:nova",
                           addresses=(PortAddress(address="10.1.1.6"),))}
        deps: Any = SimpleNamespace(cell=database)
        self.changed: list[str] = []
        self.networks = NetworksByNeutron(self.client)
        self.floating = FloatingByNeutron(deps, self.client, "public", self.changed.append)
        self.groups = GroupsByNeutron(deps, self.client, self.changed.append)
        assert second is None


@pytest.fixture
def cloud(tmp_path):
    database = QuickDatabase(tmp_path / "cell.sqlite")
    sync("cell", database)
    with contextlib.ExitStack() as ending:
        ending.callback(database.engine.dispose)
        yield Proxied(database)


# -- networks


def test_networks_when_a_project_asks_then_its_own_shared_ones_and_the_outside(cloud):
    assert [one.label for one in cloud.networks.list_networks(MINE)] == ["public", "private"]
    assert len(cloud.networks.list_networks(Scope())) == 3
    shown = cloud.networks.get_network(PRIVATE, MINE)
    assert shown == Network(uuid=PRIVATE, label="private", back_end=NEUTRON)


def test_networks_when_one_project_s_are_everybody_s_then_each_project_is_shown_them_too(cloud):
    networks = NetworksByNeutron(cloud.client, "other")
    assert [one.uuid for one in networks.list_networks(MINE)] == [PUBLIC, PRIVATE, OTHERS]
    assert networks.get_network(OTHERS, MINE).label == "theirs"
    with pytest.raises(errors.network.Absent):
        cloud.networks.get_network(OTHERS, MINE)
    cloud.client.calls.clear()
    assert len(networks.list_networks(Scope())) == 3 and cloud.client.calls == ["networks"]


@pytest.mark.parametrize("id", [OTHERS, uuid(99), "no-uuid"])
def test_network_when_it_is_not_the_projects_or_none_then_not_found(cloud, id):
    with pytest.raises(errors.NotFound):
        cloud.networks.get_network(id, MINE)


def test_networks_when_neutron_has_no_word_for_a_call_then_there_is_no_method(cloud):
    assert not hasattr(cloud.networks, "create_network") and not hasattr(cloud.groups, "list_default_rules")
    assert not hasattr(cloud.floating, "create_floating_addresses")


# -- floating addresses


def test_floating_address_when_it_lives_then_pool_server_and_fixed_address_are_told(cloud):
    assert [one.name for one in cloud.floating.list_floating_pools(MINE)] == ["public"]
    made = cloud.floating.allocate_floating_address("demo", None)
    assert made.pool == "public" and made.server_uuid is None
    cloud.floating.associate_floating_address(FloatingAssociation(server_uuid=cloud.server, address=made.address))
    shown = cloud.floating.get_floating_address(made.id, MINE)
    assert (shown.server_uuid, shown.fixed_address, shown.pool) == (cloud.server, "10.1.1.5", "public")
    assert cloud.floating.list_floating_addresses(FloatingQuery(scope=MINE)) == (shown,)
    cloud.floating.disassociate_floating_address(FloatingAssociation(server_uuid=cloud.server, address=made.address))
    assert cloud.floating.get_floating_address(made.id, MINE).server_uuid is None
    cloud.floating.release_floating_address(made.id, MINE)
    assert cloud.client.floats == {} and cloud.changed == [cloud.server, cloud.server]


def test_floating_address_when_another_server_has_it_then_it_moves_and_both_are_told(cloud):
    made = cloud.floating.allocate_floating_address("demo", "public")
    for server in (cloud.server, cloud.other):
        cloud.floating.associate_floating_address(FloatingAssociation(server_uuid=server, address=made.address))
    assert cloud.floating.get_floating_address(made.id, MINE).server_uuid == cloud.other
    assert sorted(cloud.changed) == sorted([cloud.server, cloud.server, cloud.other])
    with pytest.raises(errors.Conflict):
        cloud.floating.disassociate_floating_address(FloatingAssociation(server_uuid=cloud.server,
                                                                         address=made.address))


@pytest.mark.parametrize(("fixed", "address", "kind"), [
    ("10.9.9.1", "172.24.4.100", errors.Invalid), (None, "172.24.4.99", errors.NotFound)])
def test_associate_when_an_address_is_unknown_then_which(cloud, fixed, address, kind):
    cloud.floating.allocate_floating_address("demo", None)
    with pytest.raises(kind, match=fixed or address):
        cloud.floating.associate_floating_address(
            FloatingAssociation(server_uuid=cloud.server, address=address, fixed_address=fixed))
    assert "update_floating_ip" not in cloud.client.calls


def test_associate_when_no_router_joins_the_networks_then_invalid_with_neutrons_reason(cloud):
    made = cloud.floating.allocate_floating_address("demo", None)
    cloud.client.update_floating_ip = lambda *a, **k: (_ for _ in ()).throw(
        errors.service.ResourceNotFound(service="network", what="external gateway"))
    with pytest.raises(errors.Invalid):
        cloud.floating.associate_floating_address(FloatingAssociation(server_uuid=cloud.server, address=made.address))


@pytest.mark.parametrize(("pool", "refusal", "kind"), [
    ("none such", None, errors.NotFound), ("public", "IpAddressGenerationFailure", errors.NotFound),
    ("public", "Something", errors.Invalid)])
def test_allocate_when_it_cannot_be_then_why(cloud, pool, refusal, kind):
    def refuse(**fields: Any) -> None:
        error = errors.service.Conflict(service="network", reason="none is left")
        error.neutron_type = refusal
        raise error
    cloud.client.create_floating_ip = refuse
    with pytest.raises(kind):
        cloud.floating.allocate_floating_address("demo", pool)


def test_allocate_when_two_pools_have_the_name_then_invalid(cloud):
    cloud.client.nets.append(NeutronNetwork(id=uuid(4), name="public", external=True))
    with pytest.raises(errors.Invalid, match="Multiple"):
        cloud.floating.allocate_floating_address("demo", "public")
    assert cloud.floating.allocate_floating_address("demo", uuid(4))
    cloud.client.nets.append(NeutronNetwork(id=uuid(5), name=uuid(4), external=True))
    assert cloud.floating.allocate_floating_address("demo", uuid(4)).pool == "public"


def test_floating_address_when_it_is_another_projects_or_no_uuid_then_absent_or_a_bad_id(cloud):
    made = cloud.floating.allocate_floating_address("demo", None)
    for id, kind in ((made.id, errors.network.Absent), (uuid(7), errors.network.Absent), ("17", errors.network.BadId)):
        with pytest.raises(kind):
            cloud.floating.release_floating_address(id, Scope(project_id="other"))
    assert made.id in cloud.client.floats


# -- security groups


def test_groups_when_listed_then_incoming_rules_alone_and_the_sources_cost_one_call(cloud):
    groups = cloud.groups.list_security_groups(SecurityGroupQuery(scope=MINE))
    rules = {one.id: one for one in groups[0].rules}
    assert uuid(31) not in rules
    assert (rules[uuid(32)].source_name, rules[uuid(32)].cidr, rules[uuid(32)].protocol) == ("default", None, None)
    assert (rules[uuid(33)].from_port, rules[uuid(33)].to_port, rules[uuid(33)].cidr) == (1, 65535, "0.0.0.0/0")
    assert (rules[uuid(34)].from_port, rules[uuid(34)].cidr) == (-1, "10.0.0.0/8")
    assert cloud.client.calls == ["security_groups"]
    assert [one.name for one in cloud.groups.list_security_groups(
        SecurityGroupQuery(scope=MINE, page=Page(limit=1, offset=1)))] == ["web"]


@pytest.mark.parametrize(("requested", "reported"), [
    ({"protocol": "TCP", "from_port": 22, "to_port": 22, "cidr": "10.0.0.0/8"}, ("tcp", 22, 22, "IPv4")),
    ({"protocol": "icmp", "from_port": -1, "to_port": -1, "cidr": "fd00::/8"}, ("ipv6-icmp", -1, -1, "IPv6")),
    ({"source_id": WEB}, (None, None, None, "IPv4"))])
def test_rule_when_made_then_in_neutrons_words(cloud, requested, reported):
    made = cloud.groups.create_security_rule(NewSecurityRule(group_id=DEFAULT, **requested), MINE)
    version = "IPv6" if made.cidr and ":" in made.cidr else "IPv4"
    assert (made.protocol, made.from_port, made.to_port, version) == reported
    assert made.source_name == ("web" if "source_id" in requested else None)


def test_rule_when_it_is_there_or_the_quota_is_full_then_invalid_or_over_quota(cloud):
    rule = NewSecurityRule(group_id=DEFAULT, protocol="tcp", from_port=1, to_port=1, cidr="0.0.0.0/0")
    for refusal, kind in ((errors.service.Conflict(service="network", reason="exists"), errors.Invalid),
                          (errors.OverQuota("full"), errors.OverQuota)):
        def refuse(refusal=refusal, **fields: Any) -> None:
            raise refusal
        cloud.client.create_security_rule = refuse
        with pytest.raises(kind):
            cloud.groups.create_security_rule(rule, MINE)
    with pytest.raises(errors.Invalid, match="cidr"):
        cloud.groups.create_security_rule(msgspec.structs.replace(rule, cidr="10.0.0.0/99"), MINE)


def test_group_when_it_is_in_use_or_the_default_then_invalid_and_it_stays(cloud):
    made = cloud.groups.create_security_group(NewSecurityGroup(name="db", description="d", project_id="demo"))
    assert (made.name, made.description, made.rules) == ("db", "d", ())
    cloud.groups.delete_security_group(made.id, MINE)

    def refuse(id: str) -> None:
        raise errors.service.Conflict(service="network", reason="in use")
    cloud.client.delete_security_group = refuse
    with pytest.raises(errors.Invalid, match="in use"):
        cloud.groups.delete_security_group(WEB, MINE)
    for id, kind in (("7", errors.network.BadId), (uuid(7), errors.network.Absent)):
        with pytest.raises(kind):
            cloud.groups.get_security_group(id, MINE)


def test_membership_when_changed_then_every_guarded_port_and_no_other(cloud):
    cloud.groups.change_group_membership(GroupMembership(server_uuid=cloud.server, group="web"))
    assert cloud.client.held[PORT].security_group_ids == (DEFAULT, WEB)
    assert cloud.client.held[UNGUARDED].security_group_ids == ()
    assert [one.name for one in cloud.groups.list_server_security_groups(
        ServerQuery(uuid=cloud.server, scope=MINE))] == ["default", "web"]
    cloud.groups.change_group_membership(GroupMembership(server_uuid=cloud.server, group=DEFAULT, member=False))
    assert cloud.client.held[PORT].security_group_ids == (WEB,)
    assert cloud.changed == [cloud.server, cloud.server]


@pytest.mark.parametrize("whose", [{"project_id": "other", "device_owner": "compute:nova"}, {"device_owner": ""},
                                   {"device_owner": "network:dhcp"}])
def test_membership_when_a_port_only_says_it_is_the_server_s_then_it_is_neither_shown_nor_changed(cloud, whose):
    theirs = uuid(23)
    cloud.client.groups[uuid(15)] = NeutronGroup(id=uuid(15), name="theirs", project_id="other")
    cloud.client.held[theirs] = msgspec.structs.replace(
        cloud.client.held[PORT], id=theirs, security_group_ids=(uuid(15),), **whose)
    found = cloud.groups.list_server_security_groups(ServerQuery(uuid=cloud.server, scope=MINE))
    assert [one.name for one in found] == ["default"]
    cloud.groups.change_group_membership(GroupMembership(server_uuid=cloud.server, group="web"))
    assert cloud.client.held[theirs].security_group_ids == (uuid(15),)
    assert cloud.client.held[PORT].security_group_ids == (DEFAULT, WEB)


def test_membership_when_somebody_else_changes_the_port_meanwhile_then_both_changes_hold(cloud):
    ports_of, held = cloud.client.ports_of, cloud.client.held

    def before_the_other(ids):
        found = ports_of(ids)
        held[PORT] = msgspec.structs.replace(held[PORT], revision=7, security_group_ids=(DEFAULT, uuid(14)))
        return found
    cloud.client.ports_of = before_the_other
    cloud.groups.change_group_membership(GroupMembership(server_uuid=cloud.server, group="web"))
    assert held[PORT].security_group_ids == (DEFAULT, uuid(14), WEB)


def test_membership_when_the_name_is_ambiguous_unknown_or_not_the_servers_then_conflict_or_not_found(cloud):
    cloud.client.groups[uuid(13)] = NeutronGroup(id=uuid(13), name="web", project_id="demo")
    for group, member, kind in (("web", True, errors.Conflict), ("none", True, errors.NotFound),
                                (uuid(13), False, errors.NotFound)):
        with pytest.raises(kind):
            cloud.groups.change_group_membership(
                GroupMembership(server_uuid=cloud.server, group=group, member=member))
    cloud.client.held = {UNGUARDED: cloud.client.held[UNGUARDED]}
    with pytest.raises(errors.Invalid):
        cloud.groups.change_group_membership(GroupMembership(server_uuid=cloud.server, group=DEFAULT))
    assert "update_port" not in cloud.client.calls
    with pytest.raises(errors.NotFound):
        cloud.groups.list_server_security_groups(ServerQuery(uuid=cloud.server, scope=Scope(project_id="other")))


def test_membership_when_the_group_cannot_be_had_then_it_is_named_and_not_the_port(cloud):
    def refuse(*_args: Any, **_fields: Any) -> None:
        raise errors.service.ReferenceMissing(service="network", reason=f"Security group {WEB} does not exist")
    cloud.client.update_port = refuse
    with pytest.raises(errors.NotFound, match=f"Security group {WEB} does not exist"):
        cloud.groups.change_group_membership(GroupMembership(server_uuid=cloud.server, group=WEB))
