"""The watch on pools of connections sees what it is there for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nova
from nova.db.sql.engine import Database
from tests.fakes import pools

NESTED = """
def nested(outer, inner):
    with outer.reading(), inner.reading():
        pass
"""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[dict[str, Database]]:
    made = {name: Database(f"sqlite:///{tmp_path}/{name}") for name in ("cell", "api")}
    yield made
    for one in made.values():
        one.dispose()
    pools.WRONG.clear()


def nested() -> Callable[[Database, Database], None]:
    """As if a module of ours did it."""
    names: dict[str, Any] = {}
    exec(compile(NESTED, str(Path(nova.__file__).with_name("made_up.py")), "exec"), names)
    found: Callable[[Database, Database], None] = names["nested"]
    return found


@pytest.mark.parametrize("outer, inner, found", [("cell", "cell", 1), ("api", "api", 1), ("api", "cell", 1),
                                                 ("cell", "api", 0)])
def test_watch_when_a_connection_is_taken_within_anothers_use_then_only_the_cells_first_is_right(
        stores: dict[str, Database], outer: str, inner: str, found: int) -> None:
    nested()(stores[outer], stores[inner])
    assert len(pools.WRONG) == found, pools.WRONG
    assert all(line.count("nova/made_up.py:3") == 2 for line in pools.WRONG)
