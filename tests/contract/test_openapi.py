"""The OpenAPI document: valid, complete, and saying of bodies and answers what the code and the contract do."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from nova import errors
from nova.api import legacy_v2, openapi, versions
from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.manage import main
from tests.contract import rows
from tests.contract.answers import response_samples
from tests.contract.test_policy_matrix import CALLERS, body_of, the_cloud, versions_of

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

DOCUMENTS = [(1, False), (53, False), (96, False), (104, False), (versions.LEGACY, True)]


@functools.cache
def document(version: int, legacy: bool = False) -> dict[str, Any]:
    """As JSON gives it back."""
    return json.loads(json.dumps(openapi.document(version, legacy)))


def served(version: int) -> list[Route]:
    return [route for route in ROUTES if versions.within(version, route.since, route.until)]


def of(route: Route, version: int) -> dict[str, Any]:
    return document(version)["paths"][route.path][route.method.lower()]


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    judge = jsonschema.Draft202012Validator(schema)
    return [f"{'.'.join(map(str, error.path))}: {error.message}"[:300] for error in judge.iter_errors(value)]


@pytest.mark.parametrize(("version", "legacy"), [
    pytest.param(*one, marks=() if one in ((104, False), (versions.LEGACY, True)) else pytest.mark.long)
    for one in DOCUMENTS])
def test_document_is_valid(version: int, legacy: bool) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # slow to import, and of use only here

    assert [str(error)[:300] for error in OpenAPIV31SpecValidator(document(version, legacy)).iter_errors()] == []


@pytest.mark.parametrize(("version", "legacy"), DOCUMENTS)
def test_document_has_the_operations_of_its_version_and_no_others(version: int, legacy: bool) -> None:
    documented = {(path, method.upper()) for path,
                  item in document(version, legacy)["paths"].items() for method in item}
    also = legacy_v2.ROUTES if legacy else ()
    assert documented == {(route.path, route.method) for route in (*served(version), *also)}


@pytest.mark.parametrize("version", [1, 53, 96, 104])
def test_actions_are_alternatives_of_one_operation(version: int) -> None:
    for route in served(version):
        if route.action:
            schema = of(route, version)["requestBody"]["content"]["application/json"]["schema"]
            choices = schema.get("oneOf", [schema])
            assert sum(choice["required"] == [route.action] for choice in choices) == 1, route.id


@pytest.mark.parametrize("version", [1, 53, 96, 104])
def test_version_header_is_asked_for_except_under_v2(version: int) -> None:
    parameter = document(version)["components"]["parameters"]["Version"]
    assert parameter["schema"]["enum"] == [f"compute 2.{version}"]
    assert "parameters" not in document(versions.LEGACY, True)["components"]


@rows.needs_contract
@pytest.mark.parametrize("version", [1, 53, 96, 104])
def test_codes_are_all_that_the_contract_knows(version: int) -> None:
    for route in served(version):
        entry = rows.operations()[route.id]
        documented = {int(code) for code in of(route, version)["responses"]}
        success = {code["code"] for code in entry["success"] if rows.holds(code, version)}
        assert success <= documented, route.id
        assert set(entry["errors"]) - {500} <= documented, route.id


# -- bodies


def bodies() -> Iterator[tuple[Route, str]]:
    for route in ROUTES:
        if route.body is not None:
            for version in versions_of(route):
                yield route, version


def schema_of_body(route: Route, version: str) -> dict[str, Any]:
    schema = of(route, versions.number(version))["requestBody"]["content"]["application/json"]["schema"]
    return next((one for one in schema.get("oneOf", ()) if one["required"] == [route.action]), schema)


@pytest.mark.parametrize(("route", "version"), [pytest.param(*one, id=f"{one[0].id} at {one[1]}") for one in bodies()])
def test_smallest_body_passes_and_a_strangers_key_does_not(route: Route, version: str) -> None:
    body = body_of(route, version)
    if not isinstance(body, dict):
        return  # anything goes
    assert problems(schema_of_body(route, version), body) == []
    with_stranger = {**body, "stranger": 1}
    try:
        route.body.check(with_stranger, versions.number(version))  # type: ignore[union-attr]
    except errors.api.BadInput:
        assert problems(schema_of_body(route, version), with_stranger)


def probed() -> list[Any]:
    if not rows.SHARED.is_dir():
        return []
    from tests.contract import test_api_schemas as probes

    found = []
    for route, version in bodies():
        table = rows.shapes(route.id).get("body") or []
        if table and "os-volumes_boot" not in route.path:
            held = rows.at(table, rows.minor(version, 1))
            found.append(pytest.param(route, version, held, probes.bodies, id=f"{route.id} at {version}"))
    return found


@pytest.mark.parametrize(("route", "version", "table", "make"), probed())
def test_body_that_the_code_takes_passes_the_document(route: Route, version: str, table: Any, make: Any) -> None:
    """And what the document refuses, the code refuses: of thousands of bodies, right and wrong."""
    schema = schema_of_body(route, version)
    judge = jsonschema.Draft202012Validator(schema)
    loose = total = 0
    for what, body in make(table, set(table)):
        if route.action and (not isinstance(body, dict) or list(body) != [route.action]):
            continue  # no body of this action
        try:
            route.body.check(body, versions.number(version))  # type: ignore[union-attr]
            taken = True
        except errors.api.BadInput:
            taken = False
        total += 1
        if taken:
            assert judge.is_valid(body), f"{what}: {problems(schema, body)}"
        elif judge.is_valid(body):
            loose += 1  # formats, and bounds of numbers given as text, are beyond JSON Schema
    assert loose <= total * 0.35, f"the document lets {loose} of {total} through that the code refuses"


# -- answers


@pytest.mark.parametrize("route", [pytest.param(route, id=route.id) for route in ROUTES])
def test_answer_is_told_field_by_field(route: Route) -> None:
    """Each handler says what it answers (``nova.api.view.answers``), and each field of its views has a type."""
    for version in map(versions.number, versions_of(route)):
        for code in openapi.successes_of(route, version):
            schema = openapi.answer_of(route, code, version)
            if schema is not None:
                assert schema != {}, f"{route.handler.__module__}.{route.handler.__name__} needs @answers(...)"
                assert list(untyped(schema)) == [], f"2.{version}"


def untyped(schema: dict[str, Any], where: str = "") -> Iterator[str]:
    if not {"type", "anyOf", "enum", "allOf"} & set(schema):
        yield where
    for choice in schema.get("anyOf", ()):
        yield from untyped(choice, where)
    for name, inner in schema.get("properties", {}).items():
        yield from untyped(inner, f"{where}.{name}")
    if "items" in schema:
        yield from untyped(schema["items"], f"{where}[]")


#: Servers of a cell that is down: with many cells.
LATER = ("servers/v2.69/servers-details-resp.json",)


def published() -> list[Any]:
    return [sample for sample in response_samples(sorted({route.id for route in ROUTES}))
            if "-req" not in sample.id and sample.id not in LATER]


@pytest.mark.parametrize(("id", "version", "content"), published())
def test_published_answer_passes_the_document(id: str, version: int, content: Any) -> None:
    entry = rows.operations()[id]
    version = max(version, rows.minor(entry["min_version"], 1))
    route = next(route for route in served(version) if route.id == id)
    schema = openapi.answer_of(route, route.success(version), version)
    if schema is None:
        assert route.action, "a sample for an operation that we answer without a body"
        return  # the sample is the action's request
    assert problems(json.loads(json.dumps(schema)), content) == []


@rows.needs_contract
@pytest.mark.parametrize("route", [pytest.param(route, id=route.id) for route in ROUTES])
def test_answer_of_the_application_passes_the_document(route: Route) -> None:
    """As an administrator, over the fake conductor; a code that is not told of is wrong, too."""
    for version in versions_of(route):
        answer = the_cloud().send(route, version, CALLERS["project admin"])
        documented = of(route, versions.number(version))["responses"]
        assert str(answer.status_int) in documented, f"2.{version}: {answer.status_int} {answer.text[:300]}"
        if answer.status_int < 300 and answer.body:
            schema = documented[str(answer.status_int)]["content"]["application/json"]["schema"]
            assert problems(schema, answer.json) == [], f"2.{version}"


# -- the command


@pytest.mark.parametrize(("words", "code"), [(["--version", "2.96"], 0), (["--version", "2.0"], 0), ([], 0),
                                             (["--version", "2.999"], 2), (["--version", "new"], 2)])
def test_command_prints_the_document_of_the_version(words: list[str], code: int,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    given = main.parser().parse_args(["api", "schema", *words])
    assert given.command.run(None, given) == code
    printed = capsys.readouterr().out
    if code == 0:
        version = given.version if given.version != "latest" else versions.text(versions.MAX)
        assert json.loads(printed)["info"]["version"] == version
    else:
        assert given.version in printed
