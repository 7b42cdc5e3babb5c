"""Floating addresses in the conductor: pools, quota, servers' answers, hosts that are told, races and crashes."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.networking.network_options import FloatingOptions
from nova.db.models import cell as tables
from nova.db.network import floating
from nova.model.base import Scope
from nova.model.network.floating import FloatingAddress, FloatingAssociation, FloatingQuery, FloatingRange
from nova.model.quota.quotas import QuotaUpdate
from nova.notifications.notifier import Notifier, NotifierOptions
from tests.fakes.notifications import Kept
from tests.fakes.racing import together
from tests.fakes.small_cloud import DEMO, SmallCloud, until
from tests.unit.conductor.queries.test_statement_counts import statements

OTHER = context.RequestContext(request_id="req-other", user_id="eve", project_id="other")
MINE = Scope(project_id="demo")


@pytest.fixture
def pool(cloud: SmallCloud) -> SmallCloud:
    cloud.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.0/28"))
    return cloud


def allocate(cloud: SmallCloud, project: str = "demo") -> FloatingAddress:
    return cloud.control.allocate_floating_address(project, None)


def associate(cloud: SmallCloud, uuid: str, address: str, fixed: str | None = None,
              who: context.RequestContext = DEMO) -> None:
    with context.entered(who):
        cloud.control.associate_floating_address(FloatingAssociation(server_uuid=uuid, address=address,
                                                                     fixed_address=fixed))


def disassociate(cloud: SmallCloud, uuid: str, address: str, who: context.RequestContext = DEMO) -> None:
    with context.entered(who):
        cloud.control.disassociate_floating_address(FloatingAssociation(server_uuid=uuid, address=address))


def shown(cloud: SmallCloud, uuid: str) -> list[str]:
    """Floating addresses in the server's row."""
    return [one.address for interface in cloud.server(uuid).interfaces or () for one in interface.floating_addresses]


def translated(cloud: SmallCloud) -> dict[str, str]:
    """Floating -> fixed, as the network host was told last."""
    return {one.address: one.fixed_address for one in cloud.network.served[-1].floating}


# -- pools and quota

def test_allocate_when_the_pool_has_some_then_each_is_given_once(pool):
    taken = [allocate(pool) for _ in range(14)]
    assert len({one.address for one in taken}) == 14 and all(one.project_id == "demo" for one in taken)
    with pytest.raises(errors.NotFound, match="No more floating IPs in pool nova"):
        allocate(pool)
    with pytest.raises(errors.NotFound, match="pool other not found"):
        pool.control.allocate_floating_address("demo", "other")


def test_allocate_when_many_race_then_the_quota_holds_and_none_is_given_twice(pool):
    pool.control.create_floating_addresses(FloatingRange(ip_range="198.51.100.0/24"))
    pool.control.update_quotas(QuotaUpdate(project_id="demo", limits={"floating_ips": 20}))
    results = together([lambda: [_try(pool) for _ in range(20)]] * 10)
    taken = [one for found in results for one in found if isinstance(one, FloatingAddress)]
    refused = [one for found in results for one in found if isinstance(one, errors.NovaError)]
    assert len(taken) == len({one.address for one in taken}) == 20
    assert {one.kind for one in refused} == {"over_quota"} and len(refused) == 180


def _try(cloud: SmallCloud) -> Any:
    try:
        return allocate(cloud)
    except errors.NovaError as error:
        return error


def test_allocate_when_one_is_released_then_the_quota_has_room_again(pool):
    pool.control.update_quotas(QuotaUpdate(project_id="demo", limits={"floating_ips": 1}))
    first = allocate(pool)
    with pytest.raises(errors.OverQuota):
        allocate(pool)
    assert allocate(pool, "other").address != first.address
    pool.control.release_floating_address(first.id, MINE)
    assert allocate(pool).address == first.address


