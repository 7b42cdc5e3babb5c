"""nova-objectstore under clients that mean no good: texts that no XML has, and what costs it more than it costs them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from nova.objectstore.app import S3Application
from nova.objectstore.content import Identity
from nova.objectstore.store import ObjectStore, StoreLimits
from tests.unit.objectstore.test_s3_app import Service, anybody


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "store", StoreLimits(least_part=1))


@pytest.fixture
def service(store: ObjectStore) -> Service:
    made = Service(S3Application(store, anybody))
    made.call("PUT", "/bucket")
    return made


@pytest.mark.parametrize("text", ["%00", "%1b", "%ff", "%ed%a0%80", "%ef%bf%bf"])
@pytest.mark.parametrize("name", ["prefix", "delimiter", "marker", "encoding-type=url&prefix", "list-type=2&start-after"])
def test_listing_when_a_parameter_is_no_text_then_it_is_refused_in_xml(service: Service, name: str, text: str) -> None:
    answer = service.call("GET", f"/bucket?{name}={text}")
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_listing_when_the_project_has_an_unprintable_name_then_it_is_xml_all_the_same(store: ObjectStore) -> None:
    service = Service(S3Application(store, lambda request: Identity("project", "a\x08b")))
    assert ElementTree.fromstring(service.call("GET", "/").body).findtext("{*}Owner/{*}DisplayName") == "a?b"
