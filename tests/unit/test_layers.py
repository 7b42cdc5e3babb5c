"""The contracts in pyproject.toml that can't name ``nova`` as a whole name every room, but for those they except."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
#: Contract -> rooms it says nothing of. (A contract on ``nova`` with an exception can not forbid a part of ``nova``.)
EXCEPTED = {
    "Only the conductor and the composition root touch the database": {
        "nova.db", "nova.conductor", "nova.cmd", "nova.manage"},
    "Only the conductor and the composition root tell events": {
        "nova.notifications", "nova.conductor", "nova.cmd", "nova.manage"},
}


@pytest.mark.parametrize("name", EXCEPTED)
def test_contract_names_every_room_but_its_exceptions(name: str) -> None:
    contracts = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    sources = next(one["source_modules"] for one in contracts if one["name"] == name)
    rooms = {f"nova.{path.stem}" for path in (TOP / "nova").iterdir() if path.stem[0] != "_"}
    assert set(sources) == rooms - EXCEPTED[name]
