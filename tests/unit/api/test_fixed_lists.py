"""Extensions, which never change, and the bare metal proxy, which has nobody behind it."""

from __future__ import annotations

import pytest

from nova.api.extensions import EXTENSIONS
from tests.fakes.api import ADMIN, DEMO, ApiClient


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


def test_extensions_are_listed_by_alias(client: ApiClient) -> None:
    listed = client.get("/extensions").json["extensions"]
    aliases = [one["alias"] for one in listed]
    assert aliases == sorted(set(aliases)) and len(aliases) == len(EXTENSIONS) == 100
    assert client.get("/extensions/os-agents").json["extension"] in listed


def test_extension_that_is_none_is_404(client: ApiClient) -> None:
    answer = client.get("/extensions/os-nothing")
    assert answer.status_int == 404 and "os-nothing" in answer.json["itemNotFound"]["message"]


@pytest.mark.parametrize("path", ["/extensions", "/extensions/os-agents"])
def test_extensions_with_unknown_parameters(client: ApiClient, path: str) -> None:
    assert client.get(f"{path}?a=b", version="2.101").status_int == 200
    assert client.get(f"{path}?a=b", version="2.102").status_int == 400


@pytest.mark.parametrize("path", ["/os-baremetal-nodes", "/os-baremetal-nodes/x"])
def test_nodes_cannot_be_read_without_their_service(client: ApiClient, path: str) -> None:
    assert client.get(path).status_int == 403
    assert "notImplemented" in client.get(path, token=ADMIN).json
    assert client.get(path, token=ADMIN, version="2.36").status_int == 404


@pytest.mark.parametrize(("method", "path", "body"), [
    ("POST", "/os-baremetal-nodes", {"node": 1}), ("POST", "/os-baremetal-nodes", []),
    ("DELETE", "/os-baremetal-nodes/x", None), ("POST", "/os-baremetal-nodes/x/action", {"add_interface": {}}),
    ("POST", "/os-baremetal-nodes/x/action", {"remove_interface": {}})])
def test_nodes_cannot_be_changed(client: ApiClient, method: str, path: str, body: object) -> None:
    for version, status in (("2.1", 400), ("2.35", 400), ("2.36", 404)):
        assert client.request(method, path, body, version=version).status_int == status
    message = client.request(method, path, body).json["badRequest"]["message"]
    assert "openstack baremetal" in message


def test_operation_that_is_gone_says_so_in_the_words_that_clients_compare(client: ApiClient) -> None:
    answer = client.get("/os-agents")
    assert answer.status_int == 410
    assert answer.json == {"computeFault": {
        "code": 410, "message": "This resource is no longer available. No forwarding address is given."}}
