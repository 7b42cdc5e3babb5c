"""Which form an answer has: suffix, then Accept, then JSON; and which bodies are taken."""

from __future__ import annotations

from typing import Any

import pytest

from nova.legacy.xml import negotiation
from nova.legacy.xml.documents import MEDIA_TYPES
from nova.legacy.xml.negotiation import ATOM, COMPUTE_JSON, COMPUTE_XML, JSON, XML

ACCEPTED = [
    ("*/*", JSON), ("application/*", JSON), ("application/xml", XML), ("APPLICATION/XML", XML),
    (COMPUTE_XML, COMPUTE_XML), (COMPUTE_JSON, COMPUTE_JSON), ("text/html", JSON), ("text/*", JSON), (",,;", JSON),
    ("application/xml, application/json", JSON), ("application/xml;q=0.9, application/json;q=0.8", XML),
    ("application/json;q=0.8, application/xml;q=0.9", XML), ("application/xml, */*", XML),
    ("application/xml;q=0.5, */*;q=0.8", JSON), ("*/*;q=0.1, application/xml;q=0.2", XML),
    ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", XML),
    ("application/json;q=0, application/xml", XML), ("application/xml;q=0", JSON), ("application/xml;q=0.0, */*", JSON),
    ("application/xml;version=2", XML), ("application/xml; charset=utf-8; q=1", XML), ("application/xml;q=x", XML),
    ("application/json;q=0.5, application/vnd.openstack.compute+xml;q=0.5", COMPUTE_XML),
    ("application/atom+xml", JSON), (", ".join(["text/html"] * 64 + ["application/xml"]), JSON)]


@pytest.mark.parametrize(("accept", "kind"), ACCEPTED)
def test_accept_header_then_means_this_type(accept: str, kind: str) -> None:
    assert negotiation.accepted(accept) == kind


@pytest.mark.parametrize(("accept", "kind"), [("application/atom+xml", ATOM), ("application/xml", XML), ("*/*", JSON),
                                              ("application/*", JSON), ("application/atom+xml;q=0.1, */*;q=0", ATOM)])
def test_accept_header_when_a_feed_is_offered_then_means_this_type(accept: str, kind: str) -> None:
    assert negotiation.accepted(accept, MEDIA_TYPES) == kind


@pytest.mark.parametrize(("path", "kind", "rest"), [
    ("/servers.xml", XML, "/servers"), ("/servers/detail.json", JSON, "/servers/detail"),
    ("/flavors/a.b", XML, "/flavors/a.b"), ("/flavors/a.b.json", JSON, "/flavors/a.b"),
    ("/flavors/a.xml.txt", XML, "/flavors/a.xml.txt"), ("/flavors/xml", XML, "/flavors/xml")])
def test_suffix_then_wins_over_the_header_and_only_a_known_one_is_taken_off(path: str, kind: str, rest: str) -> None:
    environ: dict[str, Any] = {"PATH_INFO": path, "HTTP_ACCEPT": XML}
    assert negotiation.chosen(environ) == kind
    assert environ["PATH_INFO"] == rest


@pytest.mark.parametrize(("environ", "usual"), [
    ({}, True), ({"HTTP_ACCEPT": "*/*"}, True), ({"HTTP_ACCEPT": JSON}, True), ({"HTTP_ACCEPT": XML}, False),
    ({"PATH_INFO": "/servers.xml"}, False), ({"REQUEST_METHOD": "POST", "CONTENT_TYPE": JSON}, True),
    ({"REQUEST_METHOD": "POST", "CONTENT_TYPE": XML}, False), ({"REQUEST_METHOD": "PUT"}, False)])
def test_request_when_plain_json_then_goes_past_all_else(environ: dict[str, str], usual: bool) -> None:
    assert negotiation.is_usual({"PATH_INFO": "/servers", "REQUEST_METHOD": "GET", **environ}) is usual
