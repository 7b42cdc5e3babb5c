"""Answers in XML: every value comes back from what was written, and what has no form there is told apart."""

from __future__ import annotations

import ast
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from nova.api import faults, versions
from nova.api.schemas import servers as server_schemas
from nova.legacy.xml import reader, requests
from nova.legacy.xml.answers import Laid
from nova.legacy.xml.layouts import META, TIMES, Listing, Record, Root, singular
from nova.legacy.xml.namespaces import COMPUTE, EXTENSIONS
from nova.legacy.xml.writer import document, write
from tests.prose import TOP
from tests.unit.legacy.xml.samples import parsed

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

CHARACTERS = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff",
                           include_characters="\t\n\r")
TEXT = st.text(CHARACTERS, min_size=1, max_size=20).filter(str.strip)
SPECIAL = {"meta", *requests.LISTS, *requests.ENCODED, *requests.REFERENCES, *requests.BARE}
NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_.-]{0,12}\Z").filter(lambda name: name not in SPECIAL)
TRIMMED = TEXT.map(lambda text: text.strip(" \t\r\n"))
OBJECTS = st.recursive(TRIMMED, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=4), max_leaves=12)


@settings(deadline=None)
@given(NAMES, st.dictionaries(NAMES, OBJECTS, min_size=1, max_size=5))
def test_object_when_written_and_read_then_is_the_same(name: str, value: dict[str, Any]) -> None:
    root = reader.read(document(Laid(name, Root(Record()), value)))
    assert requests.body_of(root, None) == {name: value}


@settings(deadline=None)
@given(st.dictionaries(TEXT, TEXT, max_size=6))
def test_metadata_whatever_its_keys_when_written_and_read_then_is_the_same(value: dict[str, str]) -> None:
    table = server_schemas.CREATE.compiled(versions.LEGACY, True).keys["server"]
    root = reader.read(write({"metadata": value}))
    assert requests.body_of(root, table) == {"metadata": value}


SERVER = Root(Record(attributes=True, inside={
    "metadata": META, "networks": Listing("network", Record(attributes=True)), "personality": Listing("file"),
    "security_groups": Listing("security_group", Record(attributes=True)),
    "block_device_mapping_v2": Listing("mapping", Record(attributes=True))}), COMPUTE)
FLAGS = st.booleans()
BODIES = st.fixed_dictionaries(
    {"name": TRIMMED.filter(lambda name: name.isprintable()), "flavorRef": st.sampled_from(["1", "42"])},
    optional={
        "min_count": st.integers(1, 9), "config_drive": FLAGS, "return_reservation_id": FLAGS,
        "OS-DCF:diskConfig": st.sampled_from(["AUTO", "MANUAL"]), "accessIPv4": st.just("192.0.2.1"),
        "metadata": st.dictionaries(st.from_regex(r"\A[a-zA-Z0-9-_:. ]{1,20}\Z"), TEXT, max_size=3),
        "networks": st.lists(st.fixed_dictionaries({"uuid": st.uuids().map(str)}), max_size=3),
        "security_groups": st.lists(st.just({"name": "default"}), max_size=2),
        "block_device_mapping_v2": st.lists(st.fixed_dictionaries(
            {"boot_index": st.integers(-1, 3), "delete_on_termination": FLAGS, "volume_size": st.integers(1, 99),
             "source_type": st.sampled_from(["blank", "image"])}), max_size=2)})


@settings(deadline=None)
@given(BODIES)
def test_body_of_a_server_when_written_and_read_then_handlers_get_the_same_as_of_json(server: dict[str, Any]) -> None:
    table = server_schemas.CREATE
    root = reader.read(document(Laid("server", SERVER, server)))
    made = requests.body_of(root, table.compiled(versions.LEGACY, True))
    in_json = table.check({"server": server}, versions.LEGACY, True)
    assert table.check(made, versions.LEGACY, True) == in_json


