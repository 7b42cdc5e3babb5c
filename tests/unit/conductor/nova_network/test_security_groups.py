"""Security groups: what may be made and changed, by how many at once, and who is told."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.compute.filter.firewall import Firewall
from nova.conductor.nova_network import host_rules
from nova.db.models import cell as tables
from nova.db.network import security_groups as rows
from nova.model.base import Page, Scope
from nova.model.network.security_groups import (
    AllowedTraffic,
    GroupMembership,
    HostFirewall,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
    SecurityRule,
)
from nova.model.quota.quotas import QuotaUpdate
from nova.model.server.servers import ServerQuery
from tests.fakes.racing import together
from tests.fakes.small_cloud import DEMO, SmallCloud, until

MINE, THEIRS = Scope(project_id="demo"), Scope(project_id="other")
SSH = AllowedTraffic(protocol="tcp", from_port=22, to_port=22, cidr="192.0.2.0/24")


def listed(cloud: SmallCloud, scope: Scope = MINE, **page: Any) -> list[str]:
    with context.entered(DEMO):
        query = SecurityGroupQuery(scope=scope, page=Page(**page))
        return [group.name for group in cloud.control.list_security_groups(query)]


def group(cloud: SmallCloud, name: str = "web", project: str = "demo") -> SecurityGroup:
    with context.entered(DEMO):
        return cloud.control.create_security_group(NewSecurityGroup(name=name, project_id=project))


def default(cloud: SmallCloud) -> SecurityGroup:
    with context.entered(DEMO):
        return cloud.control.list_security_groups(SecurityGroupQuery(scope=MINE, names=("default",)))[0]


def ssh(cloud: SmallCloud, to: SecurityGroup, port: int = 22, cidr: str = "192.0.2.0/24") -> SecurityRule:
    return rule(cloud, to, protocol="tcp", from_port=port, to_port=port, cidr=cidr)


def rule(cloud: SmallCloud, to: SecurityGroup, scope: Scope = MINE, **fields: Any) -> SecurityRule:
    with context.entered(DEMO):
        return cloud.control.create_security_rule(NewSecurityRule(group_id=to.id, **fields), scope)


def on(cloud: SmallCloud, host: str = "a") -> HostFirewall:
    with cloud.cell.reading() as tx:
        return host_rules.of_host(tx, host, "instance-%08x")


def refreshed(cloud: SmallCloud) -> list[str]:
    return [host for host, compute in sorted(cloud.computes.items()) for _ in compute.asked("refresh_firewall")]


def members(cloud: SmallCloud) -> set[str]:
    return {row.server_uuid for row in cloud.rows("cell", sa.select(tables.security_group_members))}


# -- groups

def test_default_group_when_many_look_first_then_it_is_one_with_the_default_rules(cloud):
    cloud.control.create_default_rule(NewSecurityRule(group_id="", protocol="TCP", from_port=80, to_port=80))
    results = together([lambda: listed(cloud)] * 8)
    assert results == [["default"]] * 8
    [made] = cloud.rows("cell", sa.select(tables.security_group_rules))
    assert (made.protocol, made.from_port, made.cidr) == ("tcp", 80, "0.0.0.0/0")


def test_default_group_when_it_is_renamed_or_deleted_then_that_is_refused(cloud):
    known = default(cloud)
    with pytest.raises(errors.Invalid, match="Unable to update system group"):
        cloud.control.update_security_group(SecurityGroupUpdate(id=known.id, scope=MINE, name="x"))
    with pytest.raises(errors.Invalid, match="Unable to delete system group"):
        cloud.control.delete_security_group(known.id, MINE)


def test_group_when_another_project_looks_then_it_is_not_there(cloud):
    made = group(cloud)
    assert cloud.control.get_security_group(made.id, MINE) == made
    for refused in (lambda: cloud.control.get_security_group(made.id, THEIRS),
                    lambda: cloud.control.delete_security_group(made.id, THEIRS),
                    lambda: rule(cloud, made, THEIRS, protocol="icmp")):
        with pytest.raises(errors.NotFound):
            refused()
    with pytest.raises(errors.NotFound):  # `openstack` looks by name first, and lists when told so
        cloud.control.get_security_group("web", MINE)
    with pytest.raises(errors.Invalid):
        cloud.control.delete_security_group("web", MINE)
    assert listed(cloud) == ["default", "web"] and listed(cloud, limit=1, offset=1) == ["web"]
    assert listed(cloud, offset=1) == ["web"]


def test_group_when_its_name_is_taken_then_it_is_refused_and_renames_are_shown(cloud):
    made, other = group(cloud), group(cloud, "db")
    with pytest.raises(errors.Invalid, match="already exists"):
        group(cloud)
    with pytest.raises(errors.Invalid, match="already exists"):
        cloud.control.update_security_group(SecurityGroupUpdate(id=other.id, scope=MINE, name="web"))
    assert group(cloud, project="other").name == "web"
    uuid, = cloud.active(security_groups=("web", "default"))
    cloud.control.update_security_group(SecurityGroupUpdate(id=made.id, scope=MINE, name="www", description="new"))
    assert cloud.server(uuid).security_groups == ("www", "default")
    of_server = cloud.control.list_server_security_groups(ServerQuery(uuid=uuid, scope=MINE))
    assert {one.name for one in of_server} == {"default", "www"}
    assert cloud.control.get_security_group(made.id, MINE).description == "new"


def test_group_when_a_server_is_in_it_then_it_stays_until_the_server_is_gone(cloud):
    made = group(cloud)
    uuid, = cloud.active(security_groups=("web",))
    with pytest.raises(errors.Invalid, match="still in use"):
        cloud.control.delete_security_group(made.id, MINE)
    cloud.delete(uuid)
    assert members(cloud) == set()
    cloud.control.delete_security_group(made.id, MINE)
    assert listed(cloud) == ["default"]


def test_create_when_a_group_is_unknown_then_it_is_refused_before_anything_is_made(cloud):
    with pytest.raises(errors.Invalid, match="Security group nowhere could not be found"):
        cloud.boot(security_groups=("nowhere",))
    assert cloud.open_ledger() == set()
    made = group(cloud)
    uuid, = cloud.active(security_groups=(made.id,))
    assert cloud.server(uuid).security_groups == ("web",) and members(cloud) == {uuid}


# -- quotas

def test_groups_when_many_race_then_the_quota_holds(cloud):
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"security_groups": 4}))
    results = together([lambda at=at: group(cloud, f"g{at}") for at in range(8)])
    assert sum(isinstance(one, SecurityGroup) for one in results) == 3  # the default group counts
    assert {one.kind for one in results if isinstance(one, errors.NovaError)} == {"over_quota"}
    assert len(listed(cloud)) == 4
    used = cloud.control.get_quotas("demo", None, True).in_use
    assert (used["security_groups"], used["security_group_rules"]) == (4, 0)


def test_rules_when_many_race_then_the_quota_of_each_group_holds(cloud):
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"security_group_rules": 3}))
    made, other = group(cloud), group(cloud, "db")
    results = together([lambda at=at: ssh(cloud, made, at) for at in range(1, 9)])
    assert sum(isinstance(one, SecurityRule) for one in results) == 3
    ssh(cloud, other)
    assert cloud.control.get_quotas("demo", None, True).in_use["security_group_rules"] == 3


def test_rule_when_it_is_there_then_it_is_refused_however_many_race(cloud):
    made = group(cloud)
    results = together([lambda: ssh(cloud, made)] * 6)
    assert sum(isinstance(one, SecurityRule) for one in results) == 1
    assert {one.kind for one in results if isinstance(one, errors.NovaError)} == {"invalid"}


# -- who is told

def test_boot_when_no_rule_names_a_group_then_nobody_is_told(cloud):
    uuid, = cloud.active()
    order = cloud.computes["a"].built()[0]
    assert order.firewall is not None and order.firewall == on(cloud).guests[0]
    assert [one.addresses for one in order.firewall.interfaces] == [(cloud.addresses()[uuid],)]
    cloud.delete(uuid)
    assert refreshed(cloud) == [] and on(cloud).guests == ()


def test_rule_when_it_is_made_or_deleted_then_only_hosts_of_members_are_told(cloud):
    made = group(cloud)
    cloud.active(security_groups=("web",))
    made_rule = ssh(cloud, made)
    assert refreshed(cloud) == ["a"] and on(cloud).guests[0].allowed == (SSH,) and on(cloud, "b").guests == ()
    cloud.control.delete_security_rule(made_rule.id, MINE)
    assert refreshed(cloud) == ["a", "a"] and on(cloud).guests[0].allowed == ()


def test_boot_when_a_group_lets_it_in_then_the_hosts_of_its_members_are_told(cloud):
    web = group(cloud)
    group(cloud, "db")
    app = group(cloud, "app")
    rule(cloud, web, source_id=app.id, protocol="tcp", from_port=80, to_port=81)
    cloud.active(security_groups=("web",))
    cloud.active(security_groups=("db",))
    assert refreshed(cloud) == []
    peer, = cloud.active(security_groups=("app",))
    until(lambda: refreshed(cloud) == ["a"], "the host of the member is told")
    allowed = {traffic.cidr for guest in on(cloud).guests for traffic in guest.allowed}
    assert allowed == {f"{cloud.addresses()[peer]}/32"}
    cloud.delete(peer)
    assert refreshed(cloud) == ["a", "a"]
    assert all(guest.allowed == () for guest in on(cloud).guests)


def test_rule_when_its_source_has_no_protocol_then_all_of_it_is_let_in(cloud):
    known = default(cloud)
    rule(cloud, known, source_id=known.id)
    uuid, = cloud.active()
    [mine] = on(cloud).guests
    assert [(one.protocol, one.from_port, one.to_port) for one in mine.allowed] == [
        ("tcp", 1, 65535), ("udp", 1, 65535), ("icmp", -1, -1)]
    assert {one.cidr for one in mine.allowed} == {f"{cloud.addresses()[uuid]}/32"}


def test_rule_when_its_source_group_is_deleted_then_it_goes_and_lets_nobody_in(cloud):
    web, app = group(cloud), group(cloud, "app")
    rule(cloud, web, source_id=app.id)
    cloud.active(security_groups=("web",))
    cloud.control.delete_security_group(app.id, MINE)
    assert cloud.control.get_security_group(web.id, MINE).rules == () and on(cloud).guests[0].allowed == ()
    with pytest.raises(errors.NotFound):
        rule(cloud, web, source_id=app.id)


def test_rule_when_a_host_does_not_answer_then_it_is_made_all_the_same(cloud):
    made = group(cloud)
    cloud.active(security_groups=("web",))
    cloud.computes["a"].given(refresh_firewall=errors.Unavailable("away"))
    assert ssh(cloud, made).protocol == "tcp"
    assert cloud.control.get_security_group(made.id, MINE).rules


def test_provider_rule_when_it_is_made_then_every_compute_host_drops_it(cloud):
    made = cloud.control.create_provider_rule(NewSecurityRule(group_id="", protocol="tcp", from_port=25, to_port=25))
    assert refreshed(cloud) == ["a", "b"]
    assert on(cloud, "b").dropped == (AllowedTraffic(protocol="tcp", from_port=25, to_port=25, cidr="0.0.0.0/0"),)
    assert [one.id for one in cloud.control.list_provider_rules()] == [made.id]
    with pytest.raises(errors.Conflict):
        cloud.control.create_provider_rule(NewSecurityRule(group_id="", protocol="tcp", from_port=25, to_port=25))
    cloud.control.delete_provider_rule(made.id)
    assert on(cloud, "b").dropped == ()
    with pytest.raises(errors.NotFound):
        cloud.control.delete_provider_rule(made.id)


# -- members

def test_member_when_it_joins_and_leaves_then_its_rules_and_what_is_shown_follow(cloud):
    made = group(cloud)
    ssh(cloud, made)
    uuid, = cloud.active()
    change = cloud.control.change_group_membership
    change(GroupMembership(server_uuid=uuid, group="web"))
    assert cloud.server(uuid).security_groups == ("default", "web") and on(cloud).guests[0].allowed == (SSH,)
    with pytest.raises(errors.Invalid, match="already associated"):
        change(GroupMembership(server_uuid=uuid, group=made.id))
    change(GroupMembership(server_uuid=uuid, group=made.id, member=False))
    assert cloud.server(uuid).security_groups == ("default",) and on(cloud).guests[0].allowed == ()
    with pytest.raises(errors.NotFound, match="not associated"):
        change(GroupMembership(server_uuid=uuid, group="web", member=False))
    with pytest.raises(errors.NotFound):
        change(GroupMembership(server_uuid=uuid, group="nowhere"))
    assert refreshed(cloud) == ["a", "a"]


def test_move_when_it_is_under_way_then_both_ends_have_the_rules(cloud):
    uuid, = cloud.active()
    now = sa.func.strftime("%Y-%m-%d %H:%M:%f000", "now")
    cloud.write("cell", sa.insert(tables.migrations).values(
        uuid="f" * 36, server_uuid=uuid, type="migration", status="migrating", source_compute="a", dest_compute="b",
        created_at=now))
    assert [guest.server_uuid for guest in on(cloud, "b").guests] == [uuid] == \
        [guest.server_uuid for guest in on(cloud).guests]
    cloud.write("cell", sa.update(tables.migrations).values(status="done"))
    assert on(cloud, "b").guests == ()


def test_member_when_it_comes_or_goes_while_one_that_lets_it_in_moves_then_both_ends_are_told(cloud):
    web, app = group(cloud), group(cloud, "app")
    rule(cloud, web, source_id=app.id, protocol="tcp", from_port=80, to_port=80)
    listens, = cloud.active(security_groups=("web",))
    here = cloud.server(listens).host
    cloud.write("cell", sa.insert(tables.migrations).values(
        uuid="00000000-0000-4000-8000-00000000abcd", server_uuid=listens, type="live-migration", status="running",
        source_compute=here, dest_compute="elsewhere", created_at=sa.func.strftime("%Y-%m-%d %H:%M:%f000", "now")))
    member, = cloud.active(security_groups=("app",))
    with cloud.cell.reading() as tx:
        found = host_rules.of_guests(tx, [cloud.server(member)], "instance-%08x")
        assert found.let_in_on == {here, "elsewhere"}
    with cloud.cell.reading() as tx:
        assert rows.hosts_letting_in_servers(tx, [member]) == {here, "elsewhere"}
    cloud.write("cell", sa.update(tables.migrations).values(status="completed"))
    with cloud.cell.reading() as tx:
        assert rows.hosts_letting_in_servers(tx, [member]) == {here}


def test_host_when_it_asks_then_the_statements_do_not_grow_with_its_guests(cloud):
    known = default(cloud)
    rule(cloud, known, source_id=known.id)

    def cost() -> int:
        seen: list[str] = []

        def note(*args: Any) -> None:
            seen.append(str(args[2]))
        sa.event.listen(cloud.cell.engine, "before_cursor_execute", note)
        on(cloud)
        sa.event.remove(cloud.cell.engine, "before_cursor_execute", note)
        return len(seen)
    cloud.active(1)
    few = cost()
    cloud.active(5)
    assert cost() == few <= 6


class Kept:
    """A host's filter that keeps the state."""

    def __init__(self) -> None:
        self.state: HostFirewall | None = None

    def apply(self, state: HostFirewall) -> bool:
        changed, self.state = state != self.state, state
        return changed

    def lacks(self) -> str:
        return ""


