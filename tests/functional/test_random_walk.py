"""Thousands of random actions on a whole cloud, with processes that die, fail and fall silent at random moments."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova.db.models.api import ledger
from tests import sampling
from tests.fakes import living_cloud
from tests.fakes.assembled import assemble
from tests.fakes.small_cloud import NEUTRON, NOVA_NETWORK, Networks, make_templates
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import FLAVORS, IMAGES, PINNED, walking_cells, walking_cloud
from tests.fakes.walking_networks import KINDS, NovaNetworks, WalkingNetworks
from tests.fakes.walking_neutron import NeutronNetworks
from tests.fakes.walking_volumes import WalkingVolumes

pytestmark = [pytest.mark.in_turn(7, 10),
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]

HOSTS = ("host1", "host2", "host3", "host4", "host5")
CELLS_HOSTS = tuple(f"host{number}" for number in range(1, 9))  # four in each of two cells
SERVERS, ACTIONS, ALL_ACTIONS = 20, 400, 2000
FEWER = 6  # as many fewer with networks of each kind, but in long walks
CLOUDS: dict[str, tuple[Networks, type[WalkingNetworks]]] = {
    **{name: (kind, NovaNetworks) for name, kind in KINDS.items()}, "neutron": (NEUTRON, NeutronNetworks),
    "volumes": (NOVA_NETWORK, WalkingVolumes)}


@pytest.mark.parametrize("walked", sampling.seeds(2 if sampling.LONG else 1))
def test_walk_when_faults_come_at_random_then_after_each_action_all_is_as_the_records_say(
        tmp_path: Path, walked: int, request: pytest.FixtureRequest, monkeypatch) -> None:
    living_cloud.impatient(monkeypatch)
    logging.disable(logging.CRITICAL)  # thousands of faults are told at length
    (tmp_path / "schemas").mkdir()
    templates = make_templates(tmp_path / "schemas")
    steps = ALL_ACTIONS if request.config.getoption("--long") else ACTIONS
    print(f"seed {walked}")
    try:
        with walking_cloud(tmp_path, templates, HOSTS, walked) as cloud, cloud.mortal():
            walk = Walk(cloud, walked, (*FLAVORS, *PINNED), IMAGES, SERVERS)
            for _ in range(steps):
                walk.step()
            assert walk.unrecorded() == []
            answers = {action for (action, answer) in walk.answers if answer == "ok"}
            assert len(answers) > 15
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("walked", sampling.seeds(2 if sampling.LONG else 1))
def test_walk_in_two_cells_when_faults_come_at_random_then_all_is_as_the_records_say_and_nothing_is_left(
        tmp_path: Path, walked: int, request: pytest.FixtureRequest, monkeypatch) -> None:
    living_cloud.impatient(monkeypatch)
    logging.disable(logging.CRITICAL)
    (tmp_path / "schemas").mkdir()
    templates = make_templates(tmp_path / "schemas")
    print(f"seed {walked}")
    try:
        with walking_cells(tmp_path, templates, CELLS_HOSTS, walked) as cloud, cloud.mortal():
            walk = Walk(cloud, walked, (*FLAVORS, *PINNED), IMAGES, SERVERS, NeutronNetworks)
            for _ in range(ALL_ACTIONS if request.config.getoption("--long") else ACTIONS // 3):
                walk.step()
            used = {row.cell for row in cloud.rows("api", sa.select(ledger))}
            assert used == {part.deps.cell_uuid for part in cloud.parts}
            assert walk.unrecorded() == []
            assert walk.left() == []
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("together", [2, 50])
def test_walk_when_requests_come_together_then_all_is_as_the_records_say_and_nothing_is_left(
        tmp_path: Path, seed: int, together: int, request: pytest.FixtureRequest, monkeypatch) -> None:
    """Requests that come at the same time share transactions, claims and calls."""
    living_cloud.impatient(monkeypatch)
    logging.disable(logging.CRITICAL)
    (tmp_path / "schemas").mkdir()
    templates = make_templates(tmp_path / "schemas")
    sizes = assemble(monkeypatch, together, hold_s=0.02)
    print(f"seed {seed}")
    try:
        with walking_cloud(tmp_path, templates, HOSTS, seed) as cloud, cloud.mortal():
            walk = Walk(cloud, seed, (*FLAVORS, *PINNED), IMAGES, max(SERVERS, together), together=together)
            cloud.set(quota_defaults=dict.fromkeys(cloud.deps.settings.quota_defaults, -1))
            for _ in range((ALL_ACTIONS if request.config.getoption("--long") else ACTIONS) // (4 + together // 4)):
                walk.step()
            assert walk.unrecorded() == []
            assert walk.left() == []
            assert max(sizes) == together
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", sorted(CLOUDS))
def test_walk_with_networks_when_faults_come_at_random_then_all_of_them_are_as_the_records_say_and_nothing_is_left(
        tmp_path: Path, seed: int, kind: str, request: pytest.FixtureRequest, monkeypatch) -> None:
    living_cloud.impatient(monkeypatch)
    logging.disable(logging.CRITICAL)
    (tmp_path / "schemas").mkdir()
    templates = make_templates(tmp_path / "schemas")
    print(f"seed {seed}")
    kept_by, networks = CLOUDS[kind]
    try:
        with walking_cloud(tmp_path, templates, HOSTS, seed, kept_by) as cloud, cloud.mortal():
            walk = Walk(cloud, seed, (*FLAVORS, *PINNED), IMAGES, SERVERS, networks)
            for _ in range(ALL_ACTIONS if request.config.getoption("--long") else ACTIONS // FEWER):
                walk.step()
            assert walk.unrecorded() == []
            assert walk.left() == []
    finally:
        logging.disable(logging.NOTSET)
