"""Machines unlike this one: `bin/nova-all`, `bin/stack up` and the unit tests on a Debian with nothing or little in it,
or with something odd."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from tests import sampling
from tests.fresh import machine, readme, trees
from tests.fresh.cases import CASES, ROWS

BORROWED_MB = 4000  # a limit: what is not written takes no memory
FEW = 1  # of those that CI draws from; a run with the next seed has the next ones
ALWAYS = [name for name in CASES if CASES[name].always]
QUICK = sampling.drawn([name for name in CASES if CASES[name].quick], FEW)  # drawn in a long run, too: it has all turns
IN_TURN = sampling.drawn([name for name in CASES if CASES[name].in_turn], 1)
CHOSEN = list(CASES) if sampling.LONG else ALWAYS + QUICK + IN_TURN


@pytest.mark.parametrize("name", CHOSEN)
def test_machine_when_unlike_ours_then_its_cloud_answers_or_a_line_says_what_to_do(name):
    if os.getuid() or machine.tools_missing():
        pytest.skip(f"needs root and {' '.join(machine.tools_missing())}")
    case = CASES[name]
    whole = sampling.LONG or case.bare
    made = case.tree() if whole else trees.borrowed()
    plan = case.plan if whole else replace(case.plan, disk=BORROWED_MB)
    started, ended = time.monotonic(), "FAILED"
    try:
        with machine.Machine(made, plan) as fresh:
            ended = case.story(fresh)
            assert readme.left_out(name, fresh.commands) == []
    finally:
        ROWS.append((name, time.monotonic() - started, ended))
