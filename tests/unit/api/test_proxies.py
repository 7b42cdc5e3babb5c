"""What old versions passed on: nova-network's networks, and images with their metadata."""

from __future__ import annotations

from typing import Any

import pytest

from nova.model.network.networks import NEUTRON
from tests.fakes.api import ADMIN, DEMO, ApiClient


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


# networks

def test_networks_show_users_less_than_admins(client: ApiClient) -> None:
    network = client.conductor.add_network(bridge="br100", vlan=100, multi_host=True)
    mine = client.get(f"/os-networks/{network.uuid}").json["network"]
    assert set(mine) == {"id", "label", "cidr", "netmask", "broadcast", "gateway", "dns1", "dns2", "cidr_v6",
                         "netmask_v6", "gateway_v6"}
    theirs = client.get(f"/os-networks/{network.uuid}", token=ADMIN).json["network"]
    shown = (theirs["bridge"], theirs["vlan"], theirs["multi_host"], theirs["priority"])
    assert shown == ("br100", 100, True, None)


def test_networks_when_they_are_neutrons_then_all_but_id_and_label_is_null(client: ApiClient) -> None:
    network = client.conductor.add_network(cidr=None, created_at=None, back_end=NEUTRON)
    shown = client.get(f"/os-networks/{network.uuid}", token=ADMIN).json["network"]
    said = {name: value for name, value in shown.items() if value is not None}
    assert len(shown) == 32 and said == {"id": network.uuid, "label": "private"}


def test_networks_of_other_projects_are_hidden(client: ApiClient) -> None:
    hidden = client.conductor.add_network(project_id="other")
    shared = client.conductor.add_network()
    assert [one["id"] for one in client.get("/os-networks").json["networks"]] == [shared.uuid]
    assert len(client.get("/os-networks", token=ADMIN).json["networks"]) == 2
    assert client.get(f"/os-networks/{hidden.uuid}").status_int == 404


@pytest.mark.parametrize("path", ["/os-networks", "/images", "/images/detail", "/images/x", "/images/x/metadata"])
def test_proxies_disappear(client: ApiClient, path: str) -> None:
    assert client.get(path, version="2.39").status_int == 404
    assert "itemNotFound" in client.get(path, version="2.39").json


# images

def test_images_come_in_pages_with_links(client: ApiClient) -> None:
    first, second, third = (client.conductor.add_image(name=name) for name in "abc")
    page = client.get("/images?limit=2&status=ACTIVE").json
    assert [image["id"] for image in page["images"]] == [first.id, second.id]
    link = page["images_links"][0]["href"]
    assert link == f"http://localhost/v2.1/images?limit=2&status=ACTIVE&marker={second.id}"
    assert [image["id"] for image in client.get(link.partition("/v2.1")[2]).json["images"]] == [third.id]
    assert page["images"][0]["links"][2] == {"rel": "alternate", "type": "application/vnd.openstack.image",
                                             "href": f"http://localhost/images/{first.id}"}


def test_offset_is_for_the_first_page(client: ApiClient) -> None:
    made = [client.conductor.add_image() for _ in range(4)]
    page = client.get("/images?limit=2&offset=1").json
    assert [image["id"] for image in page["images"]] == [image.id for image in made[1:3]]
    assert page["images_links"][0]["href"].endswith(f"/images?limit=2&marker={made[2].id}")


@pytest.mark.parametrize(("query", "filters"), [
    ("name=tiny", {"name": "tiny"}), ("status=ACTIVE", {"status": "active"}), ("status=error", {"status": "killed"}),
    ("status=SAVING", {"status": "in:queued,saving,uploading,importing"}),
    ("minRam=64&minDisk=1", {"min_ram": "64", "min_disk": "1"}),
    ("type=snapshot", {"image_type": "snapshot"}), ("server=abc", {"instance_uuid": "abc"}),
    ("server=http://x/v2/servers/abc/", {"instance_uuid": "abc"}),
    ("property-os_distro=debian", {"os_distro": "debian"}),
    ("property-limit=9&property-visibility=all", {}), ("stranger=1", {}),
    ("changes-since=2026-01-01T00:00:00Z", {"updated_at": "gte:2026-01-01T00:00:00Z"})])
def test_filters_are_the_image_services(client: ApiClient, query: str, filters: dict[str, str]) -> None:
    assert client.get(f"/images/detail?{query}").status_int == 200
    assert dict(client.conductor.asked("list_images")[-1].filters) == filters


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "offset=-1", "changes-since=yesterday", "marker=nobody",
                                   "offset=10001", "limit=99999999999999999999"])
