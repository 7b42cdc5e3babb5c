"""Floating addresses on each database for real: two hundred allocations at once, and servers that go while they are
given one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.nova_network.floating import Floating
from nova.db.models import api as api_models
from nova.db.models import cell as cell_models
from nova.db.network import floating, networks
from nova.db.quota import quotas
from nova.db.sql.engine import Database
from nova.model.base import Scope
from nova.model.network.floating import FloatingAddress, FloatingAssociation, FloatingQuery, FloatingRange
from nova.model.network.networks import RequestedNetwork
from nova.model.quota.quotas import NETWORK_RESOURCES, RESOURCES
from tests.fakes.racing import together
from tests.fakes.rows import add_network, add_servers, server_row
from tests.functional.backends import KINDS, Absent

ASKED, LIMIT, POOL = 200, 20, 12
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module", params=list(KINDS))
def deps(backends: Any, request: pytest.FixtureRequest) -> Iterator[Deps]:
    """A conductor's databases with a network, and hosts that take whatever they are told."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = []
    for name, models in (("api", api_models), ("cell", cell_models)):
        made.append(Database(server.create(f"floating_races_{name}"), pool_size=POOL))
        models.metadata.create_all(made[-1].engine)
    limits = dict.fromkeys((*RESOURCES, *NETWORK_RESOURCES), -1)
    host: Any = SimpleNamespace(check_floating_interface=lambda host, interface: None)
    deps = Deps(api=made[0], cell=made[1], settings=ConductorSettings(quota_defaults=limits), host="ctl",
                scheduler=None,
                         certs=None, compute=None, network=host, images=None)
    deps.network_updates = SimpleNamespace(send=lambda networks: None)
    yield deps
    for database in made:
        database.dispose()


@pytest.fixture
def calls(deps: Deps) -> Floating:
    return Floating(deps)


@pytest.fixture
def pool(calls: Floating) -> str:
    """One of the test's own, of 254 addresses."""
    number = next(NUMBERS)
    calls.create_floating_addresses(FloatingRange(ip_range=f"172.20.{number}.0/24", pool=f"pool-{number}"))
    return f"pool-{number}"


def outcomes(results: list[Any], *refusals: type[errors.NovaError]) -> tuple[list[Any], list[Any]]:
    refused = [one for one in results if isinstance(one, errors.NovaError)]
    assert all(isinstance(one, refusals) for one in refused), refused
    return [one for one in results if not isinstance(one, errors.NovaError)], refused


def test_allocate_when_two_hundred_race_then_the_quota_holds_and_each_is_given_once(deps: Deps, calls: Floating,
                                                                                    pool: str) -> None:
    project = f"project-of-{pool}"
    deps.api.transact(lambda tx: quotas.write(tx, project, None, {"floating_ips": LIMIT}))
    done, refused = outcomes(together([lambda: calls.allocate_floating_address(project, pool)] * ASKED),
                             errors.OverQuota)
    assert (len({one.address for one in done}), len(refused)) == (LIMIT, ASKED - LIMIT)
    with deps.cell.reading() as tx:
        assert floating.count(tx, project) == LIMIT


def test_allocate_when_more_race_than_there_are_then_each_address_is_one_projects(calls: Floating, pool: str) -> None:
    asks = [lambda at=at: calls.allocate_floating_address(f"project-{at % 7}", pool) for at in range(300)]
    done, refused = outcomes(together(asks), errors.NotFound)
    assert len({one.address for one in done}) == len(done) == 254 and len(refused) == 46


def test_allocate_and_release_when_they_race_then_what_is_left_adds_up(deps: Deps, calls: Floating, pool: str
                                                                       ) -> None:
    first = [calls.allocate_floating_address("mine", pool) for _ in range(40)]
    works: list[Any] = [lambda one=one: calls.release_floating_address(one.id, Scope(project_id="mine"))
                        for one in first for _ in range(2)]
    done, refused = outcomes(together(works + [lambda: calls.allocate_floating_address("theirs", pool)] * 60),
                             errors.NotFound, errors.Forbidden)  # the second finds it free, or another's
    taken = [one for one in done if isinstance(one, FloatingAddress)]
    assert len({one.address for one in taken}) == 60 and len(refused) == 40, "each was released once"
    rows = [one for one in calls.list_floating_addresses(FloatingQuery(all_rows=True)) if one.pool == pool]
    assert sorted(one.address for one in rows if one.project_id == "theirs") == sorted(one.address for one in taken)


def booted(deps: Deps, network: str, count: int) -> list[str]:
    uuids = add_servers(deps.cell, *[server_row() for _ in range(count)])
    requests = [networks.AddressRequest(uuid, "vm", (RequestedNetwork(network_id=network),)) for uuid in uuids]
    bound = deps.cell.transact(lambda tx: networks.bind(tx, requests))
    table = cell_models.servers
    deps.cell.transact(lambda tx: [tx.execute(sa.update(table).where(table.c.uuid == uuid)
                                               .values(interfaces=bound[uuid])) for uuid in uuids])
    return uuids


def associate(calls: Floating, uuid: str, address: str) -> None:
    with context.entered(context.internal()):
        calls.associate_floating_address(FloatingAssociation(server_uuid=uuid, address=address))


def leave(deps: Deps, uuid: str) -> None:
    """What a delete does of it, in its one transaction."""
    def work(tx: Any) -> None:
        floating.leave(tx, [uuid])
        networks.unbind(tx, [uuid])
    deps.cell.transact(work)


def test_associate_when_servers_go_at_the_same_time_then_nothing_points_to_a_free_address(deps: Deps,
                                                                                          calls: Floating, pool: str
                                                                                          ) -> None:
    network = add_network(deps.cell, f"10.{next(NUMBERS)}.0.0/24")
    uuids = booted(deps, network, 24)
    some = [calls.allocate_floating_address("mine", pool) for _ in uuids]
    works: list[Any] = []
    for uuid, one in zip(uuids, some, strict=True):
        works += [lambda uuid=uuid, one=one: associate(calls, uuid, one.address), lambda uuid=uuid: leave(deps, uuid)]
    outcomes(together(works), errors.Invalid)
    with deps.cell.reading() as tx:
        table = cell_models.floating_addresses
        left = tx.execute(sa.select(table.c.address).where(table.c.pool == pool,
                                                           table.c.fixed_address_id.is_not(None))).scalars().all()
    assert left == []


def test_associate_when_two_servers_want_each_others_then_each_row_says_what_is_so(deps: Deps, calls: Floating,
                                                                                   pool: str) -> None:
    network = add_network(deps.cell, f"10.{next(NUMBERS)}.0.0/24")
    uuids = booted(deps, network, 4)
    some = [calls.allocate_floating_address("mine", pool) for _ in range(4)]
    works = [lambda uuid=uuid, one=one: associate(calls, uuid, one.address) for uuid in uuids for one in some]
    outcomes(together(works), errors.NotFound)
    rows = {one.address: one for one in calls.list_floating_addresses(FloatingQuery(all_rows=True))}
    with deps.cell.reading() as tx:
        table = cell_models.servers
        found = {row.uuid: [one.address for interface in row.interfaces for one in interface.floating_addresses]
                 for row in tx.execute(sa.select(table.c.uuid, table.c.interfaces).where(table.c.uuid.in_(uuids)))}
    owners = {address: uuid for uuid, held in found.items() for address in held}
    assert owners == {one.address: rows[one.address].server_uuid for one in some}
