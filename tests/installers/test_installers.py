"""Tools that install OpenStack Nova install this: their files, their steps in their order, their reading of what our
programs print."""

from __future__ import annotations

import os
import time

import pytest

from tests import sampling
from tests.fresh import machine
from tests.fresh.machine import Plan
from tests.installers.scenarios import ROWS, SCENARIOS
from tests.installers.site import Site

pytestmark = pytest.mark.in_turn(1, 5)
MACHINE = Plan(systemd=True, pip_cache=True)


@pytest.mark.parametrize("name", sampling.drawn(list(SCENARIOS), 1, every=5))
def test_installer_when_its_whole_order_is_played_then_a_server_boots_and_again_nothing_changes(name: str) -> None:
    if os.getuid() or machine.tools_missing():
        pytest.skip(f"needs root and {' '.join(machine.tools_missing())}")
    scenario = SCENARIOS[name]
    started, ended = time.monotonic(), "FAILED"
    try:
        with machine.Machine(scenario.tree(), MACHINE) as made:
            site = Site(made)
            try:
                ended = scenario.story(site)
            except AssertionError as error:
                error.add_note(site.logs())
                raise
    finally:
        ROWS.append((name, time.monotonic() - started, ended))
