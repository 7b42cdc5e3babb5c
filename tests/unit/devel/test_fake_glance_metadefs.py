"""The fake Glance's metadata definitions: what Horizon asks for."""

from __future__ import annotations

import pytest
from webob import Request, Response

from nova.devel.image.glance import FakeGlance
from nova.devel.image.metadefs import AGGREGATE, FLAVOR, IMAGE, SERVER
from nova.devel.service import TokenOwner

OWNER = TokenOwner("user", "project", frozenset({"member"}))


def ask(path: str) -> Response:
    request = Request.blank(path, headers={"X-Auth-Token": "any"})
    return request.get_response(FakeGlance(lambda token: OWNER))


@pytest.mark.parametrize("kind", [IMAGE, FLAVOR, AGGREGATE, SERVER])
def test_namespaces_when_asked_for_by_type_then_there_is_one_that_can_be_shown(kind: str) -> None:
    """An empty list makes Horizon fail."""
    listed = ask(f"/v2/metadefs/namespaces?resource_types={kind}&limit=20&sort_key=namespace").json["namespaces"]
    assert listed
    for one in listed:
        assert kind in [use["name"] for use in one["resource_type_associations"]]
        assert ask(one["self"]).json["properties"]


@pytest.mark.parametrize("target", ["metadata", "scheduler_hints"])
def test_namespaces_when_of_servers_then_there_is_one_for_each_target(target: str) -> None:
    listed = ask(f"/v2/metadefs/namespaces?resource_types={SERVER}").json["namespaces"]
    assert [one["namespace"] for one in listed if target in [
        use["properties_target"] for use in one["resource_type_associations"] if use["name"] == SERVER]]


@pytest.mark.parametrize(("kind", "name"), [(IMAGE, "hw_cpu_cores"), (FLAVOR, "hw:cpu_cores"), ("", "cpu_cores")])
def test_namespace_when_shown_for_a_type_then_properties_are_named_as_there(kind: str, name: str) -> None:
    shown = ask(f"/v2/metadefs/namespaces/OS::Compute::VirtCPUTopology?resource_type={kind}").json
    assert shown["properties"][name]["name"] == name


def test_namespaces_when_there_is_a_marker_then_those_behind_it() -> None:
    names = [one["namespace"] for one in ask("/v2/metadefs/namespaces").json["namespaces"]]
    assert names == sorted(names)
    behind = ask(f"/v2/metadefs/namespaces?marker={names[0]}").json["namespaces"]
    assert [one["namespace"] for one in behind] == names[1:]


def test_types_and_schemas_when_asked_for_then_they_are_there_and_others_are_404() -> None:
    assert {one["name"] for one in ask("/v2/metadefs/resource_types").json["resource_types"]} == {
        IMAGE, FLAVOR, AGGREGATE, SERVER}
    assert ask("/v2/schemas/metadefs/namespace").json["name"] == "namespace"
    for path in ("/v2/schemas/metadefs/none", "/v2/metadefs/namespaces/none"):
        assert ask(path).status_code == 404
