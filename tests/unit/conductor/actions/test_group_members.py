"""Server groups from the request to the claim: who joins, who is refused, who leaves, and that no race breaks them."""

from __future__ import annotations

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.upkeep import periodic
from nova.db.models import api as tables
from nova.db.server import server_groups
from nova.model.base import Page, Scope
from nova.model.quota.quotas import QuotaUpdate
from nova.model.scheduling.decisions import PlacementRequest, Selection
from nova.model.server.server_groups import NewServerGroup, ServerGroup, ServerGroupQuery
from nova.model.server.servers import NewServer, ServerListQuery, ServerQuery
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud, changed, until
from tests.unit.conductor.queries.test_statement_counts import statements

OTHERS = context.RequestContext(request_id="req-other", user_id="ann", project_id="other")
ADMIN = changed(OTHERS, is_admin=True)
EVERYBODYS = Scope()


def make(cloud: SmallCloud, policy: str = "anti-affinity", who: context.RequestContext = DEMO, **rules: int) -> str:
    with context.entered(who):
        return cloud.control.create_server_group(NewServerGroup(uuid=new_uuid(), name="g", policy=policy,
                                                                rules=rules)).uuid


def members(cloud: SmallCloud, group: str) -> tuple[str, ...]:
    return cloud.control.get_server_group(group, EVERYBODYS).members


def host_of(cloud: SmallCloud, uuid: str) -> str:
    return str(cloud.ended(uuid).host)


def limit(cloud: SmallCloud, **limits: int) -> None:
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits=limits, force=True))


# -- groups

def test_group_when_its_message_comes_twice_then_it_is_made_once(cloud: SmallCloud) -> None:
    group = NewServerGroup(uuid=new_uuid(), name="g", policy="affinity")
    limit(cloud, server_groups=1)
    with context.entered(DEMO):
        assert cloud.control.create_server_group(group) == cloud.control.create_server_group(group)
    assert len(cloud.control.list_server_groups(ServerGroupQuery())) == 1


def test_groups_over_quota_are_refused_and_a_deleted_one_makes_room(cloud: SmallCloud) -> None:
    limit(cloud, server_groups=1)
    first = make(cloud)
    with pytest.raises(errors.OverQuota, match="too many server groups"):
        make(cloud)
    make(cloud, who=OTHERS)
    cloud.control.delete_server_group(first, Scope(project_id="demo"))
    make(cloud)


def test_group_of_another_project_can_neither_be_seen_nor_deleted(cloud: SmallCloud) -> None:
    group, mine = make(cloud), Scope(project_id="other")
    for act in (cloud.control.get_server_group, cloud.control.delete_server_group):
        with pytest.raises(errors.NotFound):
            act(group, mine)
    assert cloud.control.list_server_groups(ServerGroupQuery(scope=mine)) == ()


@pytest.mark.parametrize("count", [1, 5])
def test_list_of_groups_costs_two_statements(cloud: SmallCloud, count: int) -> None:
    groups = [make(cloud, "soft-affinity") for _ in range(count)]
    booted = cloud.active(2, scheduler_hints={"group": groups[0]})
    with statements(cloud) as seen:
        found = cloud.control.list_server_groups(ServerGroupQuery(page=Page(limit=9)))
    assert [group.uuid for group in found] == groups and found[0].members == tuple(booted)
    assert len(seen) == 2, seen


# -- joining and leaving

def test_server_joins_shows_its_group_and_leaves_when_it_is_deleted(cloud: SmallCloud) -> None:
    group = make(cloud)
    uuid, = cloud.active(scheduler_hints={"group": group})
    assert members(cloud, group) == (uuid,)
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).server_groups == (group,)
    assert cloud.control.list_servers(ServerListQuery()).servers[0].server_groups == ()
    cloud.delete(uuid)
    assert members(cloud, group) == ()


def test_group_when_it_is_deleted_then_its_servers_stay_and_show_none(cloud: SmallCloud) -> None:
    group = make(cloud)
    uuid, = cloud.active(scheduler_hints={"group": group})
    cloud.control.delete_server_group(group, EVERYBODYS)
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).server_groups == ()
    cloud.order(uuid, "stop")
    assert cloud.ended(uuid).vm_state == "stopped"
    assert cloud.rows("api", sa.select(tables.server_group_members)) == []


def test_only_a_read_of_a_server_with_a_group_asks_for_it(cloud: SmallCloud) -> None:
    plain, = cloud.active()
    grouped, = cloud.active(scheduler_hints={"group": make(cloud)})
    for uuid, cost in ((plain, 2), (grouped, 3)):
        with statements(cloud) as seen:
            cloud.control.get_server(ServerQuery(uuid=uuid))
        assert len(seen) == cost, seen


