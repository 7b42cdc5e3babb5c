"""The host name that a server gets when its request has none: made of its name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nova import context, errors
from nova.conductor.actions.create_plan import sane_hostname
from nova.model.server.servers import NewServer, ServerListQuery
from tests.fakes.api import ApiClient
from tests.fakes.small_cloud import DEMO, SmallCloud


@pytest.mark.parametrize(("name", "host_name"), [
    ("Web 1", "web-1"), ("under_score", "under-score"), ("guest-1.domain.com", "guest-1-domain-com"),
    ("ubuntu18.04", "ubuntu18-04"), (".-vm-.", "vm"), ("a\N{SNOWMAN}b", "ab"), ("x" * 64, "x" * 63),
    ("x" * 62 + ".y", "x" * 62), ("\N{SNOWMAN}", "fallback"), ("...", "fallback")])
def test_host_name_when_made_of_a_name_then_it_is_one_label_of_letters_digits_and_dashes(
        name: str, host_name: str) -> None:
    assert sane_hostname(name, "fallback") == host_name


def test_create_when_several_servers_share_a_name_with_dots_then_each_host_name_is_one_label(cloud: SmallCloud) -> None:
    with context.entered(DEMO):
        made = cloud.control.create_servers(NewServer(name="web.example", flavor_id="1", min_count=2, max_count=2))
    rows = [cloud.ended(uuid) for uuid in made.uuids]
    assert sorted((row.name, row.hostname) for row in rows) == [
        ("web.example-1", "web-example-1"), ("web.example-2", "web-example-2")]


@pytest.mark.parametrize("counts", [(1, 2), (2, 2), (2, 5)])
def test_create_when_several_servers_are_to_have_one_host_name_then_it_is_refused_and_none_is_made(
        cloud: SmallCloud, counts: tuple[int, int]) -> None:
    order = NewServer(name="web", hostname="abc", flavor_id="1", min_count=counts[0], max_count=counts[1])
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="hostname.*abc.*max_count"):
        cloud.control.create_servers(order)
    with context.entered(DEMO):
        assert cloud.control.list_servers(ServerListQuery()).servers == ()


@pytest.mark.parametrize("version", ["2.90", "2.93", "2.94", "2.104"])
@pytest.mark.parametrize(("counts", "code"), [({}, 202), ({"min_count": 1, "max_count": 1}, 202),
                                              ({"max_count": 2}, 400), ({"min_count": 2}, 400)])
def test_request_when_it_has_a_host_name_then_it_is_for_one_server(
        cloud: SmallCloud, version: str, counts: dict[str, int], code: int) -> None:
    client = ApiClient(SimpleNamespace(client=lambda: cloud.control), version=version)
    cloud.image_service.add("70a599e0-31e7-49b7-b260-868f441e862b")
    answer = client.post("/servers", {"server": {
        "name": "web", "hostname": "abc", "flavorRef": "1", "imageRef": "70a599e0-31e7-49b7-b260-868f441e862b",
        "networks": "none", **counts}})
    assert answer.status_int == code, answer.text
