"""Each bound of each row of the contract, on both sides, at each span of versions, against the tables of nova.api.

The bodies are made from the contract's rows and judged by them; ``nova.web.schema`` has to come to the same verdict.
Hypothesis draws the values between and around the bounds, the same in every run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nova import errors
from nova.api.routes import ROUTES
from nova.api.routing import Route
from tests import sampling
from tests.contract import making, rows

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)

EXAMPLES = sampling.examples(20, 60)
SHOWN = 15
REPRODUCIBLE = settings(derandomize=True, max_examples=EXAMPLES, deadline=None, database=None,
                        suppress_health_check=list(HealthCheck))


def served(part: str) -> list[Any]:
    """The rows that have a body (or a query); those under /os-volumes_boot are copies."""
    return [pytest.param(route, id=f"{route.id} from {route.since}") for route in ROUTES
            if getattr(route, part) is not None and "os-volumes_boot" not in route.path]


def spans(route: Route, part: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The first version of each span in which the same rows hold, with the operation's rows."""
    table = rows.shapes(route.id).get(part) or []
    first, last = rows.minor(route.since, 1), rows.minor(route.until, 104)
    points = {first, *(rows.minor(row.get("since"), first) for row in table),
              *(rows.minor(row.get("until"), last) + 1 for row in table)}
    yield from ((point, table) for point in sorted(points) if first <= point <= last)


def refusal(route: Route, body: Any, version: int, legacy: bool = False) -> str | None:
    assert route.body is not None
    try:
        route.body.check(body, version, legacy)
    except errors.api.BadInput as error:
        return str(error)
    return None


def compare(route: Route, tree: making.Node, body: Any, version: int, what: str) -> str | None:
    """What is different between the contract's verdict and ours; None when they agree."""
    theirs, ours = rows.judge_by(tree, body), refusal(route, body, version)
    if bool(theirs) == bool(ours):
        return None
    return f"2.{version} {what}: contract {theirs or 'takes it'}, ours {ours or 'takes it'}: {str(body)[:300]}"


def show(differences: list[str]) -> None:
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:SHOWN])


@pytest.mark.parametrize("route", served("body"))
def test_body_when_it_is_the_smallest_then_it_is_taken_at_every_span(route: Route) -> None:
    for version, table in spans(route, "body"):
        tree = rows.tree_of(table, version)
        body = making.smallest_body(tree, route.action)
        assert rows.judge_by(tree, body) == [], f"2.{version}: {body} was made wrong"
        assert refusal(route, body, version) is None, f"2.{version}: {body}"


@pytest.mark.parametrize("route", served("body"))
def test_body_when_a_field_is_on_either_side_of_a_bound_then_the_contract_is_kept(route: Route) -> None:
    differences: list[str] = []
    seen: dict[tuple[str, ...], str] = {}
    for version, table in spans(route, "body"):
        tree = rows.tree_of(table, version)
        base = making.smallest_body(tree, route.action)
        for steps, node in making.paths(tree):
            if seen.get(steps) == str(node):  # as in the span before
                continue
            seen[steps] = str(node)
            verdicts = set()
            for value in making.edges(node):
                body = making.put(tree, base, steps, value)
                verdicts.add(bool(rows.judge_by(tree, body)))
                differences += filter(None, [compare(route, tree, body, version, f"{'.'.join(steps)}={value!r}"[:200])])
            ruled = node.get("row", {}).keys() - {"field", "required", "since", "until"} and \
                node["row"].get("type") not in ("any", None)
            if ruled and verdicts != {True, False}:
                differences.append(f"2.{version} {'.'.join(steps)}: only tried {'outside' if True in verdicts else ''}"
                                   f"{'inside' if False in verdicts else ''} of {node['row']}")
    show(differences)


@pytest.mark.parametrize("route", served("body"))
def test_body_when_a_key_is_unknown_or_missing_then_the_contract_is_kept(route: Route) -> None:
    differences: list[str] = []
    for version, table in spans(route, "body"):
        tree = rows.tree_of(table, version)
        base = making.smallest_body(tree, route.action)
        holders = [((), tree), *((steps, node) for steps, node in making.paths(tree) if "[]" not in node.get("in", {})
                                 and (node.get("in") or node.get("row", {}).get("unknown_keys")))]
        for steps, node in holders:
            inside = making.opened_object(node.get("row", {}), node.get("in", {}))
            tries = [("a stranger", inside | {"stranger": 1}),
                     *((f"without {name}", {k: v for k, v in inside.items() if k != name}) for name in inside)]
            for what, value in tries:
                body = making.put(tree, base, steps, value) if steps else value
                differences += filter(None, [compare(route, tree, body, version, f"{what} in {'.'.join(steps)}")])
            refused = rows.judge_by(tree, making.put(tree, base, steps, tries[0][1]) if steps else tries[0][1])
            open_to_all = any(re.search(name[1:-1], "stranger") for name in node.get("in", {})
                              if name.startswith("/"))
            if node.get("row", {}).get("unknown_keys") == "refuse" and not refused and not open_to_all:
                differences.append(f"2.{version} {'.'.join(steps)}: a stranger passes, the contract refuses it")
    show(differences)


