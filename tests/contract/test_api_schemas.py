"""Our tables of bodies and queries accept and refuse what the contract's rows do, at every version that differs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from nova import errors
from nova.api.routes import ROUTES
from nova.api.routing import Route
from tests.contract import rows

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)

#: One of each kind of value, right or wrong: every field is tried with all of them.
PROBES: tuple[Any, ...] = (
    None, True, "true", "Maybe", 0, 1, -1, -2, "0", "2", "-1", "07", 1.5, "1.5", 2**31, "", "a", " a", "a ", "a b",
    "x" * 64, "x" * 256, "é", "a\x00b", "a:b", "a,b", "host.example", "-a", "/1.2.3.4", "YWJj", "%%%", "192.0.2.1",
    "2001:db8::1", "192.0.2.0/24", "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "2020-01-01T00:00:00Z", "[", "AUTO", "HARD",
    "soft", "auto", "none", "image", "local", "asc", "name", "ssh", "x509", [], ["a"], ["a", "a"], {}, {"a": "b"},
    {"a b": 1}, {"é": "b"}, {"uuid": "a"})


def served(part: str) -> list[Any]:
    """The rows that have a body (or a query); those under /os-volumes_boot are copies."""
    found = [route for route in ROUTES if getattr(route, part) is not None and "os-volumes_boot" not in route.path]
    return [pytest.param(route, id=f"{route.id} from {route.since}") for route in found]


def turning_points(table: list[dict[str, Any]], first: int, last: int) -> list[int]:
    """The versions from which something else holds."""
    points = {first, last}
    for row in table:
        points.add(rows.minor(row.get("since"), first))
        points.add(rows.minor(row.get("until"), last - 1) + 1)
    return sorted(point for point in points if first <= point <= last)


def span(route: Route) -> tuple[int, int]:
    return rows.minor(route.since, 1), rows.minor(route.until, 104)


def changed(table: list[dict[str, Any]], version: int, first: int) -> set[str]:
    """The fields to try at a turning point: all at the first version, then those with another row than before."""
    if version == first:
        return set(rows.at(table, version))
    before, now = rows.at(table, version - 1), rows.at(table, version)
    return {field for field in {*before, *now} if before.get(field) != now.get(field)}


def minimal(table: dict[str, dict[str, Any]]) -> Any:
    """The smallest body that passes: what is required, made of the first probe that fits."""
    body: dict[str, Any] = {}
    for field, row in table.items():
        steps = rows.steps(field)
        if not steps or not row.get("required") or any(step == "[]" or step.startswith("/") for step in steps):
            continue
        parent = place(body, steps[:-1])
        if parent is not None and steps[-1] not in parent:
            plain_object = "object" in row.get("type", "any") and row.get("min_keys", 0) == 0
            parent[steps[-1]] = {} if plain_object else fitting(table, field, row)
    return body


def fitting(table: dict[str, dict[str, Any]], field: str, row: dict[str, Any]) -> Any:
    if "object" in row.get("type", "any"):
        key = next((name for name in table if name.startswith(f"{field}./")), None)
        return {"a": fitting(table, key, table[key])} if key else {}
    if row.get("allowed"):
        return row["allowed"][0]
    return next((probe for probe in PROBES if probe is not None and not rows.problems(row, probe)), None)


def place(body: Any, steps: list[str]) -> Any:
    """What stands at a path, made where it is missing: lists get one item, patterns the key ``a``."""
    for index, step in enumerate(steps):
        empty: Any = [] if steps[index + 1:index + 2] == ["[]"] else {}
        if step == "[]":
            body.extend([empty] if not body else [])
            body = body[0]
            continue
        name = "a" if step.startswith("/") else step
        if not isinstance(body, dict):
            return None
        if not isinstance(body.get(name), type(empty)):
            body[name] = empty
        body = body[name]
    return body


def bodies(table: dict[str, dict[str, Any]], fields: set[str]) -> Iterator[tuple[str, Any]]:
    """(what was changed, body): the smallest one, and it with each field set to each probe, taken out, or beside a
    stranger.
    """
    base = minimal(table)
    yield "nothing", base
    for field in sorted(fields):
        *before, last = rows.steps(field) or [""]
        for probe in PROBES if last else ():
            body = copy.deepcopy(base)
            parent = place(body, [*before, last] if last == "[]" else before)
            if last == "[]":
                parent = place(body, before[:-1])
                if isinstance(parent, dict):
                    parent[before[-1]] = [copy.deepcopy(probe)]
            elif isinstance(parent, dict):
                parent["a" if last.startswith("/") else last] = copy.deepcopy(probe)
            yield f"{field} = {probe!r}", body
        if last and last != "[]" and not last.startswith("/"):
            body = copy.deepcopy(base)
            parent = place(body, before)
            if isinstance(parent, dict):
                parent.pop(last, None)
                yield f"without {field}", copy.deepcopy(body)
                parent["stranger"] = 1
                yield f"a stranger beside {field}", body


@pytest.mark.parametrize("route", served("body"))
def test_body_schema_agrees_with_the_contract(route: Route) -> None:
    table = rows.shapes(route.id).get("body")
    assert table, f"{route.id} has no body in the contract"
    differences = []
    first, last = span(route)
    for version in turning_points(table, first, last):
        tree = rows.tree_of(table, version)
        for what, body in bodies(rows.at(table, version), changed(table, version, first)):
            theirs, ours = rows.judge_by(tree, body), refusal(route, body, version)
            if bool(theirs) != bool(ours):
                differences.append(f"2.{version} {what}: contract {theirs}, ours {ours}")
    assert not differences, "\n".join(differences[:20])


@pytest.mark.parametrize("route", [entry for entry in served("body")
                                   if "body_v2_0_differs" in rows.shapes(entry.values[0].id)])
def test_body_schema_under_v2_agrees_with_the_contract(route: Route) -> None:
    shapes = rows.shapes(route.id)
    replaced = {row["field"]: row for row in shapes["body_v2_0_differs"]}
    table = [{**replaced.get(row["field"], row), "unknown_keys": "accept"} for row in shapes["body"]]
    tree, differences = rows.tree_of(table, 1), []
    for what, body in bodies(rows.at(table, 1), set(rows.at(table, 1))):
        theirs, ours = rows.judge_by(tree, body), refusal(route, body, 1, legacy=True)
        if bool(theirs) != bool(ours):
            differences.append(f"{what}: contract {theirs}, ours {ours}")
    assert not differences, "\n".join(differences[:20])


def refusal(route: Route, body: Any, version: int, legacy: bool = False) -> str | None:
    assert route.body is not None
    try:
        route.body.check(body, version, legacy)
    except errors.api.BadInput as error:
        return str(error)
    return None


@pytest.mark.parametrize("route", served("query"))
def test_query_schema_agrees_with_the_contract(route: Route) -> None:
    table = rows.shapes(route.id).get("query")
    assert table is not None, f"{route.id} has no query in the contract"
    differences = []
    for version in turning_points(table, *span(route)):
        for name, row in rows.at(table, version).items():
            for probe in PROBES if not name.startswith(("(", "/")) else ():
                if not isinstance(probe, str) or "\x00" in probe:
                    continue
                theirs, ours = rows.problems(row, probe), query_refusal(route, [(name, probe)], version)
                if bool(theirs) != bool(ours):
                    differences.append(f"2.{version} {name}={probe!r}: contract {theirs}, ours {ours}")
        refuses = rows.at(table, version).get("(unknown parameters)", {}).get("handling") == "refuse"
        if bool(query_refusal(route, [("stranger", "1")], version)) != refuses:
            differences.append(f"2.{version}: a stranger should {'' if refuses else 'not '}be refused")
    assert not differences, "\n".join(differences[:20])


def query_refusal(route: Route, pairs: list[tuple[str, str]], version: int) -> str | None:
    assert route.query is not None
    try:
        route.query.check(pairs, version)
    except errors.api.BadInput as error:
        return str(error)
    return None
