"""Holds our answers against the contract's: at every version of an operation, and against the published samples."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
import webob

from tests import sampling, turns
from tests.contract import rows
from tests.fakes.api import ApiClient

#: Objects whose keys are the user's.
FREE = ("metadata", "extra_specs", "hosts")
#: Fields of a network whose rows in the contract were taken from Neutron's answer, where all of them are null.
NEUTRONS_ROWS = re.compile(r"\.(deleted|enable_dhcp|injected|multi_host|share_address|vlan|priority|rxtx_base): ")
VERSIONS_IN = turns.rotating(10)  # of the versions at which nothing changes, so many have one tried


def span(id: str) -> list[int]:
    """The versions an operation has, from its first to its last: those where the contract changes, the last before each
    of them (where what changed of ours alone is seen), and some that the seed chooses; with ``--long`` all."""
    return list(_span(id))


@functools.cache
def _span(id: str) -> tuple[int, ...]:
    entry = rows.operations()[id]
    first, last = rows.minor(entry["min_version"], 1), rows.minor(entry["max_version"], 104)
    every = range(first, last + 1)
    turns = {first, last, *_turns(rows.shapes(id)), *_turns(entry["success"])}
    known = {point for turn in turns for point in (turn - 1, turn) if point in every}
    return tuple(sorted(known.union(sampling.one_in(VERSIONS_IN, every))))


def _turns(value: Any) -> Iterator[int]:
    """The versions from which something else holds, anywhere in the contract's rows."""
    if isinstance(value, Mapping):
        if isinstance(value.get("since"), str):
            yield rows.minor(value["since"], 1)
        if isinstance(value.get("until"), str):
            yield rows.minor(value["until"], 104) + 1
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _turns(one)


def assert_answer(id: str, version: int, answer: webob.Response) -> None:
    """The code is the contract's, and the body passes its rows."""
    codes = {code["code"] for code in rows.operations()[id]["success"] if rows.holds(code, version)}
    assert answer.status_int in codes, f"2.{version}: {answer.text}"
    body = answer.json if answer.body else None
    assert rows.judge(rows.shapes(id)["response"], body, version) == [], f"2.{version}"


def assert_reads(id: str, client: ApiClient, path: str | Callable[[int], str]) -> None:
    """``path`` (by version, where it differs) answers right at every version the operation has, and under /v2."""
    for version in span(id):
        assert_answer(id, version, client.get(path if isinstance(path, str) else path(version), version=f"2.{version}"))
    client.prefix = "/v2"
    answer = client.get(path if isinstance(path, str) else path(1), version="2.104")
    assert_answer(id, 1, answer)
    assert "OpenStack-API-Version" not in answer.headers


def response_samples(ids: Iterable[str]) -> list[Any]:
    """(id, version, content) of the published answers of operations."""
    if not rows.SHARED.is_dir():
        return []
    found = []
    for id in ids:
        for name, version, content in rows.samples(rows.operations()[id]):
            if not name.endswith("-req.json") and not _asks(id, content):
                found.append(pytest.param(id, version, content, id=name))
    return found


def _asks(id: str, content: Any) -> bool:
    """Whether a sample is an action's request: it has the action's name as its only key."""
    return "#" in id and isinstance(content, dict) and list(content) == [id.partition("#")[2]]


def fields(value: Any, where: str = "") -> set[str]:
    """The paths of an answer's fields."""
    if isinstance(value, dict):
        if where.endswith(FREE):
            return set()
        return {f"{where}.{key}" for key in value}.union(*(fields(item, f"{where}.{key}")
                                                           for key, item in value.items()))
    if isinstance(value, list):
        return set().union(*(fields(item, f"{where}[]") for item in value))
    return set()
