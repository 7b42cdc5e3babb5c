"""What elements mean: names, kinds of values, lists, and that no document is more than a body that is refused."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.api import app, versions
from nova.legacy.api_extras import EXTRAS
from nova.legacy.xml import requests
from nova.legacy.xml.namespaces import COMPUTE
from nova.legacy.xml.reader import read
from nova.web.schema import ACCEPT, Body, SchemaNode, row

TABLE = Body(
    row("thing", "object", required=True, unknown=ACCEPT),
    row("thing.count", "integer"), row("thing.size", "number"), row("thing.on", "boolean"),
    row("thing.like", "integer_like"), row("thing.maybe", "boolean_like"), row("thing.text", "string"),
    row("thing.none", ("string", "null")), row("thing.free"), row("thing.one_or_more", ("string", "array")),
    row("thing.list", "array"), row("thing.list[]", "object"), row("thing.list[].id", "integer"),
    row("thing.object", "object"), row("thing.object.a", "string"), row("thing.OS-DCF:diskConfig", "string"))


def thing(inner: str, attributes: str = "", table: Body = TABLE) -> Any:
    root = read(f"<thing xmlns='{COMPUTE}' {attributes}>{inner}</thing>".encode())
    return requests.body_of(root, table.compiled(versions.LEGACY, True))["thing"]


@pytest.mark.parametrize(("inner", "value"), [
    ("<count>3</count>", {"count": 3}), ("<count>x</count>", {"count": "x"}), ("<size>1.5</size>", {"size": 1.5}),
    ("<on>True</on>", {"on": True}), ("<on>0</on>", {"on": False}), ("<on>perhaps</on>", {"on": "perhaps"}),
    ("<like>3</like>", {"like": "3"}), ("<maybe>no</maybe>", {"maybe": "no"}), ("<text>3</text>", {"text": "3"}),
    ("<text/>", {"text": ""}), ("<none/>", {"none": None}), ("<free/>", {"free": None}), ("<list/>", {"list": []}),
    ("<object/>", {"object": {}}), ("<object> <a>x</a> </object>", {"object": {"a": "x"}}),
    ("<list><x id='1'/><y><id>2</id></y></list>", {"list": [{"id": 1}, {"id": 2}]}),
    ("<one_or_more>a</one_or_more>", {"one_or_more": "a"}),
    ("<one_or_more>a</one_or_more><one_or_more>b</one_or_more>", {"one_or_more": ["a", "b"]}),
    ("<other>a</other><other>b</other>", {"other": ["a", "b"]}),
    ("<user_data> YQ\n== </user_data>", {"user_data": "YQ=="}), ("<imageRef>http://x/images/id/</imageRef>",
                                                                 {"imageRef": "id"}),
    ("<text>a<!-- not this -->b</text>", {"text": "ab"}), ("<text> a </text>", {"text": "a"}),
    ("<text>\n  a  b\r\n\t</text>", {"text": "a  b"}), ("<text>\u00a0a</text>", {"text": "\u00a0a"}),
    ("<count> 3\n</count>", {"count": 3}), ("<on>\n true </on>", {"on": True}), ("<text> \n </text>", {"text": ""}),
    ("<imageRef>\n http://x/images/id/ </imageRef>", {"imageRef": "id"}), ("<other> a </other>", {"other": "a"}),
    ("<text>&#10;a&#32;</text>", {"text": "a"})])
def test_element_then_is_of_the_kind_that_the_table_says(inner: str, value: Any) -> None:
    assert thing(inner) == value


@pytest.mark.parametrize("attributes", [
    "diskConfig='AUTO'", "xmlns:a='http://docs.openstack.org/compute/ext/disk_config/api/v1.1' a:diskConfig='AUTO'",
    "xmlns:OS-DCF='http://elsewhere.example/' OS-DCF:diskConfig='AUTO'"])
def test_attribute_whatever_its_namespace_then_is_matched_by_its_name(attributes: str) -> None:
    assert thing("", attributes) == {"OS-DCF:diskConfig": "AUTO"}


@pytest.mark.parametrize("inner", ["<text>a</text><text>b</text>", "<count>1</count><count>1</count>",
                                   "<object/><object/>"])
def test_name_when_it_comes_twice_and_may_not_then_is_refused(inner: str) -> None:
    with pytest.raises(errors.Invalid, match="more than once"):
        thing(inner)


def nodes(node: SchemaNode) -> set[str]:
    found = {*node.keys}
    for inner in (*node.keys.values(), *(inner for _, inner in node.patterns), *([node.item] if node.item else [])):
        found |= nodes(inner)
    return found


BODIES = {route.id: route for route in app.table("nova-network", EXTRAS) if route.body is not None
          and versions.within(versions.LEGACY, route.since, route.until)}
TEXTS = st.sampled_from(["", " ", "1", "-1", "x", "True", "None", "a/b", "YQ==", "1e9", "http://x/y"])


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(BODIES)))
def test_body_whatever_its_elements_are_then_is_taken_or_invalid(data: st.DataObject, id: str) -> None:
    table = BODIES[id].body
    assert table is not None
    node = table.compiled(versions.LEGACY, True)
    # names of XML: a prefix of a key is part of its namespace, which is not looked at
    names = st.sampled_from(sorted({name.rpartition(":")[2] for name in nodes(node)} | {"meta", "file", "item", "key"}))

    def fill(element: Element, depth: int) -> None:
        for name in data.draw(st.lists(names, max_size=3)):
            element.set(name, data.draw(TEXTS))
        element.text = data.draw(TEXTS)
        for name in data.draw(st.lists(names, max_size=3 if depth else 0)):
            fill(SubElement(element, name), depth - 1)

    root = Element(data.draw(st.sampled_from(sorted(node.keys) or ["key"])).rpartition(":")[2])
    fill(root, 2)
    try:
        table.check(requests.body_of(root, node), versions.LEGACY, True)
    except errors.Invalid as error:
        assert error.status == 400