@settings(deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_text_whatever_characters_it_has_then_gives_a_document(text: str, key: str) -> None:
    root = parsed(write({"thing": {"value": text, "inner": {key: text}}}))
    kept = re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
    assert (root.find("value").text or "") == kept


@pytest.mark.parametrize(("value", "text"), [(None, "None"), (True, "True"), (False, "False"), (1.0, "1.0"), (-1, "-1"),
                                             ("", None), ("a<&>\"'", "a<&>\"'")])
def test_plain_value_then_is_spelled_as_python_does(value: object, text: str | None) -> None:
    root = parsed(write({"thing": {"value": value}}))
    assert root.find("value").text == text
    assert parsed(write({"floating_ip": {"pool": value}})).get("pool") == (text or "")


@pytest.mark.parametrize(("name", "item"), [("keypairs", "keypair"), ("policies", "policy"), ("hosts_not_run", "item"),
                                            ("floating_ip_info", "item"), ("s", "item"), ("dns_entries", "dns_entry")])
def test_list_then_names_its_items(name: str, item: str) -> None:
    assert singular(name) == item
    assert [child.tag for child in parsed(write({"thing": {name: ["x"]}}))[0]] == [item]


def test_key_when_it_is_no_name_of_xml_then_stands_in_an_attribute() -> None:
    root = parsed(write({"aggregate": {"metadata": {"a b": "1", "7": "2", "ok": "3", "a:b:c": "4"}}}))
    assert [(child.tag, dict(child.attrib), child.text) for child in root[0]] == [
        ("meta", {"key": "a b"}, "1"), ("meta", {"key": "7"}, "2"), ("ok", {}, "3"), ("meta", {"key": "a:b:c"}, "4")]


@pytest.mark.parametrize("key", ["xmlns:a", "xml:lang", "XmlA:b", "atom:link", "a:b:c", "1:a", "a:1", ":a", "a:",
                                 "a b"])
def test_extra_spec_when_its_key_can_have_no_namespace_then_stands_in_an_attribute(key: str) -> None:
    content = write({"extra_specs": {key: "1"}})
    assert [(child.tag, dict(child.attrib)) for child in parsed(content)] == [("meta", {"key": key})]
    assert requests.body_of(reader.read(content), None) == {"extra_specs": {key: "1"}}


def test_extra_spec_when_its_key_has_a_prefix_then_is_in_a_namespace_of_that_name() -> None:
    content = write({"extra_specs": {"hw:cpu_policy": "shared", "own": "1"}})
    root = parsed(content)
    assert root.nsmap == {"hw": "hw"} and [child.tag for child in root] == ["{hw}cpu_policy", "own"]
    assert requests.body_of(reader.read(content), None) == {"extra_specs": {"hw:cpu_policy": "shared", "own": "1"}}


@pytest.mark.parametrize("alias", EXTENSIONS)
def test_extension_when_it_adds_an_attribute_then_its_alias_is_the_prefix(alias: str) -> None:
    root = parsed(write({"server": {"id": "1", f"{alias}:some": "x"}}))
    assert root.get(f"{{{EXTENSIONS[alias].namespace}}}some") == "x"
    assert root.nsmap[alias] == EXTENSIONS[alias].namespace


def test_pages_links_then_are_at_the_end_of_the_root() -> None:
    root = parsed(write({"servers": [{"id": "1", "name": "a", "links": []}],
                         "servers_links": [{"rel": "next", "href": "http://x/?marker=1&limit=1"}]}))
    assert [etree.QName(child).localname for child in root] == ["server", "link"]
    assert dict(root[-1].attrib) == {"rel": "next", "href": "http://x/?marker=1&limit=1"}


def test_server_when_it_boots_from_a_volume_then_its_image_is_empty() -> None:
    image = parsed(write({"server": {"id": "1", "image": ""}})).find(f"{{{COMPUTE}}}image")
    assert image is not None and not image.attrib and not len(image) and image.text is None


@pytest.mark.parametrize(("status", "name"), [
    (400, "badRequest"), (413, "overLimit"), (429, "overLimit"), (503, "serviceUnavailable"), (500, "computeFault"),
    (410, "computeFault")])
def test_fault_then_has_its_code_and_when_to_ask_again(status: int, name: str) -> None:
    root = parsed(write(msgspec.json.decode(faults.body(status, "too <much>", retry_after=7))))
    assert (root.tag, dict(root.attrib)) == (f"{{{COMPUTE}}}{name}", {"code": str(status)})
    said = {etree.QName(child).localname: child.text for child in root}
    assert said == {"message": "too <much>", **({"retryAfter": "7"} if status in (413, 429) else {})}


# -- times

NAIVE = "2012-12-04T12:04:30.245284"


@pytest.mark.parametrize(("value", "shown"), [
    (NAIVE, "2012-12-04 12:04:30.245284"), ("2012-12-04T12:04:30.000000", "2012-12-04 12:04:30"),
    ("2012-12-04T12:04:30", "2012-12-04 12:04:30"), ("2012-12-04T12:04:30Z", "2012-12-04T12:04:30Z"),
    ("2012-12-04 12:04:30", "2012-12-04 12:04:30"), ("2012-12-04", "2012-12-04"), ("soon", "soon"), (None, "None")])
@pytest.mark.parametrize("key", sorted(TIMES))
def test_time_when_it_has_no_zone_then_a_blank_stands_for_the_t(key: str, value: str | None, shown: str) -> None:
    for tag in ("aggregate", "snapshot"):  # child elements, and attributes
        assert shown in write({tag: {key: value}}).decode().replace('"', ">").replace("<", ">").split(">")


@pytest.mark.parametrize("key", sorted(TIMES))
def test_time_when_it_is_a_users_own_text_then_it_stays(key: str) -> None:
    for answer in ({"metadata": {key: NAIVE}}, {"meta": {key: NAIVE}}, {"extra_specs": {key: NAIVE}},
                   {"aggregate": {"metadata": {key: NAIVE}}}, {"server": {"metadata": {key: NAIVE}, "name": NAIVE}}):
        assert NAIVE in write(answer).decode()


def test_times_of_views_then_all_are_known_to_xml() -> None:
    """What shows a time without a zone is found by its getter."""
    found = set()
    for path in (TOP / "nova/api/views").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Out" and len(node.args) > 1 \
                    and "micros" in ast.unparse(node.args[1]):
                found.add(ast.literal_eval(node.args[0]))
            elif isinstance(node, ast.Dict):
                found |= {ast.literal_eval(key) for key, value in zip(node.keys, node.values, strict=True)
                          if key is not None and ast.unparse(value).startswith("micros(")}
    assert len(found) > 8 and found <= TIMES
