"""The API without its optional parts: JSON for everybody, and no operations beyond the core's."""

from __future__ import annotations

import pytest

from nova.api.extras import CORE
from tests.fakes.api import ApiClient


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient()
    assert made.extras is CORE
    made.prefix = ""
    return made


@pytest.mark.parametrize("path", ["/", "/v2/", "/v2.1/", "/v2/flavors"])
def test_answer_when_the_core_is_asked_for_xml_then_it_is_json(client: ApiClient, path: str) -> None:
    response = client.get(path, headers={"Accept": "application/xml"})
    assert response.status_int < 400 and response.content_type == "application/json" and response.json


def test_body_when_it_is_xml_then_the_core_refuses_its_type(client: ApiClient) -> None:
    response = client.request("POST", "/v2/servers", raw=b"<server/>", headers={"Content-Type": "application/xml"})
    assert response.status_int == 415 and "badMediaType" in response.json