@pytest.mark.parametrize("hint", ["9cadc000-da92-4dd6-aec6-4157a02a4168", [new_uuid()]])
def test_create_in_an_unknown_group_is_refused_and_leaves_nothing(cloud: SmallCloud, hint: object) -> None:
    with pytest.raises(errors.Invalid, match="could not be found"):
        cloud.boot(scheduler_hints={"group": hint})
    assert cloud.open_ledger() == set()


def test_create_in_another_projects_group_is_for_admins(cloud: SmallCloud) -> None:
    group = make(cloud)
    order = NewServer(name="vm", flavor_id="1", scheduler_hints={"group": group}, networks=())
    with context.entered(OTHERS), pytest.raises(errors.Invalid, match="could not be found"):
        cloud.control.create_servers(order)
    with context.entered(ADMIN):
        made = cloud.control.create_servers(order)
    assert members(cloud, group) == made.uuids
    cloud.ended(made.uuids[0])


def test_create_when_the_hint_is_a_list_or_has_no_dashes_then_the_group_is_found(cloud: SmallCloud) -> None:
    group = make(cloud, "soft-affinity")
    booted = cloud.active(scheduler_hints={"group": [group, new_uuid()]})
    booted += cloud.active(scheduler_hints={"group": group.replace("-", "")})
    assert members(cloud, group) == tuple(booted)


def test_create_when_the_group_is_nearly_full_then_so_many_as_fit(cloud: SmallCloud) -> None:
    limit(cloud, server_group_members=3)
    group = make(cloud, "soft-affinity")
    cloud.active(scheduler_hints={"group": group})
    with context.entered(DEMO):
            made = cloud.control.create_servers(NewServer(name="vm", flavor_id="1", min_count=1, max_count=5,
                                                      scheduler_hints={"group": group}))
    assert len(made.uuids) == 2 and len(members(cloud, group)) == 3
    with pytest.raises(errors.OverQuota, match="too many servers in group"):
        cloud.boot(scheduler_hints={"group": group})
    for uuid in made.uuids:
        cloud.ended(uuid)
    assert len(cloud.open_ledger()) == 3


def test_create_when_its_message_comes_twice_then_the_servers_join_once(cloud: SmallCloud) -> None:
    group = make(cloud)
    order = NewServer(name="vm", flavor_id="1", scheduler_hints={"group": group}, key=new_uuid())
    with context.entered(DEMO):
        first = cloud.control.create_servers(order)
        cloud.ended(first.uuids[0])
        assert cloud.control.create_servers(order).uuids == first.uuids
        cloud.control.delete_server_group(group, EVERYBODYS)
        assert cloud.control.create_servers(order).uuids == first.uuids


def test_ledger_row_without_a_server_when_it_is_swept_then_the_group_is_without_it(cloud: SmallCloud) -> None:
    """The conductor died between the two transactions of a create."""
    group = make(cloud)
    uuid, = cloud.active(scheduler_hints={"group": group})
    lost = new_uuid()
    row = cloud.rows("api", sa.select(tables.server_group_members))[0]
    cloud.write("api", sa.insert(tables.server_group_members).values(server_uuid=lost, group_id=row.group_id,
                                                                     user_id="joe"),
                sa.insert(tables.ledger).values(server_uuid=lost, project_id="demo", user_id="joe", vcpus=1,
                                                memory_mb=1, created_at=sa.func.datetime("now", "-1 day")))
    periodic.LedgerSweep()(cloud.deps)
    assert lost not in cloud.open_ledger()
    assert members(cloud, group) == (uuid,)


# -- placement: the fake scheduler proposes every host to everybody, and knows nothing of groups

def test_anti_affinity_when_the_scheduler_ignores_it_then_the_claim_keeps_it(cloud: SmallCloud) -> None:
    group = make(cloud)
    uuids = cloud.active(2, scheduler_hints={"group": group})
    assert {host_of(cloud, uuid) for uuid in uuids} == {"a", "b"}
    third, = cloud.boot(scheduler_hints={"group": group})
    row = cloud.ended(third)
    assert row.vm_state == "error" and row.host is None
    assert members(cloud, group) == (*uuids, third)
    cloud.delete(uuids[0])
    again, = cloud.active(scheduler_hints={"group": group})
    assert host_of(cloud, again) not in {host_of(cloud, uuids[1])}


