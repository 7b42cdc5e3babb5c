"""What a refused body or query is told: the field, what came, and what would be accepted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nova import errors
from nova.api.routes import ROUTES as COMPUTE
from nova.placement.routes import ROUTES as PLACEMENT
from nova.web import bodies
from nova.web.formats import is_mac, is_time, is_uuid
from nova.web.ranges import minor
from nova.web.schema import Body, Query, Spec, param, row
from nova.web.specs import shown
from nova.web.validation import WORDS

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
THINGS = Body(
    row("thing", "object", required=True),
    row("thing.name", "string", min_length=1, max_length=5),
    row("thing.image", one_of=(Spec(type="string", format="uuid"), Spec(type="string", max_length=0))),
    row("thing.count", "integer_like", min=1),
    row("thing.on", "boolean_like"),
    row("thing.hosts", "array", items=Spec(type="string", format="uuid"), unique_items=True),
    row("thing.nets", "array", or_=(Spec(type="string", allowed=("auto", "none")),)),
    row("thing.tag", "string", since="2.32", until="2.36"),
    row("thing.tag", "string", since="2.42"),
    row("thing.file", "string", until="2.20"),
    row("thing.parts", "array"),
    row("thing.parts[]", "object"),
    row("thing.parts[].size", "integer_like", since="2.30"))


def refusal(body: Any, version: int = 25) -> str:
    with pytest.raises(errors.api.BadInput) as caught:
        THINGS.check(body, version)
    return caught.value.message


@pytest.mark.parametrize(("thing", "words"), [
    ({"name": ""}, "attribute thing.name. Value: ''. It must not be empty."),
    ({"name": "longer"}, "thing.name. Value: longer. It is too long: at most 5 characters."),
    ({"image": "x"}, "thing.image. Value: x. It must be a UUID. Or: It must be empty."),
    ({"count": "many"}, "thing.count. Value: many. It must be an integer."),
    ({"count": 0}, "It is less than the minimum of 1."),
    ({"count": "9" * 30}, "It is an integer beyond 64 bits."),
    ({"on": None}, "thing.on. Value: null. It must be a boolean (true, false, or one of the texts"),
    ({"hosts": [UUID, "x"]}, "thing.hosts. Value: a list of 2 items. Item 1: It must be a UUID."),
    ({"hosts": [UUID, UUID]}, "Its items must differ from each other: item 1 is a duplicate."),
    ({"nets": "some"}, "It must be an array. Or: It must be one of: auto, none."),
    ({"colour": "red"}, "('colour' was unexpected). Known: count, hosts, image, name, nets, on, parts."),
    ({"tag": "a"}, "('tag' was unexpected). It is known from 2.32 to 2.36 and from 2.42 on, not at the version"),
    ({"file": "a"}, "It is known up to 2.20, not at the version of this request."),
    ({"parts": [{}, {"size": 1}]}, "attribute thing.parts[1]. Value: an object with the keys size. Additional"),
    ({"parts": [{"size": 1}]}, "It is known from 2.30 on"),
])
def test_refusal_names_the_field_and_what_would_be_accepted(thing: dict[str, Any], words: str) -> None:
    assert words in refusal({"thing": thing})


def test_refusal_of_the_whole_body_says_so() -> None:
    assert "field/attribute body. Value: a list of 0 items. It must be an object" in refusal([])
    assert "'thing' is a required property" in refusal({})


def test_refusal_shows_nothing_of_what_is_inside_an_object() -> None:
    message = refusal({"thing": {"adminPass": "secret", "name": "vm"}})
    assert "secret" not in message and "adminPass" in message


def test_shown_value_is_short() -> None:
    for value in ("x" * 10_000, {"k" * 5000: 1}, list(range(10_000)), 10 ** 2000):
        assert len(shown(value)) < 250


def test_unknown_parameter_of_another_version_says_when_it_is_known() -> None:
    query = Query(param("limit"), param("locked", since="2.73"), refuse_unknown="2.1")
    with pytest.raises(errors.api.BadInput, match=r"'locked' was unexpected\). It is known from 2.73 on"):
        query.check([("locked", "1")], 5)
    with pytest.raises(errors.api.BadInput, match="Known: limit"):
        query.check([("colour", "1")], 5)


def test_many_keys_of_which_one_comes_twice_are_compared_in_time() -> None:
    keys = [f"k{number}" for number in range(10_000)]
    began = time.monotonic()
    with pytest.raises(errors.Invalid, match="'k9999' is there more than once"):
        bodies.decode(json.dumps(dict.fromkeys(keys, 1)).encode()[:-1] + b', "k9999": 2}')
    assert time.monotonic() - began < 0.5


def test_many_items_that_must_differ_are_compared_in_time() -> None:
    spec = Body(row("list", "array", unique_items=True))
    items = list(range(50_000))
    assert spec.check({"list": items}, 1) == {"list": items}
    with pytest.raises(errors.api.BadInput, match="item 50000 is a duplicate"):
        spec.check({"list": [*items, 7]}, 1)


@pytest.mark.parametrize("text", [f"{UUID}\n", f"{UUID} ", f"\n{UUID}", UUID[:-1], "٠" * 32])
def test_uuid_ends_where_its_text_does(text: str) -> None:
    assert is_uuid(UUID) and is_uuid(UUID.replace("-", "")) and not is_uuid(text)


def test_mac_ends_where_its_text_does() -> None:
    assert is_mac("fa:16:3e:00:00:01") and not is_mac("fa:16:3e:00:00:01\n")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2020-13-01T00:00:00", "1"])
def test_time_beyond_the_calendar_is_none(text: str) -> None:
    assert not is_time(text)


def bodies_of_all_versions() -> Iterator[tuple[Body, int, bool]]:
    for route in {id(route.body): route for route in (*COMPUTE, *PLACEMENT) if route.body is not None}.values():
        turns = {minor(at) for entry in route.body.fields for at in (entry.since, entry.until) if at}
        yield from ((route.body, version, legacy) for version in {1, *turns} for legacy in (False, True))


def test_schema_that_judges_is_the_one_that_the_document_shows_and_each_keyword_of_it_has_words() -> None:
    keywords: set[str] = set()

    def look(schema: dict[str, Any]) -> None:
        keywords.update(schema.keys() - {"properties", "patternProperties"})
        inner = [*schema.get("properties", {}).values(), *schema.get("patternProperties", {}).values(),
                 *schema.get("anyOf", ()), *schema.get("allOf", ()), *([schema["items"]] if "items" in schema else ())]
        for one in inner:
            look(one)

    for body, version, legacy in bodies_of_all_versions():
        judge = body.validator_for(version, legacy)[1]
        assert judge.schema == body.schema(version, legacy)
        look(judge.schema)
    assert keywords - {"anyOf", "allOf", "items", "description"} <= WORDS.keys()


@pytest.mark.parametrize(("thing", "words"), [
    ({"count": None}, "thing.count. Value: null. It must be an integer."),
    ({"count": "1.5"}, "It must be an integer."), ({"count": "0"}, "It is less than the minimum of 1."),
    ({"count": 1.5}, "It must be an integer."), ({"count": True}, "It must be an integer."),
    ({"parts": [7]}, "attribute thing.parts[0]. Value: 7. It must be an object"),
    ({"nets": [], "name": 7}, "thing.name. Value: 7. It must be a string.")])
def test_refusal_of_a_value_of_another_kind_says_which_kinds_are_taken(thing: dict[str, Any], words: str) -> None:
    assert words in refusal({"thing": thing})


def test_body_that_is_taken_has_numbers_and_booleans_for_texts_of_them() -> None:
    taken = THINGS.check({"thing": {"count": "7", "on": "off"}}, 25)
    assert taken == {"thing": {"count": 7, "on": False}}
    whole = THINGS.check({"thing": {"count": 7.0}}, 25)["thing"]["count"]  # an integer, as JSON Schema has it
    assert whole == 7 and isinstance(whole, int)


def test_body_under_v2_loses_its_unknown_keys_after_it_was_judged() -> None:
    body = Body(row("thing", "object", required=True, min_keys=1), row("thing.name", "string"))
    assert body.check({"thing": {"colour": "red"}, "more": 1}, 1, legacy=True) == {"thing": {}}
    with pytest.raises(errors.api.BadInput, match="too few keys"):
        body.check({"thing": {}}, 1, legacy=True)


def test_list_whose_items_are_wrong_one_and_all_is_refused_in_time() -> None:
    began = time.monotonic()
    assert "thing.parts[0]" in refusal({"thing": {"parts": ["x"] * 20_000}})
    assert time.monotonic() - began < 0.5
