"""A live API - real daemons, broker and database, fake driver - held against every file of the contract in scope.

The judge, its rules and its scenarios are in ``tests/functional/live``. The last lines say what was covered.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from nova.api.absent import NOT_YET
from tests.contract import rows
from tests.functional import live as room
from tests.functional.cloud import Cloud, Plan
from tests.functional.live import normal, scope
from tests.functional.live.caller import published, shown, turning_points
from tests.functional.live.scenario import SCENARIOS
from tests.functional.live.world import World

pytestmark = pytest.mark.in_turn(1, 10)

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)
for module in pkgutil.iter_modules(room.__path__):
    importlib.import_module(f"{room.__name__}.{module.name}")

SHOWN_PROBLEMS = 40
RAN: set[str] = set()  # scenarios, in this session


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=3, cuttable_cell=True, consoles=True, options={
        "DEFAULT": {"shelved_offload_time": -1, "debug": True},  # until it is asked for; all that logs could say
        "consoleauth": {"token_ttl": 36000},
        "fake": {"live_migration_time": 1.5,
                 "topology": "2 cells x 500 cpus x 400000 MB, 20 dedicated, 2 threads"},
        "api": {"glance_link_prefix": "http://glance.openstack.example.com"}})).start()


@pytest.fixture(scope="module")
def standing(cloud: Cloud) -> World:
    world = World(cloud)
    world.create_sample_data()
    return world


@pytest.fixture
def world(standing: World) -> Iterator[World]:
    """The world; what its judge found in this test fails it."""
    del standing.live.problems[:]
    yield standing
    found = list(dict.fromkeys(standing.live.problems))
    del standing.live.problems[:]
    if found:
        more = f"\n... and {len(found) - SHOWN_PROBLEMS} more" if len(found) > SHOWN_PROBLEMS else ""
        pytest.fail(f"{len(found)} differences:\n" + "\n".join(found[:SHOWN_PROBLEMS]) + more, pytrace=False)


def test_operations_that_wait_are_those_not_served_yet() -> None:
    waiting = [id for ids in scope.WAITING.values() for id in ids]
    assert sorted(waiting) == sorted(id for _, _, ids in NOT_YET for id in ids)


def test_samples_that_wait_are_there_and_named_once() -> None:
    everything = {name for stems in published().values() for versions in stems.values() for name in versions.values()}
    assert set(scope.WAITING_SINGLY) <= everything
    for beginning in [*scope.GONE_SAMPLES, *scope.OLD_NETWORK_SAMPLES,
                      *(one for names in scope.WAITING_SAMPLES.values() for one in names)]:
        folder, _, stem = beginning.partition("/")
        assert any(name.startswith(stem) for name in published()[folder]), beginning


UUIDS = "6c2b1d4e-52f1-4c6e-9d0b-7a3f8e1c9b55", "f5dc173b-6804-445a-a6d8-c705dad5b5eb"


@pytest.mark.parametrize(("sample", "ours", "alike"), [
    ({"a": 1}, {"a": 2}, True), ({"a": 1}, {}, False), ({}, {"a": 1}, False), ({"a": 1}, {"a": "1"}, False),
    ({"a": None}, {"a": "x"}, True), ({"a": "x"}, {"a": None}, False), ({"a": True}, {"a": 1}, False),
    ([], [1], True), ([1], [], False), ([1], [1, 2], True), ([1], [1, "x"], False), ([1, "x"], [1], False),
    ({"metadata": {"a": "b"}}, {"metadata": {}}, True), ({"metadata": {"a": "b"}}, {"metadata": {"c": 1}}, False),
    ({"id": UUIDS[0]}, {"id": UUIDS[1]}, True), ({"id": UUIDS[0]}, {"id": "7"}, False),
    ({"created": "2012-12-02T02:11:57Z"}, {"created": "2020-01-01T00:00:00Z"}, True),
    ({"created": "2012-12-02T02:11:57Z"}, {"created": "2020-01-01T00:00:00.000000"}, False),
    ({"href": f"http://a/v2/p/servers/{UUIDS[0]}"}, {"href": f"http://b:1/v2.1/q/servers/{UUIDS[1]}"}, True),
    ({"href": f"http://a/v2/p/servers/{UUIDS[0]}"}, {"href": f"http://a/p/servers/{UUIDS[0]}"}, False),
    ({"href": "http://a/v2/p/servers?limit=1&marker=m"}, {"href": "http://a/v2/p/servers?limit=1"}, False)])
def test_normal_form_when_an_answer_is_held_against_a_sample_then_form_counts_and_values_do_not(sample, ours, alike
                                                                                                ) -> None:
    assert (not normal.differences(sample, ours)) == alike


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_scenario_keeps_the_contract(world: World, name: str) -> None:
    RAN.add(name)
    SCENARIOS[name](world)


def in_scope() -> list[str]:
    waiting = scope.untouched()
    return [id for id, entry in rows.operations().items() if entry["status"] != "gone" and id not in waiting]


def unseen_errors(standing: World) -> list[str]:
    """``operation [codes]`` that the contract declares and no scenario brought about (some need what is not there)."""
    unseen = {id: sorted({*rows.operations()[id]["errors_declared"]} - standing.live.provoked[id])
              for id in in_scope()}
    return [f"{id} {codes}" for id, codes in unseen.items() if codes]


def test_zz_coverage_is_complete(standing: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Last: every operation in scope answered at each of its turning points, every sample in scope was matched."""
    if {*SCENARIOS} - RAN:
        pytest.skip("only a part of the scenarios ran")
    live = standing.live
    missing = {id: [shown(version) for version in turning_points(id) if version not in live.covered[id]]
               for id in in_scope()}
    missing = {id: versions for id, versions in missing.items() if versions}
    everything = {name for stems in published().values() for versions in stems.values() for name in versions.values()}
    wanted = {name for name in everything if not scope.waits(name)}
    unmatched = sorted(wanted - live.matched)
    never = sorted(set(unmatched) - live.tried)
    with capsys.disabled():
        print(f"\noperations covered {len(in_scope()) - len(missing)} of {len(in_scope())}, "
              f"samples matched {len(wanted) - len(unmatched)} of {len(wanted)}")
        print(f"  samples with a part that is empty yet: {len(live.partly & live.matched)}")
        for issue in {**scope.WAITING, **scope.WAITING_SAMPLES}:
            ids = scope.WAITING.get(issue, ())
            names = sorted(name for name in everything if scope.waits(name) == issue)
            print(f"  waiting for {issue}: {len(ids)} operations, {len(names)} samples")
        print(f"  declared error codes not seen: {'; '.join(unseen_errors(standing)) or 'none'}")
    assert not missing and not unmatched, "\n".join([
        *(f"not covered: {id} at {', '.join(versions)}" for id, versions in missing.items()),
        *(f"not {'tried' if name in never else 'matched'}: {name}" for name in unmatched)])