def test_images_when_a_parameter_is_wrong_is_400(client: ApiClient, query: str) -> None:
    assert client.get(f"/images?{query}").status_int == 400


@pytest.mark.parametrize(("status", "shown", "progress"), [
    ("active", "ACTIVE", 100), ("queued", "SAVING", 25), ("saving", "SAVING", 50), ("killed", "ERROR", 0),
    ("pending_delete", "DELETED", 0), ("deactivated", "UNKNOWN", 0)])
def test_status_of_an_image_is_told_in_our_words(client: ApiClient, status: str, shown: str, progress: int) -> None:
    image = client.get(f"/images/{client.conductor.add_image(status=status).id}").json["image"]
    assert (image["status"], image["progress"]) == (shown, progress)


@pytest.mark.parametrize(("properties", "config"), [({"auto_disk_config": "True"}, "AUTO"), ({}, None),
                                                    ({"auto_disk_config": "Disabled"}, "MANUAL"),
                                                    ({"hw_auto_disk_config": "t"}, "AUTO"),
                                                    ({"auto_disk_config": " YES "}, "AUTO")])
def test_disk_config_of_an_image(client: ApiClient, properties: dict[str, str], config: str | None) -> None:
    image = client.get(f"/images/{client.conductor.add_image(properties=properties).id}").json["image"]
    assert image.get("OS-DCF:diskConfig") == config


def test_delete_of_an_image_passes_refusals_on(client: ApiClient) -> None:
    held, free = client.conductor.add_image(protected=True), client.conductor.add_image()
    assert client.delete(f"/images/{held.id}").status_int == 403
    assert client.delete(f"/images/{free.id}").status_int == 204
    assert client.delete(f"/images/{free.id}").status_int == 404


def test_metadata_is_merged_replaced_and_taken_away(client: ApiClient) -> None:
    path = f"/images/{client.conductor.add_image(properties={'a': '1'}).id}/metadata"
    assert client.get(path).json == {"metadata": {"a": "1"}}
    assert client.post(path, {"metadata": {"b": "2"}}).json == {"metadata": {"a": "1", "b": "2"}}
    assert client.put(path, {"metadata": {"c": "3"}}).json == {"metadata": {"c": "3"}}
    assert client.put(f"{path}/d", {"meta": {"d": "4"}}).json == {"meta": {"d": "4"}}
    assert client.get(f"{path}/d").json == {"meta": {"d": "4"}}
    assert client.delete(f"{path}/c").status_int == 204
    assert client.get(path).json == {"metadata": {"d": "4"}}


def test_metadata_that_is_not_there_is_404(client: ApiClient) -> None:
    path = f"/images/{client.conductor.add_image().id}/metadata"
    assert client.get(f"{path}/a").status_int == client.delete(f"{path}/a").status_int == 404
    for answer in (client.get("/images/none/metadata"), client.put("/images/none/metadata", {"metadata": {}}),
                   client.post("/images/none/metadata", {"metadata": {}}),
                   client.put("/images/none/metadata/a", {"meta": {"a": "b"}})):
        assert answer.status_int == 404


@pytest.mark.parametrize("meta", [{"b": "x"}, {"a": "x", "b": "y"}, {}, {"a": 1}, {"a": "x" * 256}, None])
def test_metadata_item_that_does_not_fit_is_400(client: ApiClient, meta: Any) -> None:
    path = f"/images/{client.conductor.add_image().id}/metadata/a"
    assert client.put(path, {"meta": meta}).status_int == 400


def test_metadata_beyond_the_quota_is_403(client: ApiClient) -> None:
    client.conductor.limits[("demo", None)] = {"metadata_items": 2}
    image = client.conductor.add_image(properties={"a": "1", "b": "2"})
    path = f"/images/{image.id}/metadata"
    assert client.post(path, {"metadata": {"b": "3"}}).status_int == 200
    assert client.post(path, {"metadata": {"c": "3"}}).status_int == 403
    assert client.put(path, {"metadata": {"c": "1", "d": "2", "e": "3"}}).status_int == 403
    assert client.put(f"{path}/c", {"meta": {"c": "3"}}).status_int == 403
    assert dict(client.conductor.images[image.id].properties) == {"a": "1", "b": "3"}
