"""nova-network's own operations, which the contract calls gone, against a live cloud of VlanManager (fake driver, real
daemons): every one at each of its turning points, and every published sample of theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova.api import legacy_networks
from nova.legacy.api_extras import EXTRAS
from tests.contract import rows
from tests.functional.cloud import Cloud, Plan
from tests.functional.live import scope
from tests.functional.live.caller import published, shown, turning_points
from tests.functional.live.old_networks import OLD_SCENARIOS, OPTIONS
from tests.functional.live.world import World

pytestmark = pytest.mark.in_turn(9, 10)

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)

RAN: set[str] = set()  # scenarios, in this session


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(certs=True, options={"DEFAULT": OPTIONS})).start()


@pytest.fixture(scope="module")
def standing(cloud: Cloud) -> World:
    return World(cloud)


@pytest.fixture
def world(standing: World) -> Iterator[World]:
    """The world; what its judge found in this test fails it."""
    del standing.live.problems[:]
    yield standing
    found = list(dict.fromkeys(standing.live.problems))
    del standing.live.problems[:]
    if found:
        pytest.fail(f"{len(found)} differences:\n" + "\n".join(found), pytrace=False)


@pytest.mark.parametrize("name", sorted(OLD_SCENARIOS))
def test_old_scenario_keeps_the_contract(world: World, name: str) -> None:
    RAN.add(name)
    OLD_SCENARIOS[name](world)


def test_zz_coverage_of_the_old_is_complete(standing: World) -> None:
    """Last: all of the operations answered at each of their turning points, and all of their samples were matched."""
    if {*OLD_SCENARIOS} - RAN:
        pytest.skip("only a part of the scenarios ran")
    live = standing.live
    missing = [f"not covered: {row.id} at {shown(version)}" for row in (*legacy_networks.ROUTES, *EXTRAS.networks)
               for version in turning_points(row.id) if version not in live.covered[row.id]]
    wanted = {name for stems in published().values() for versions in stems.values() for name in versions.values()
              if scope.waits(name) == scope.OLD_NETWORKS}
    assert len(wanted) >= 15
    unmatched = [f"not {'matched' if name in live.tried else 'tried'}: {name}"
                 for name in sorted(wanted - live.matched)]
    assert not missing and not unmatched, "\n".join([*missing, *unmatched])
