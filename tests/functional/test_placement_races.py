"""Placement's writers, and claims beside them, on each database for real: many at once, and never too much given."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import api as tables
from nova.db.placement import allocations, candidates, claims, consumers, inventories, names, providers, traits
from nova.db.quota import ledger
from nova.db.sql.engine import Database
from nova.model.placement.providers import (
    CandidateQuery,
    ClassInventory,
    ConsumerAllocations,
    NewProvider,
    PlacementUsageQuery,
    ProviderAggregates,
    ProviderInventories,
    ProviderQuery,
    ProviderTraits,
    ProviderUpdate,
    RequestGroup,
    ResourceRequest,
    TraitQuery,
)
from nova.model.scheduling.decisions import HostRequirements, Resources
from tests.fakes.placement import allocation_write
from tests.fakes.racing import together
from tests.fakes.rows import SMALL, add_ledger, add_provider, new_uuid
from tests.functional.backends import KINDS, Absent
from tests.functional.test_databases import WRITERS


@pytest.fixture(scope="module", params=list(KINDS))
def api(backends, request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty schema."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    database = Database(server.create("placement_races_api"), pool_size=WRITERS)
    tables.metadata.create_all(database.engine)
    yield database
    database.dispose()


def make(api: Database, parent: str | None = None, **totals: int) -> str:
    """A provider of so much of each class; its uuid."""
    uuid = new_uuid()
    api.transact(lambda tx: providers.insert(tx, NewProvider(uuid=uuid, name=uuid, parent_uuid=parent)))
    if totals:
        api.transact(lambda tx: inventories.replace(tx, ProviderInventories(uuid=uuid, inventories=tuple(
            ClassInventory(resource_class=name, total=total, max_unit=total) for name, total in totals.items()))))
    return uuid


def write(api: Database, *wanted: ConsumerAllocations) -> None:
    api.transact(lambda tx: consumers.replace(tx, wanted))


def used(api: Database, uuid: str) -> dict[str, int]:
    with api.reading() as tx:
        return dict(inventories.usages(tx, uuid).used)


def uuid_of(api: Database, key: int) -> str:
    with api.reading() as tx:
        return str(tx.execute(sa.select(tables.providers.c.uuid).where(tables.providers.c.id == key)).scalar_one())


def codes(results: list[Any]) -> Counter[str | None]:
    return Counter(getattr(one, "code", None) for one in results)


def test_allocations_when_they_race_for_the_last_room_then_one_wins(api: Database) -> None:
    uuid = make(api, VCPU=5)
    results = together([lambda: write(api, allocation_write(new_uuid(), {uuid: {"VCPU": 3}}))] * WRITERS)
    assert codes(results) == {None: 1, "placement.allocation.no_room": WRITERS - 1}
    assert used(api, uuid) == {"VCPU": 3}


def test_allocations_when_one_consumer_is_written_by_many_then_one_generation_wins(api: Database) -> None:
    uuid, consumer = make(api, VCPU=100), new_uuid()
    for generation in (None, 1):
        results = together([lambda generation=generation, amount=amount: write(
            api, allocation_write(consumer, {uuid: {"VCPU": amount}}, generation)) for amount in range(1, WRITERS + 1)])
        assert codes(results) == {None: 1, "placement.consumer.changed": WRITERS - 1}
        with api.reading() as tx:
            found = allocations.of_consumer(tx, consumer)
        assert used(api, uuid) == dict(found.allocations[0].resources)
        assert found.generation == (generation or 0) + 1
    results = together([lambda: api.transact(lambda tx: consumers.delete(tx, consumer))] * WRITERS)
    assert codes(results) == {None: 1, "placement.allocation.not_found": WRITERS - 1} and used(api, uuid) == {"VCPU": 0}


def test_inventories_traits_and_aggregates_when_the_same_generation_was_read_then_one_wins(api: Database) -> None:
    uuid = make(api, VCPU=1)

    def act(number: int) -> Any:
        if number % 3 == 0:
            return api.transact(lambda tx: inventories.replace(tx, ProviderInventories(uuid=uuid, generation=1)))
        if number % 3 == 1:
            return api.transact(lambda tx: traits.replace(tx, ProviderTraits(uuid=uuid, generation=1,
                                                                             traits=("HW_NUMA_ROOT",))))
        return api.transact(lambda tx: traits.replace_aggregates(tx, ProviderAggregates(
            uuid=uuid, generation=1, aggregates=(new_uuid(),))))
    assert codes(together([lambda number=number: act(number) for number in range(WRITERS)])) == {
        None: 1, "placement.concurrent_update": WRITERS - 1}
    with api.reading() as tx:
        assert providers.get(tx, uuid).generation == 2


def test_names_when_many_want_the_same_then_one_gets_it(api: Database) -> None:
    name = new_uuid()

    def act() -> Any:
        return api.transact(lambda tx: providers.insert(tx, NewProvider(uuid=new_uuid(), name=name)))
    assert codes(together([act] * WRITERS)) == {None: 1, "placement.duplicate_name": WRITERS - 1}
    one = new_uuid()
    same = together([lambda: api.transact(lambda tx: providers.insert(tx, NewProvider(uuid=one, name=new_uuid())))
                     ] * WRITERS)
    assert codes(same) == {None: 1, "placement.duplicate_name": WRITERS - 1}
    trait = f"CUSTOM_{name.upper().replace('-', '_')}"
    assert not any(isinstance(one, Exception) for one in together(
        [lambda: api.transact(lambda tx: names.create_trait(tx, trait))] * WRITERS))


def test_trees_when_parts_change_places_while_they_are_written_then_no_loop_and_no_orphan_is_made(api: Database
                                                                                                  ) -> None:
    nodes = [make(api, VCPU=2) for _ in range(4)]
    leaf = make(api, nodes[0], VCPU=4)

    def move(number: int) -> Any:
        if number % 2:
            return write(api, allocation_write(new_uuid(), {leaf: {"VCPU": 1}}))
        one, parent = nodes[number // 2 % 4], nodes[(number // 2 + 1) % 4]
        return api.transact(lambda tx: providers.update(tx, ProviderUpdate(
            uuid=one, name=one, parent_uuid=parent, parent_asked=True, may_reparent=True)))
    results = together([lambda number=number: move(number) for number in range(WRITERS)])
    assert codes(results)["placement.resource_provider.bad_parent"] == 1  # the one that would have closed the ring
    with api.reading() as tx:
        found = providers.select(tx, ProviderQuery(group=RequestGroup(in_tree=leaf)))
    assert {one.uuid for one in found} == {*nodes, leaf} and used(api, leaf) == {"VCPU": WRITERS // 2}


@pytest.mark.parametrize("demanding", [False, True])
def test_claims_and_allocations_when_they_race_then_a_host_gives_no_more_than_it_has(api: Database, demanding: bool
                                                                                     ) -> None:
    key = add_provider(api, new_uuid()[:8], vcpus=10)
    uuid, servers = uuid_of(api, key), add_ledger(api, WRITERS * 2)
    request = ResourceRequest(groups=(RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 512}),))

    def take(mine: list[str]) -> int:
        asked = [claims.Claim(server, 1, key, SMALL, False, HostRequirements(request=request) if demanding else None)
                 for server in mine]
        return sum(one is None for one in api.transact(lambda tx: claims.claim(tx, asked))[0].values())

    def put() -> int:
        given = 0
        for _ in range(3):
            try:
                write(api, allocation_write(new_uuid(), {uuid: {"VCPU": 1}}))
                given += 1
            except errors.Conflict as full:
                assert full.code == "placement.allocation.no_room"
        return given
    results = together([lambda number=number: take(servers[number::4]) if number < 4 else put()
                        for number in range(WRITERS)])
    assert sum(results) == 10 == used(api, uuid)["VCPU"]


def test_claims_allocations_inventories_and_releases_when_they_mix_then_sums_are_right(api: Database, seed: int
                                                                                       ) -> None:
    hosts = [add_provider(api, new_uuid()[:8], vcpus=6) for _ in range(2)]
    uuids = [uuid_of(api, key) for key in hosts]
    children = [make(api, uuid, VGPU=3) for uuid in uuids]
    servers = add_ledger(api, WRITERS * 3)

    def act(number: int) -> None:
        chooser = random.Random(f"{seed} {number}")
        mine = servers[number::WRITERS]
        for turn in range(9):
            at = chooser.randrange(2)
            try:
                if turn % 3 == 0:
                    write(api, allocation_write(new_uuid(), {uuids[at]: {"VCPU": chooser.randint(1, 2)},
                                                             children[at]: {"VGPU": 1},
                                                             children[1 - at]: {"VGPU": 1}}))
                elif turn % 3 == 1:
                    one = claims.Claim(mine[turn // 3], 1, hosts[at], Resources(vcpus=1, memory_mb=1, disk_gb=0))
                    api.transact(lambda tx, one=one: claims.claim(tx, [one]))
                elif chooser.random() < 0.5:
                    api.transact(lambda tx, uuid=mine[turn // 3]: ledger.release(tx, {uuid: 1}, {}))
                else:
                    api.transact(lambda tx, at=at: traits.replace(tx, ProviderTraits(
                        uuid=children[at], traits=chooser.choice([(), ("HW_NUMA_ROOT",)]))))
            except errors.Conflict as full:
                assert full.code == "placement.allocation.no_room", full
    assert together([lambda number=number: act(number) for number in range(WRITERS)]) == [None] * WRITERS
    cpus, gpus = [used(api, uuid)["VCPU"] for uuid in uuids], [used(api, uuid)["VGPU"] for uuid in children]
    assert max(cpus) <= 6 and sum(cpus) > 0 and gpus == [3, 3], (cpus, gpus)


def test_reads_when_they_ask_for_everything_then_each_database_understands_them(api: Database) -> None:
    root = make(api, VCPU=4, MEMORY_MB=10)
    rack, child = new_uuid(), make(api, root, VGPU=1)
    api.transact(lambda tx: traits.replace_aggregates(tx, ProviderAggregates(uuid=root, aggregates=(rack,))))
    api.transact(lambda tx: traits.replace(tx, ProviderTraits(uuid=child, traits=("HW_NUMA_ROOT",))))
    write(api, allocation_write(new_uuid(), {root: {"VCPU": 1}}, project_id=rack, consumer_type="JOB"))
    group = RequestGroup(resources={"VCPU": 1, "VGPU": 1}, required=(("HW_NUMA_ROOT", "COMPUTE_STATUS_DISABLED"),),
                         forbidden=("HW_NUMA_ROOT",), member_of=((rack,),), not_member_of=(new_uuid(),), in_tree=root)
    with api.reading() as tx:
        assert providers.select(tx, ProviderQuery(name="x", uuid="y", group=group), {"h"}) == ()
        free = msgspec.structs.replace(group, forbidden=())
        for limit in (None, 3):
            query = CandidateQuery(request=ResourceRequest(groups=(free,), root_forbidden=("HW_NUMA_ROOT",)),
                                   limit=limit)
            [found] = candidates.select(tx, query, {"h"}).candidates
            assert {one.provider_uuid for one in found.allocations} == {root, child}
        for kind in (None, "all", "JOB"):
            [usage] = allocations.project_usages(tx, PlacementUsageQuery(project_id=rack, user_id="joe",
                                                                         consumer_type=kind))
            assert (usage.consumers, dict(usage.used)) == (1, {"VCPU": 1})
        assert names.traits(tx, TraitQuery(prefix="HW_NUMA", associated=True)) == ("HW_NUMA_ROOT",)
        assert "VCPU" in names.classes(tx)
        assert traits.get(tx, child).traits == ("HW_NUMA_ROOT",)
        assert traits.get_aggregates(tx, root).aggregates == (rack,)
        assert [one.project_id for one in allocations.of_provider(tx, root).consumers] == [rack]