def test_release_when_it_is_not_the_projects_then_it_is_refused(pool):
    mine = allocate(pool, "other")
    with pytest.raises(errors.Forbidden):
        pool.control.release_floating_address(mine.id, MINE)
    for nobodys in ("999", "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(errors.NotFound):
            pool.control.release_floating_address(nobodys, MINE)
    with pytest.raises(errors.Invalid):
        pool.control.release_floating_address("no-number", MINE)
    pool.control.release_floating_address(mine.id, Scope())
    with pytest.raises(errors.NotFound):
        pool.control.release_floating_address(mine.id, Scope())


@pytest.mark.parametrize("wrong", ["192.0.2.0/31", "10.0.0.0/8", "192.0.2.300", "fe80::1", "", "x/24"])
def test_create_when_the_range_is_wrong_then_nothing_is_made(cloud, wrong):
    with pytest.raises(errors.Invalid):
        cloud.control.create_floating_addresses(FloatingRange(ip_range=wrong))
    assert cloud.control.list_floating_pools(MINE) == ()


def test_create_when_one_is_there_then_none_is_made(pool):
    with pytest.raises(errors.Conflict, match=r"192\.0\.2\.1 already exists"):
        pool.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.0/27"))
    everything = pool.control.list_floating_addresses(FloatingQuery(all_rows=True))
    assert [one.address for one in everything] == [f"192.0.2.{last}" for last in range(1, 15)]


def test_delete_range_when_some_are_taken_then_those_stay(pool):
    kept = allocate(pool)
    gone = pool.control.delete_floating_addresses(FloatingRange(ip_range="192.0.2.0/29"))
    assert set(gone) == {f"192.0.2.{last}" for last in range(1, 7)} - {kept.address}
    left = {one.address for one in pool.control.list_floating_addresses(FloatingQuery(all_rows=True))}
    assert kept.address in left and "192.0.2.9" in left and "192.0.2.3" not in left


# -- servers

def test_associate_then_the_answer_and_the_host_have_it_at_once(pool):
    [uuid], one = pool.active(), allocate(pool)
    associate(pool, uuid, one.address)
    assert shown(pool, uuid) == [one.address]
    assert translated(pool) == {one.address: pool.addresses()[uuid]}
    found = pool.control.get_floating_address(one.id, MINE)
    assert (found.server_uuid, found.fixed_address, found.host) == (uuid, pool.addresses()[uuid], "net")
    disassociate(pool, uuid, one.address)
    assert (shown(pool, uuid), translated(pool)) == ([], {})


def test_associate_when_another_server_has_it_then_it_moves(pool):
    (first, second), one = pool.active(2), allocate(pool)
    associate(pool, first, one.address)
    associate(pool, second, one.address)
    assert (shown(pool, first), shown(pool, second)) == ([], [one.address])
    assert translated(pool) == {one.address: pool.addresses()[second]}


def test_associate_when_it_cannot_be_then_it_says_why(pool):
    [uuid], one = pool.active(), allocate(pool)
    with pytest.raises(errors.NotFound):
        associate(pool, uuid, "203.0.113.9")
    with pytest.raises(errors.Invalid, match="no fixed IP address"):
        associate(pool, uuid, one.address, "10.0.0.200")
    with pytest.raises(errors.Forbidden):
        associate(pool, uuid, one.address, who=OTHER)
    with pytest.raises(errors.Invalid, match="No fixed IPs"):
        associate(pool, pool.active(networks=())[0], one.address)
    assert shown(pool, uuid) == []


def test_disassociate_when_it_is_not_the_servers_then_conflict(pool):
    (first, second), one = pool.active(2), allocate(pool)
    associate(pool, first, one.address)
    with pytest.raises(errors.Conflict):
        disassociate(pool, second, one.address)
    with pytest.raises(errors.NotFound):
        disassociate(pool, first, "203.0.113.9")
    with pytest.raises(errors.Forbidden):
        disassociate(pool, first, one.address, OTHER)
    assert shown(pool, first) == [one.address]


def test_release_when_a_server_has_it_then_it_is_taken_from_it_first(pool):
    [uuid], one = pool.active(), allocate(pool)
    associate(pool, uuid, one.address)
    pool.control.release_floating_address(one.id, MINE)
    assert (shown(pool, uuid), translated(pool)) == ([], {})
    assert pool.control.list_floating_addresses(FloatingQuery(scope=MINE)) == ()


def test_delete_when_the_server_has_one_then_it_points_nowhere_and_stays_the_projects(pool):
    [uuid], one = pool.active(), allocate(pool)
    associate(pool, uuid, one.address)
    pool.delete(uuid)
    found = pool.control.get_floating_address(one.id, MINE)
    assert (found.server_uuid, found.fixed_address, found.host, found.project_id) == (None, None, None, "demo")
    assert translated(pool) == {}
    [other] = pool.active()
    assert shown(pool, other) == []


# -- by themselves

@pytest.fixture
def assigning(pool: SmallCloud) -> SmallCloud:
    for deps in pool.conductors:
        deps.settings = _with(deps.settings, auto_assign_floating_ip=True)
    return pool


def _with(settings: Any, **options: Any) -> Any:
    import dataclasses

    return dataclasses.replace(settings, floating=FloatingOptions(**options))


def test_boot_of_many_when_addresses_are_assigned_then_the_statements_do_not_grow_and_each_goes_to_its_own(assigning):
    uuids = assigning.active(6)
    with assigning.cell.reading() as tx:
        fixed = {uuid: assigning.addresses()[uuid] for uuid in uuids}
        assert {one.server_uuid: one.fixed_address for one in floating.select(tx, FloatingQuery(scope=MINE))} == fixed
    assigning.control.create_floating_addresses(FloatingRange(ip_range="198.51.100.0/28"))
    costs = []
    for some in (uuids[:1], uuids[1:]):
        wanted = {uuid: (project, fixed[uuid]) for uuid, project in zip(some, ["demo", "demo"] * 3, strict=False)}
        assigning.cell.transact(lambda tx, some=some: floating.leave(tx, some))
        with statements(assigning) as seen:
            given = assigning.cell.transact(lambda tx, wanted=wanted: floating.assign(tx, "nova", wanted))
        assert set(given) == set(some)
        costs.append(len(seen))
    assert costs[0] == costs[1], "one server or five"
    found = assigning.control.list_floating_addresses(FloatingQuery(scope=MINE))
    assert {one.server_uuid: one.fixed_address for one in found} == fixed and {one.host for one in found} == {"net"}


def test_boot_when_addresses_are_assigned_then_each_server_has_one_without_quota(assigning):
    assigning.control.update_quotas(QuotaUpdate(project_id="demo", limits={"floating_ips": 0}))
    first, second = assigning.active(2)
    assert len({*shown(assigning, first), *shown(assigning, second)}) == 2
    assert set(translated(assigning)) == {*shown(assigning, first), *shown(assigning, second)}
    [address] = shown(assigning, first)
    with pytest.raises(errors.Forbidden):
        disassociate(assigning, first, address)
    associate(assigning, second, address)  # silently ignored
    assert shown(assigning, first) == [address]
    held = {one.address: one for one in assigning.control.list_floating_addresses(FloatingQuery(scope=MINE))}
    with pytest.raises(errors.Forbidden):
        assigning.control.release_floating_address(held[address].id, MINE)
    assigning.delete(first)
    rows = {one.address: one for one in assigning.control.list_floating_addresses(FloatingQuery(all_rows=True))}
    assert (rows[address].project_id, rows[address].auto_assigned) == (None, False)


def test_boot_when_no_address_is_left_to_assign_then_it_fails_and_nothing_is_left(assigning):
    for _ in range(14):
        allocate(assigning)
    [uuid] = assigning.boot()
    row = assigning.ended(uuid)
    assert row.vm_state == "error" and "No more floating IPs" in row.fault.message
    assert assigning.addresses() == {}


# -- hosts that refuse or are away

def test_associate_when_the_device_is_missing_then_it_is_refused_and_nothing_changed(pool):
    pool.network.devices = {"eth1"}
    [uuid], one = pool.active(), allocate(pool)
    with pytest.raises(errors.Invalid, match="not found"):
        associate(pool, uuid, one.address)
    assert shown(pool, uuid) == [] and pool.control.get_floating_address(one.id, MINE).server_uuid is None


def test_associate_when_the_host_fails_then_it_is_as_before(pool):
    (first, second), one = pool.active(2), allocate(pool)
    associate(pool, first, one.address)
    pool.network.given(serve_networks=errors.Unavailable("iptables-restore failed"))
    with pytest.raises(errors.Unavailable):
        associate(pool, second, one.address)
    assert (shown(pool, first), shown(pool, second)) == ([one.address], [])
    assert translated(pool) == {one.address: pool.addresses()[first]}


def test_associate_when_the_host_is_down_then_the_database_alone_changes(pool):

    [uuid], one = pool.active(), allocate(pool)
    away = errors.daemon.RpcNoAnswer(topic="network", where=" on net", method="serve_networks", seconds=60)
    updates = pool.deps.network_updates
    updates.queues.network = type("Away", (), {"serve_networks": lambda self, host, networks: _raise(away)})()
    associate(pool, uuid, one.address)
    assert shown(pool, uuid) == [one.address]
    disassociate(pool, uuid, one.address)
    assert shown(pool, uuid) == []


def _raise(error: Exception) -> None:
    raise error


# -- races

def test_associate_when_two_servers_want_one_then_one_has_it(pool):
    (first, second), one = pool.active(2), allocate(pool)
    together([lambda uuid=uuid: associate(pool, uuid, one.address) for uuid in (first, second)] * 4)
    owner = pool.control.get_floating_address(one.id, MINE).server_uuid
    assert {uuid: shown(pool, uuid) for uuid in (first, second)} == {
        owner: [one.address], (second if owner == first else first): []}
    assert translated(pool) == {one.address: pool.addresses()[owner]}


def test_associate_when_several_come_to_one_server_at_once_then_all_are_shown(pool):
    [uuid], some = pool.active(), [allocate(pool) for _ in range(6)]
    together([lambda one=one: associate(pool, uuid, one.address) for one in some])
    assert sorted(shown(pool, uuid)) == sorted(one.address for one in some)
    associate(pool, uuid, some[0].address)
    assert translated(pool) == dict.fromkeys((one.address for one in some), pool.addresses()[uuid])
    assert len(pool.network.served[-1].addresses) == 1


def test_associate_when_the_server_is_deleted_meanwhile_then_none_points_to_what_is_free(pool):
    uuids, some = pool.active(6), [allocate(pool) for _ in range(6)]
    works = [lambda uuid=uuid, one=one: associate(pool, uuid, one.address) for uuid, one in zip(uuids, some,
                                                                                                strict=True)]
    together([*works, *[lambda uuid=uuid: pool.delete(uuid) for uuid in uuids]])
    rows = pool.rows("cell", sa.select(tables.floating_addresses.c.fixed_address_id))
    assert {row.fixed_address_id for row in rows} == {None}
    assert translated(pool) == {}


# -- moves, and what others are told

def test_follow_when_each_host_serves_its_own_then_the_address_is_on_the_servers_host(pool):
    [uuid], one = pool.active(), allocate(pool)
    associate(pool, uuid, one.address)
    pool.write("cell", sa.update(tables.networks).values(multi_host=True))
    pool.cell.transact(lambda tx: pool.deps.networking.floating.follow(tx, uuid, "b"))
    assert pool.control.get_floating_address(one.id, MINE).host == "b"
    assert [row.address for row in pool.control.list_floating_addresses(FloatingQuery(host="b"))] == [one.address]


def test_events_when_addresses_come_and_go_then_each_is_told(pool):
    kept = Kept()
    pool.deps.notifier = Notifier(kept, NotifierOptions(host="ctl", forms=("unversioned", "versioned")))
    [uuid], one = pool.active(), allocate(pool)
    associate(pool, uuid, one.address)
    pool.delete(uuid)
    pool.control.release_floating_address(one.id, MINE)
    until(lambda: not pool.deps.notifier.waiting and not pool.deps.runner.running, "all is told")
    reported = [(message.type.rpartition(".")[2], dict(message.payload)) for _form, message in kept.sent
                if message.type.startswith("network.floating_ip.")]
    payload = {"project_id": "demo", "floating_ip": one.address, "instance_id": uuid}
    assert reported == [("allocate", {**payload, "instance_id": None}), ("associate", payload),
                        ("disassociate", payload),
                        ("deallocate", {**payload, "instance_id": None})]
