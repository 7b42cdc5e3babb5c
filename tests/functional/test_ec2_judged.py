"""Each action of the EC2 API is judged by a client that others wrote."""

from __future__ import annotations

import importlib
from pathlib import Path

from nova.legacy.ec2.actions import ACTIONS

HERE = Path(__file__).resolve()


def test_actions_when_the_api_has_them_then_a_clients_test_judges_each() -> None:
    judged: set[str] = set()
    for path in sorted(HERE.parent.glob("test_ec2_*.py")):
        if path != HERE:
            module = importlib.import_module(f"tests.functional.{path.stem}")
            judged |= {action for test in vars(module).values() for action in getattr(test, "judged", ())
                       if getattr(test, "__name__", "").startswith("test_")}
    assert set(ACTIONS) - judged == set(), "actions without a judge: see tests/functional/ec2_cloud.py"
    assert judged - set(ACTIONS) == set()
