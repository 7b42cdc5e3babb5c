"""What each version of the compute API does is said by tables, and by nothing else: routes, bodies, queries and fields
with a span of versions, and one named function in ``nova.api.versions`` for each behaviour that changed."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nova.api
from nova.api import openapi, versions, views
from nova.api.handlers import server_lists
from nova.api.view import View
from nova.web import ranges
from tests.contract import rows

#: Versions that change nothing here, and why.
NOTHING_HERE = {
    18: "a path may leave the project out at every version", 27: "both version headers are read at every version",
    46: "answers carry the request's id in both headers at every version",
    72: "ports with resource requests are bound at every version", 97: "there are no shares"}
LATER = range(versions.MIN + 1, versions.MAX + 1)
#: Where a version may be compared: what the tables' spans mean, and the named functions.
MAY_COMPARE = {"versions.py"}


def documented() -> Iterator[int]:
    """Versions whose description, which is made from the tables, is another than the one before."""
    told = {number: json.dumps(openapi.document(number)["paths"], sort_keys=True).replace(
        f'{versions.text(number)}"', '"') for number in (versions.MIN, *LATER)}
    yield from (number for number in LATER if told[number] != told[number - 1])


def behaviours() -> dict[str, Callable[..., object]]:
    """The named functions of a version; some are of what the request has, too."""
    return {name: one for name, one in vars(versions).items()
            if inspect.isfunction(one) and one.__module__ == versions.__name__
            and next(iter(inspect.signature(one).parameters), "") == "version" and one is not versions.answer_headers}


def changes_of(behaviour: Callable[..., object]) -> set[int]:
    more = len(inspect.signature(behaviour).parameters) - 1
    found = set()
    for rest in itertools.product((None, "x"), repeat=more):
        found |= {number for number in LATER if behaviour(number, *rest) != behaviour(number - 1, *rest)}
    return found


def fields() -> Iterator[int]:
    """Versions at which a field of an answer begins, or ends."""
    for module in pkgutil.iter_modules(views.__path__, f"{views.__name__}."):
        for view in vars(importlib.import_module(module.name)).values():
            for one in view.fields if isinstance(view, View) else ():
                yield from (ranges.minor(one.since),) if one.since else ()
                yield from (ranges.minor(one.until) + 1,) if one.until else ()


def changes() -> set[int]:
    filters = {ranges.minor(since) for since in server_lists.EVERYBODY.values() if since} - {versions.MIN}
    return {*documented(), *fields(), *filters, *itertools.chain.from_iterable(map(changes_of, behaviours().values()))}


@rows.needs_contract
def test_versions_that_change_something_in_the_tables_are_those_that_the_contract_says() -> None:
    published = {rows.minor(one["version"], 0) for one in rows.load("microversions.yaml")["versions"]} - {versions.MIN}
    assert changes() == published - set(NOTHING_HERE)
    assert set(NOTHING_HERE) <= published and published == set(LATER)


@pytest.mark.parametrize("name", behaviours())
def test_behaviour_when_it_changes_then_it_does_so_once(name: str) -> None:
    assert len(changes_of(behaviours()[name])) == 1, "a behaviour that changes twice is two functions"


def compared(path: Path) -> Iterator[str]:
    """Comparisons of a version's number, by their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            named = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in sides]
            ordered = any(isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq) for one in node.ops)
            if "version" in named and ordered:
                yield f"{path}:{node.lineno} {ast.unparse(node)}"


def test_version_when_something_depends_on_it_then_a_table_says_so_and_no_other_code_compares_it() -> None:
    files = [path for folder in nova.api.__path__ for path in Path(folder).rglob("*.py")
             if path.name not in MAY_COMPARE]
    assert len(files) > 100 and [line for path in files for line in compared(path)] == []
