"""A field of several types: a text that is wrong is told what a text must be, not that it may be one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import webob

from nova.api.routes import ROUTES
from nova.api.versions import number
from nova.web.schema import SchemaNode
from nova.web.specs import Spec, problem_of
from tests.fakes.api import ADMIN, ApiClient
from tests.fakes.smallest_requests import versions_of

TEXTS = ("", " ", " a", "a ", "a:b", "a/b", "a#b", "SCS-2V:4:20", "x" * 70000, "\x00", "\N{SNOWMAN}", "no-uuid", "%%%")


def specs(node: SchemaNode) -> Iterator[Spec]:
    """Of all fields of a compiled body that take texts among others."""
    if "string" in node.spec.types and len(node.spec.types) > 1:
        yield node.spec
    for child in (*node.keys.values(), *(child for _, child in node.patterns), *([node.item] if node.item else ())):
        yield from specs(child)


EVERY = {spec for route in ROUTES if route.body for version in versions_of(route)
         for legacy in (False, True) for spec in specs(route.body.compiled(number(version), legacy))}


def test_text_when_a_field_of_several_types_refuses_it_then_it_is_not_told_to_be_a_text() -> None:
    assert len(EVERY) > 5
    refused = [(spec, text, problem) for spec in EVERY for text in TEXTS if (problem := problem_of(spec, text))]
    assert {spec.pattern for spec, _text, _problem in refused if spec.pattern}
    assert [one for one in refused if "a string" in one[2]] == []


def make(**fields: object) -> webob.Response:
    return ApiClient(token=ADMIN).post("/flavors", {"flavor": {"name": "f", "ram": 1, "vcpus": 1, "disk": 1, **fields}})


@pytest.mark.parametrize("id", ["SCS-2V:4:20", "a/b", "a#b", " a", "a "])
def test_flavor_when_its_id_has_a_character_too_many_then_the_answer_says_which_there_may_be(id: str) -> None:
    answer = make(id=id)
    said = answer.json["badRequest"]["message"]
    assert answer.status_int == 400 and "id" in said
    assert "letters (a to z), digits" in said and "a string" not in said


@pytest.mark.parametrize(("id", "words"), [("", "must not be empty"), ("x" * 256, "at most 255"),
                                           ([], "a string or a number or null"), (True, "a string or a number")])
def test_flavor_when_its_id_is_empty_too_long_or_of_another_type_then_the_answer_says_that(id: object, words: str
                                                                                          ) -> None:
    answer = make(id=id)
    assert answer.status_int == 400 and words in answer.json["badRequest"]["message"]


@pytest.mark.parametrize("ram", ["much", "1x", "", " 1"])
def test_number_when_its_text_is_none_then_it_is_told_to_be_a_number(ram: str) -> None:
    answer = make(ram=ram)
    assert answer.status_int == 400 and "integer" in answer.json["badRequest"]["message"]
