"""Reads of volumes pass the contract's rows at every version: there are none, and clients ask on every page."""

from __future__ import annotations

import pytest

from tests.contract import answers, rows
from tests.fakes.api import DEMO, READER, ApiClient

pytestmark = rows.needs_contract
NOTHING = "00000000-0000-4000-8000-00000000ffff"
LISTS = {"GET /os-volumes": "volumes", "GET /os-volumes/detail": "volumes", "GET /os-snapshots": "snapshots",
         "GET /os-snapshots/detail": "snapshots"}
ATTACHMENTS = "GET /servers/{server_id}/os-volume_attachments"


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


@pytest.mark.parametrize("id", LISTS)
def test_list_when_there_is_no_volume_service_then_it_is_empty(client: ApiClient, id: str) -> None:
    path = id.partition(" ")[2]
    assert client.get(f"{path}?limit=1&offset=2&colour=blue", token=READER).json == {LISTS[id]: []}
    assert client.get(f"{path}?limit=x").status_int == 400
    answers.assert_reads(id, client, path)
    client.prefix = "/v2.1"
    assert client.get(path, version="2.36").status_int == 404


def test_attachments_of_a_server_are_an_empty_list(client: ApiClient) -> None:
    path = f"/servers/{client.conductor.add_server().uuid}/os-volume_attachments"
    assert client.get(path).json == {"volumeAttachments": []}
    assert client.get(f"{path}?colour=blue", version="2.75").status_int == 400
    assert client.get(f"/servers/{NOTHING}/os-volume_attachments").status_int == 404
    assert client.get(path, token="other:other").status_int == 404
    answers.assert_reads(ATTACHMENTS, client, path)


def test_one_that_is_not_there_is_404_and_names_it(client: ApiClient) -> None:
    server = client.conductor.add_server().uuid
    for path in (f"/os-volumes/{NOTHING}", f"/os-snapshots/{NOTHING}",
                 f"/servers/{server}/os-volume_attachments/{NOTHING}"):
        answer = client.get(path)
        assert answer.status_int == 404 and NOTHING in answer.json["itemNotFound"]["message"], path


def test_writes_of_volumes_are_501(client: ApiClient) -> None:
    server = client.conductor.add_server().uuid
    for method, path, body in (
            ("POST", "/os-volumes", {"volume": {"size": 1}}), ("DELETE", f"/os-volumes/{NOTHING}", None),
            ("POST", "/os-snapshots", {"snapshot": {"volume_id": NOTHING}}),
            ("DELETE", f"/os-snapshots/{NOTHING}", None),
            ("POST", f"/servers/{server}/os-volume_attachments", {"volumeAttachment": {"volumeId": NOTHING}}),
            ("DELETE", f"/servers/{server}/os-volume_attachments/{NOTHING}", None)):
        assert client.request(method, path, body).status_int == 501, (method, path)
