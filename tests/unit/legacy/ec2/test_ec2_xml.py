"""Answers as XML: what any parser reads is what was said."""

from __future__ import annotations

import datetime
from typing import Any

from defusedxml import ElementTree
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.legacy.ec2 import xml

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
#: What XML 1.0 can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
    lambda letter: letter in "\t\n\r" or letter >= " "))


def parsed(body: bytes) -> Any:
    root = ElementTree.fromstring(body)
    for one in root.iter():
        one.tag = one.tag.rpartition("}")[2]
    return root


def answered(body: xml.Tree, empty_unset: bool = False) -> Any:
    return parsed(xml.answer("Ask", "2016-11-15", "req-1", body, empty_unset))


@settings(deadline=None)
@given(text=TEXT)
def test_text_when_xml_can_hold_it_then_a_parser_reads_it_back(text: str) -> None:
    assert (answered({"a": text}).findtext("a") or "") == text
    assert (parsed(xml.error("Code", text, "req-1")).findtext("Errors/Error/Message") or "") == text


@settings(deadline=None)
@given(text=st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_text_when_it_is_anything_then_the_document_is_well_formed(text: str) -> None:
    root = answered({"a": [text, text], "b": text})
    assert len(root.findall("a/item")) == 2
    assert parsed(xml.error(text, text, text)).tag == "Response"
    assert parsed(xml.answer("Ask", text, text, {}, False)).findtext("requestId") is not None


def test_text_when_no_document_can_hold_it_then_it_is_replaced() -> None:
    assert answered({"a": "x\x00\ud800\uffffy"}).findtext("a") == "x\ufffd\ufffd\ufffdy"


def test_answer_when_made_then_it_begins_with_the_request_and_has_the_versions_namespace() -> None:
    body = xml.answer("DescribeRegions", "2010-08-31", "req-1", {"return": True}, False)
    assert body == (b'<?xml version="1.0" encoding="UTF-8"?>\n<DescribeRegionsResponse '
                    b'xmlns="http://ec2.amazonaws.com/doc/2010-08-31/"><requestId>req-1</requestId>'
                    b"<return>true</return></DescribeRegionsResponse>")


def test_version_when_it_is_hostile_then_the_namespace_stays_one_attribute() -> None:
    root = parsed(xml.answer("Ask", '"><a b="', "req-1", {}, False))
    assert [one.tag for one in root] == ["requestId"] and root.attrib == {}


def test_values_when_they_are_of_each_kind_then_they_are_written_as_amazons() -> None:
    root = answered({"yes": True, "no": False, "number": 7, "when": WHEN, "empty": "", "none": None, "list": (),
                     "items": [{"a": 1}, {"a": 2}], "deep": {"in": {"side": "x"}}})
    assert [(one.tag, one.text) for one in root if not len(one)] == [
        ("requestId", "req-1"), ("yes", "true"), ("no", "false"), ("number", "7"),
        ("when", "2026-01-02T03:04:05.678Z"), ("empty", None), ("list", None)]
    assert [one.text for one in root.findall("items/item/a")] == ["1", "2"]
    assert root.findtext("deep/in/side") == "x"


def test_unset_when_the_client_is_old_then_it_is_an_empty_element() -> None:
    body: xml.Tree = {"a": None, "b": {"c": None}, "d": [{"e": None}]}
    assert [one.tag for one in answered(body).iter()] == ["AskResponse", "requestId", "b", "d", "item"]
    assert [one.tag for one in answered(body, empty_unset=True).iter()] == [
        "AskResponse", "requestId", "a", "b", "c", "d", "item", "e"]