def test_anti_affinity_with_a_rule_lets_so_many_share_a_host(cloud: SmallCloud) -> None:
    group = make(cloud, max_server_per_host=2)
    hosts = sorted(host_of(cloud, uuid) for uuid in cloud.active(4, scheduler_hints={"group": group}))
    assert hosts == ["a", "a", "b", "b"]


def test_affinity_when_the_scheduler_ignores_it_then_the_claim_keeps_it(cloud: SmallCloud) -> None:
    group = make(cloud, "affinity")
    first, = cloud.active(scheduler_hints={"group": group})
    cloud.scheduler.choices.reverse()
    others = cloud.active(3, scheduler_hints={"group": group})
    assert {host_of(cloud, uuid) for uuid in (first, *others)} == {"a"}


def test_affinity_when_alternates_are_all_elsewhere_then_the_scheduler_is_asked_again(cloud: SmallCloud) -> None:
    """Two requests for an empty group at once: each was told that any host will do."""
    group = make(cloud, "affinity")
    first, = cloud.active(scheduler_hints={"group": group})
    real = cloud.scheduler.select_hosts
    asked: list[PlacementRequest] = []

    def stale(request: PlacementRequest) -> tuple[Selection, ...]:
        asked.append(request)
        if len(asked) > 1:
            return real(request)
        only_b = tuple(one for one in cloud.scheduler.choices if one.host == "b")
        return tuple(Selection(server_uuid=uuid, hosts=only_b) for uuid in request.server_uuids)
    cloud.scheduler.select_hosts = stale  # type: ignore[method-assign]
    second, = cloud.active(scheduler_hints={"group": group})
    assert host_of(cloud, second) == host_of(cloud, first) == "a"
    assert asked[1].exclude == ("b",) and asked[1].group is not None and asked[1].group.hosts == {"a": 1}


def test_soft_policies_are_no_matter_of_the_claim(cloud: SmallCloud) -> None:
    group = make(cloud, "soft-anti-affinity")
    assert {host_of(cloud, uuid) for uuid in cloud.active(3, scheduler_hints={"group": group})} == {"a"}


def test_request_to_the_scheduler_tells_policy_rule_and_places(cloud: SmallCloud) -> None:
    group = make(cloud, max_server_per_host=2)
    cloud.active(3, scheduler_hints={"group": group})
    cloud.active(scheduler_hints={"group": group})
    told = cloud.scheduler.requests[-1].group
    assert told is not None and told.policy == "anti-affinity" and told.max_per_host == 2
    assert dict(told.hosts) == {"a": 2, "b": 1}
    cloud.active()
    assert cloud.scheduler.requests[-1].group is None


def test_request_when_it_is_made_again_then_its_own_servers_do_not_count(cloud: SmallCloud) -> None:
    group = make(cloud)
    uuids = cloud.active(2, scheduler_hints={"group": group})
    with cloud.api.reading() as tx:
        found = server_groups.placement(tx, uuids)
    assert found is not None and found.hosts == {} and found.uuid == group


def test_many_requests_at_once_for_one_group_break_no_policy(cloud: SmallCloud) -> None:
    for host in ("c", "d", "e"):
        cloud.add_compute(host)
    apart, together = make(cloud), make(cloud, "affinity")
    wanted = [(uuid, group) for _ in range(5) for group in (apart, together)
              for uuid in cloud.boot(scheduler_hints={"group": group})]
    until(lambda: not cloud.deps.runner.running, "all end")
    hosts = {group: [host_of(cloud, uuid) for uuid, of in wanted if of == group] for group in (apart, together)}
    assert sorted(hosts[apart]) == ["a", "b", "c", "d", "e"]
    assert len(set(hosts[together])) == 1 and None not in hosts[together]


def test_member_when_it_is_claimed_again_after_a_crash_then_it_keeps_its_host(cloud: SmallCloud) -> None:
    group = make(cloud)
    uuid, = cloud.active(scheduler_hints={"group": group})
    dead = cloud.conductor("dead")
    cloud.stand_at(uuid, dead, step="ClaimResources", direction="do", data={
        **cloud.journal(uuid)[-1].data, "host": "a", "node": "a", "provider_id": cloud.scheduler.choices[0].provider_id,
        "tried": ["a"], "hosts": []})
    cloud.deps.runner.sweep()
    assert host_of(cloud, uuid) == "a" and cloud.ended(uuid).vm_state == "active"


def test_group_value_crosses_the_wire(cloud: SmallCloud) -> None:
    group = ServerGroup(uuid=new_uuid(), project_id="p", user_id="u", name="n", policy="affinity", rules={"x": 1})
    assert msgspec.json.decode(msgspec.json.encode(group), type=ServerGroup) == group