@pytest.mark.parametrize("seed", range(3))
def test_hosts_when_changes_come_in_any_order_then_they_end_with_what_the_rows_say(cloud, seed):
    choose = random.Random(seed)
    filters = {}
    for host, compute in cloud.computes.items():
        filters[host] = Kept()
        wall = Firewall(cloud.hosts, host, filters[host], lambda compute=compute: set(compute.guests))
        wall.refresh()
        compute.given(refresh_firewall=lambda host, wall=wall: wall.refresh())
        compute.before["build"] = lambda orders, wall=wall: [wall.guard(order) for order in orders]
        compute.before["destroy"] = lambda orders, wall=wall: [wall.drop(order.server_uuid) for order in orders]
    groups = [default(cloud), group(cloud, "one"), group(cloud, "two")]
    rule(cloud, groups[0], source_id=groups[1].id)
    servers: list[str] = []

    def boot() -> None:
        servers.extend(cloud.active(security_groups=(choose.choice(groups).name,)))

    def leave_or_join() -> None:
        for uuid in servers[:2]:
            try:
                cloud.control.change_group_membership(GroupMembership(
                    server_uuid=uuid, group=choose.choice(groups).id, member=choose.random() < 0.5))
            except (errors.Invalid, errors.NotFound):
                continue

    def change_rules() -> None:
        into = cloud.control.get_security_group(choose.choice(groups).id, MINE)
        if into.rules and choose.random() < 0.5:
            cloud.control.delete_security_rule(choose.choice(into.rules).id, MINE)
        else:
            rule(cloud, into, source_id=choose.choice(groups).id, protocol="udp", from_port=choose.randint(1, 9),
                 to_port=9)

    def delete() -> None:
        if len(servers) > 1:
            cloud.delete(servers.pop(0))
    for _ in range(12):
        choose.choice((boot, leave_or_join, change_rules, change_rules, delete))()
    for host, kept in filters.items():
        def same(host: str = host, kept: Kept = kept) -> bool:
            assert kept.state is not None
            return set(on(cloud, host).guests) == set(kept.state.guests)
        until(same, f"{host} has what the rows say")


def test_membership_when_a_group_is_called_like_the_id_or_number_of_another_then_an_id_is_an_id(cloud):
    web = group(cloud)
    like_id, like_number = group(cloud, web.id), group(cloud, str(int(web.id[-12:], 16)))
    for named, wanted in ((web.id, "web"), (like_id.id, like_id.name), (like_number.name, like_number.name)):
        [uuid] = cloud.active(security_groups=(named,))
        assert cloud.server(uuid).security_groups == (wanted,)