@pytest.mark.parametrize("route", served("body"))
def test_body_when_values_are_drawn_around_the_bounds_then_the_contract_is_kept(route: Route) -> None:
    found: dict[tuple[tuple[str, ...], str], Any] = {}
    for version, table in spans(route, "body"):
        tree = rows.tree_of(table, version)
        base = making.smallest_body(tree, route.action)
        for steps, node in making.paths(tree):
            found.setdefault((steps, str(node)), (version, tree, base, steps, node))
    fields = list(found.values())
    if not fields:
        pytest.skip("the body has no fields")

    @REPRODUCIBLE
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        version, tree, base, steps, node = data.draw(st.sampled_from(fields))
        value = data.draw(around(node.get("row", {})))
        body = making.put(tree, base, steps, value)
        problem = compare(route, tree, body, version, f"{'.'.join(steps)}={value!r}"[:200])
        assert problem is None, problem
    holds()


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"),
               max_size=12)


def around(row: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values near what a row takes: of its kind, about its bounds, and of other kinds."""
    choices: list[st.SearchStrategy[Any]] = [TEXT, st.sampled_from(making.OTHERS), st.integers(-3, 3)]
    for name in ("min", "max", "above"):
        if name in row:
            near = st.integers(int(row[name]) - 3, int(row[name]) + 3)
            choices += [near, near.map(str)]
    for name in ("min_length", "max_length"):
        if name in row:
            lengths = st.integers(max(row[name] - 1, 0), row[name] + 1)
            choices.append(lengths.flatmap(lambda size: st.sampled_from("aZ9.é").map(lambda char: char * size)))
    if "allowed" in row:
        choices.append(st.sampled_from(row["allowed"]))
    for other in ("one_of", "any_of", "or"):
        choices += [around(choice) for choice in row.get(other, ())]
    return st.one_of(choices)


# --- under /v2


@pytest.mark.parametrize("route", served("body"))
def test_body_under_v2_when_keys_are_unknown_then_they_are_stripped_and_the_rest_is_kept(route: Route) -> None:
    if rows.minor(route.since, 1) > 1:
        pytest.skip("the operation is not under /v2")
    shapes = rows.shapes(route.id)
    differs = {row["field"]: row for row in shapes.get("body_v2_0_differs", ())}
    table = [{**differs.get(row["field"], row), "unknown_keys": "accept"} for row in shapes["body"]
             if rows.holds(row, 1)]
    tree = rows.tree_of(table, 1)
    base, differences = making.smallest_body(tree, route.action), []
    tries = [base, {**base, "stranger": 1}] if isinstance(base, dict) else [base]
    tries += [making.put(tree, base, steps, value) for steps, node in making.paths(tree)
              for value in making.edges(node) if steps[-1] in {field.rsplit(".", 1)[-1] for field in differs}]
    for body in tries:
        theirs, ours = rows.judge_by(tree, body), refusal(route, body, 1, legacy=True)
        if bool(theirs) != bool(ours):
            differences.append(f"/v2: contract {theirs or 'takes it'}, ours {ours or 'takes it'}: {str(body)[:300]}")
    show(differences)


# --- queries


def query_refusal(route: Route, pairs: list[tuple[str, str]], version: int) -> str | None:
    assert route.query is not None
    try:
        route.query.check(pairs, version)
    except errors.api.BadInput as error:
        return str(error)
    return None


@pytest.mark.parametrize("route", served("query"))
def test_query_when_a_parameter_is_on_either_side_of_a_bound_then_the_contract_is_kept(route: Route) -> None:
    differences: list[str] = []
    for version, table in spans(route, "query"):
        at = rows.at(table, version)
        for name, row in at.items():
            if name.startswith(("(", "/")):
                continue
            for value in dict.fromkeys(one for one in making.edges({"row": row}) if isinstance(one, str)
                                       and "\0" not in one):  # which no parameter of ours takes
                theirs, ours = rows.problems(row, value), query_refusal(route, [(name, value)], version)
                if bool(theirs) != bool(ours):
                    differences.append(f"2.{version} {name}={value!r}: contract {theirs}, ours {ours}")
            twice = query_refusal(route, [(name, value) for value in [good(row)] * 2], version)
            if bool(twice) and row.get("repeat", False):
                differences.append(f"2.{version} {name} twice: {twice}")
        refuses = at.get("(unknown parameters)", {}).get("handling") == "refuse"
        if bool(query_refusal(route, [("stranger", "1")], version)) != refuses:
            differences.append(f"2.{version}: a stranger should {'' if refuses else 'not '}be refused")
    show(differences)


def good(row: dict[str, Any]) -> str:
    return next(text for text in making.edges({"row": row}) if isinstance(text, str) and not rows.problems(row, text))
