"""The reference of the compute API names every operation, parameter, field and code of the tables."""

from __future__ import annotations

import functools
import io
import re

import docutils.core
import pytest

from nova.api import openapi
from nova.api.routes import ROUTES
from nova.api.routing import Route
from tests.docs_parts import api


@functools.cache
def entries() -> dict[str, str]:
    """operation -> its entry's text."""
    parts = re.split(r"^((?:GET|POST|PUT|DELETE) /.*)\n~+\n", api.page(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_page_is_well_formed() -> None:
    complaints = io.StringIO()
    docutils.core.publish_string(api.page(), writer_name="null", settings_overrides={
        "warning_stream": complaints, "report_level": 2})
    assert complaints.getvalue() == ""


def test_page_has_an_entry_for_each_operation_and_no_other() -> None:
    assert set(entries()) == {route.id for route in ROUTES}


@pytest.mark.parametrize("route", [pytest.param(route, id=route.id) for route in ROUTES])
def test_entry_names_all_that_the_tables_have(route: Route) -> None:
    text = entries()[route.id]
    if other := re.match(r"\s*As ``(.*?)``", text):
        text = entries()[other[1]]
    wanted = {str(code) for code in openapi.errors_of(route)} | {route.policy or "every valid token"}
    wanted |= {f"``{field.path}``" for field in route.body.fields if field.path != "(body)"} if route.body else set()
    wanted |= {f"``{param.name}``" for param in route.query.params} if route.query else set()
    assert {one for one in wanted if one.replace('"', '""') not in text} == set()
    assert route.since in text and (route.until or "from") in entries()[route.id]


def test_entry_of_a_server_tells_answers_with_their_types_and_versions() -> None:
    text = entries()["GET /servers/{server_id}"]
    assert '"``server.locked``", "boolean", "from 2.9"' in text
    assert '"``server.flavor.ram`` ' in text or '"``server.flavor.ram``"' in text


def test_entry_of_an_answer_that_some_versions_have_says_which() -> None:
    text = entries()["POST /servers/{server_id}/action#createImage"]
    assert "Answer (from 2.45; else no body):" in text and '"``image_id``", "string"' in text
