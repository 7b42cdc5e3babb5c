"""Flavors of guests that map much memory: ``hw:maxphysaddr_mode`` and ``hw:maxphysaddr_bits``, as a public cloud's GPU
flavors have them, from the request to the host. Hosts of nova-all have 48 bits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as refused

from nova.devel.running import RunningCloud
from tests.functional.nova_all import Compute, refusing

TRAIT = "COMPUTE_ADDRESS_SPACE_EMULATED"
NUMBERS = itertools.count(100)


@pytest.fixture(scope="module")
def cloud() -> Iterator[RunningCloud]:
    """Two hosts, the second of which is said to emulate address spaces."""
    with RunningCloud(hosts=2) as running:
        placement = adapter.Adapter(running.session("admin"), service_type="placement",
                                    default_microversion="1.39")
        [host] = placement.get("/resource_providers?name=host2").json()["resource_providers"]
        placement.put(f"/resource_providers/{host['uuid']}/traits", json={
            "resource_provider_generation": host["generation"], "traits": [TRAIT]})
        yield running


@pytest.fixture
def demo(cloud: RunningCloud) -> Compute:
    return Compute(cloud)


@pytest.fixture
def admin(cloud: RunningCloud) -> Compute:
    return Compute(cloud, "admin")


def flavor_of(admin: Compute, version: str = "2.61", **specs: str) -> str:
    """A new flavor's id; ``maxphysaddr_bits=...`` stands for ``hw:maxphysaddr_bits``, set at this version."""
    made = str(next(NUMBERS))
    admin.http.post("/flavors", json={"flavor": {"id": made, "name": f"gpu{made}", "vcpus": 1, "ram": 64, "disk": 1}})
    admin.http.post(f"/flavors/{made}/os-extra_specs", microversion=version, json={
        "extra_specs": {f"hw:{name}": value for name, value in specs.items()}})
    return made


def create(demo: Compute, flavor: str, **properties: str) -> str:
    """The id of a new server, of an image with these properties."""
    image = demo.images.post("/v2/images", json={
        "name": "gpu", "disk_format": "raw", "container_format": "bare", **properties}).json()["id"]
    demo.images.put(f"/v2/images/{image}/file", data=b"\0" * 1024, headers={"Content-Type": "application/octet-stream"})
    return str(demo.http.post("/servers", json={"server": {
        "name": "gpu", "imageRef": image, "flavorRef": flavor, "networks": "auto"}}).json()["server"]["id"])


@pytest.mark.parametrize("version", ["2.1", "2.61", "2.86", "2.102"])
def test_flavor_when_bits_are_set_at_any_version_then_its_server_runs_where_hosts_have_them(
        demo, admin, version) -> None:
    uuid = create(demo, flavor_of(admin, version, maxphysaddr_mode="emulate", maxphysaddr_bits="46"))
    demo.settled(uuid, "ACTIVE")
    assert admin.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"] == "host2"


@pytest.mark.parametrize(("specs", "words"), [
    ({"maxphysaddr_mode": "emulate", "maxphysaddr_bits": "52"}, "fewer than 52 bits of physical addresses"),
    ({"maxphysaddr_mode": "passthrough"}, "no trait COMPUTE_ADDRESS_SPACE_PASSTHROUGH")])
def test_server_when_no_host_can_then_it_says_what_is_missing(demo, admin, specs, words) -> None:
    uuid = create(demo, flavor_of(admin, **specs))
    assert words in demo.settled(uuid, "ERROR")["fault"]["message"]


@pytest.mark.parametrize("specs", [{"maxphysaddr_mode": "host"}, {"maxphysaddr_bits": "99"}])
def test_value_when_it_is_impossible_then_it_is_400_as_it_is_set_or_at_the_latest_with_a_server(
        demo, admin, specs) -> None:
    [(name, value)] = specs.items()
    with refusing(refused.BadRequest, f"the value '{value}' of extra spec hw:{name} must be"):
        flavor_of(admin, "2.86", **specs)
    with refusing(refused.BadRequest, f"hw:{name}"):
        create(demo, flavor_of(admin, "2.85", **specs))


def test_image_when_it_says_another_mode_than_the_flavor_then_it_is_400_and_names_both(demo, admin) -> None:
    flavor = flavor_of(admin, maxphysaddr_mode="emulate", maxphysaddr_bits="46")
    with refusing(refused.BadRequest, "hw_maxphysaddr_mode=passthrough is not possible: the flavor has "
                                      "hw:maxphysaddr_mode=emulate"):
        create(demo, flavor, hw_maxphysaddr_mode="passthrough")


def test_image_when_it_asks_for_more_bits_than_the_flavor_then_the_flavors_number_counts_and_both_are_shown(
        demo, admin) -> None:
    uuid = create(demo, flavor_of(admin, maxphysaddr_bits="40"), hw_maxphysaddr_mode="emulate",
                  hw_maxphysaddr_bits="52")
    server = demo.settled(uuid, "ACTIVE")
    assert {name: value for name, value in server["image"]["properties"].items() if "maxphysaddr" in name} == {
        "hw_maxphysaddr_mode": "emulate", "hw_maxphysaddr_bits": "52"}
