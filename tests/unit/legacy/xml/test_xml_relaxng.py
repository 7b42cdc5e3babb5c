"""The published RELAX NG schemas judge our answers, with what extensions add taken out."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from lxml import etree

from nova.legacy.xml.namespaces import ATOM, COMMON, COMPUTE
from nova.model.server.servers import Fault
from tests.fakes.conductor_networks import PORT
from tests.unit.legacy.xml import samples
from tests.unit.legacy.xml.client import XMLClient, tree

FOLDER = samples.LEGACY / "relaxng"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the published schemas are not here")

CORE = {COMPUTE, COMMON, ATOM, None}
#: What extensions add without a prefix, below the core's elements.
ADDED = {"server": ("key_name", "config_drive", "security_groups"), "flavor": ("swap", "rxtx_factor")}


@functools.cache
def schema(name: str) -> Any:
    return etree.RelaxNG(etree.parse(FOLDER / f"{name}.rng"))


def core(root: Any) -> Any:
    """The document without extensions."""
    for element in list(root.iter()):
        name = etree.QName(element)
        for attribute in list(element.attrib):
            if etree.QName(attribute).namespace or attribute in ADDED.get(name.localname, ()):
                del element.attrib[attribute]
        for child in list(element):
            inner = etree.QName(child)
            if inner.namespace not in CORE or inner.localname in ADDED.get(name.localname, ()):
                element.remove(child)
    return root


def assert_valid(name: str, root: Any) -> None:
    judge = schema(name)
    assert judge.validate(core(root)), judge.error_log


@pytest.fixture
def client() -> XMLClient:
    made = XMLClient()
    made.conductor.add_flavor("1")
    made.conductor.add_flavor("2")
    return made


@pytest.fixture
def server(client: XMLClient) -> str:
    image = client.conductor.add_image(properties={"architecture": "x86_64"})
    return str(client.conductor.add_server(image_id=image.id, metadata={"a b": "<c>"}, interfaces=(PORT,)).uuid)


@pytest.mark.parametrize(("path", "name"), [
    ("/servers/{server}", "v1.1/server"), ("/servers/detail?all_tenants=1", "v1.1/servers"),
    ("/servers?all_tenants=1", "v1.1/servers_index"), ("/servers?all_tenants=1&limit=1", "v1.1/servers_index"),
    ("/servers/{server}/ips", "v1.1/addresses"), ("/servers/{server}/metadata", "v1.1/metadata"),
    ("/flavors/1", "v1.1/flavor"), ("/flavors", "v1.1/flavors_index"), ("/flavors/detail", "v1.1/flavors"),
    ("/images", "v1.1/images_index"), ("/images?limit=1", "v1.1/images_index"), ("/images/detail", "v1.1/images"),
    ("/images/{image}", "v1.1/image"), ("/images/{image}/metadata", "v1.1/metadata"), ("/limits", "v1.1/limits"),
    ("/extensions", "v1.1/extensions"), ("/extensions/NMN", "v1.1/extension"), ("/", "v1.1/version")])
def test_answer_when_extensions_are_out_then_is_valid(client: XMLClient, server: str, path: str, name: str) -> None:
    root = tree(client.ask(path.format(server=server, image=next(iter(client.conductor.images)))))
    assert len(root) or root.attrib
    assert_valid(name, root)


def test_server_when_it_failed_then_its_fault_is_valid_with_and_without_details(client: XMLClient) -> None:
    image = client.conductor.add_image()
    for details in ("", "deep down"):
        fault = Fault(code=500, message="No valid host", details=details)
        made = client.conductor.add_server(image_id=image.id, vm_state="error", fault=fault)
        root = tree(client.ask(f"/servers/{made.uuid}"))
        assert root.find(f"{{{COMPUTE}}}fault/{{{COMPUTE}}}details").text == (details or None)
        assert_valid("v1.1/server", root)


def test_root_then_lists_versions_in_xml_and_as_a_feed(client: XMLClient) -> None:
    client.prefix = ""
    assert_valid("v1.1/versions", tree(client.ask("/")))
    for path, entries in (("/", 2), ("/v2/", 1), ("/v1.1", 1)):
        answer = client.ask(path, "application/atom+xml")
        feed = tree(answer)
        assert answer.headers["Content-Type"] == "application/atom+xml"
        assert len(feed.findall(f"{{{ATOM}}}entry")) == entries
        assert_valid("atom", feed)


def test_choices_then_have_the_same_path_at_each_version(client: XMLClient) -> None:
    client.prefix = ""
    answer = client.ask("/servers/detail")
    root = tree(answer)
    assert answer.status_int == 300 and root.tag == f"{{{COMMON}}}choices"
    hrefs = [link.get("href") for link in root.iter(f"{{{ATOM}}}link")]
    assert hrefs == ["http://localhost/v2/servers/detail", "http://localhost/v2.1/servers/detail"]
    assert root.find(f".//{{{COMMON}}}media-type").get("base") == "application/json"


@pytest.mark.parametrize("broken", ["<server/>", f'<server xmlns="{COMPUTE}" id="1"/>'])
def test_judge_when_something_is_missing_then_refuses_it(broken: str) -> None:
    assert not schema("v1.1/server").validate(etree.fromstring(broken))
