"""nova-all with its small Neutron: servers' ports are Neutron's, and whoever changes them there is heard."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter

from nova.devel.running import RunningCloud
from tests.functional.backends import wait_until
from tests.functional.clients import VENV
from tests.functional.nova_all import Compute
from tests.functional.test_nova_all import run

NEUTRON = ("--networking", "neutron")


class Network:
    """A user's network API."""

    def __init__(self, cloud: RunningCloud, user: str = "demo", project: str | None = None) -> None:
        self.http = adapter.Adapter(cloud.session(user, project), service_type="network")

    def list(self, plural: str, query: str = "") -> list[dict[str, Any]]:
        return list(self.http.get(f"/v2.0/{plural}?{query}").json()[plural])

    def create(self, kind: str, **members: object) -> dict[str, Any]:
        return dict(self.http.post(f"/v2.0/{kind}s", json={kind: members}).json()[kind])


@pytest.fixture(scope="module")
def cloud() -> Iterator[RunningCloud]:
    with RunningCloud(more=NEUTRON) as running:
        yield running


@pytest.fixture
def demo(cloud: RunningCloud) -> Compute:
    return Compute(cloud)


@pytest.fixture
def network(cloud: RunningCloud) -> Network:
    return Network(cloud)


def addresses(server: dict[str, Any]) -> dict[str, list[str]]:
    """By kind: fixed, floating."""
    found: dict[str, list[str]] = {"fixed": [], "floating": []}
    for one in server["addresses"]["private"]:
        found[one["OS-EXT-IPS:type"]].append(one["addr"])
    return found


def test_server_when_booted_then_it_has_a_port_of_neutrons_that_goes_with_it(cloud: RunningCloud, demo: Compute,
                                                                           network: Network) -> None:
    uuid = demo.create("vm1")
    server = demo.settled(uuid, "ACTIVE")
    [port] = Network(cloud, "admin").list("ports", f"device_id={uuid}")
    assert addresses(server) == {"fixed": [port["fixed_ips"][0]["ip_address"]], "floating": []}
    assert addresses(server)["fixed"][0].startswith("10.11.")
    assert (port["status"], port["device_owner"]) == ("ACTIVE", "compute:nova")
    assert port["binding:host_id"] in ("host1", "host2")
    assert [one["name"] for one in server["security_groups"]] == ["default"]
    demo.http.delete(f"/servers/{uuid}")
    wait_until("the port is gone", lambda: not network.list("ports", f"device_id={uuid}"), 30, 0.1)


def test_floating_address_when_it_leads_to_a_server_by_neutron_alone_then_the_server_shows_it(demo: Compute,
                                                                                            network: Network) -> None:
    uuid = demo.create("reached")
    demo.settled(uuid, "ACTIVE")
    [public] = network.list("networks", "router:external=True")
    [port] = network.list("ports", f"device_id={uuid}")
    floating = network.create("floatingip", floating_network_id=public["id"], port_id=port["id"])
    path = f"/v2.0/floatingips/{floating['id']}"

    def shown(*wanted: str) -> bool:
        return addresses(demo.get(f"/servers/{uuid}")["server"])["floating"] == list(wanted)
    wait_until("the server shows it", lambda: shown(floating["floating_ip_address"]), 10, 0.1)
    network.http.delete(path)
    wait_until("the server shows it no more", shown, 10, 0.1)


def test_port_when_its_owner_deletes_it_then_the_server_gives_its_interface_up(demo: Compute, network: Network) -> None:
    uuid = demo.create("bereft")
    demo.settled(uuid, "ACTIVE")
    [port] = network.list("ports", f"device_id={uuid}")
    network.http.delete(f"/v2.0/ports/{port['id']}")
    wait_until("no interface is left", lambda: not demo.get(f"/servers/{uuid}")["server"]["addresses"], 20, 0.2)


def test_server_when_moved_live_then_its_port_is_bound_to_the_other_host_alone(cloud: RunningCloud, demo: Compute
                                                                             ) -> None:
    uuid = demo.create("mover")
    demo.settled(uuid, "ACTIVE")
    admin, network = Compute(cloud, "admin"), Network(cloud, "admin")
    before = admin.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"]
    admin.http.post(f"/servers/{uuid}/action", json={"os-migrateLive": {"host": None, "block_migration": "auto"}})
    wait_until("it is elsewhere", lambda: admin.settled(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] != before, 30, 0.1)
    [port] = network.list("ports", f"device_id={uuid}")
    assert port["binding:host_id"] == admin.get(f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"]
    bindings = network.http.get(f"/v2.0/ports/{port['id']}/bindings").json()["bindings"]
    assert [(one["host"], one["status"]) for one in bindings] == [(port["binding:host_id"], "ACTIVE")]


def test_server_when_its_user_brings_a_port_then_it_is_used_and_stays(demo: Compute, network: Network) -> None:
    [private] = network.list("networks", "name=private")
    port = network.create("port", network_id=private["id"], name="mine")
    image = demo.images.get("/v2/images?name=tiny").json()["images"][0]["id"]
    made = demo.http.post("/servers", json={"server": {
        "name": "guest", "imageRef": image, "flavorRef": "1", "networks": [{"port": port["id"]}]}})
    uuid = made.json()["server"]["id"]
    server = demo.settled(uuid, "ACTIVE")
    assert addresses(server)["fixed"] == [port["fixed_ips"][0]["ip_address"]]
    demo.http.delete(f"/servers/{uuid}")
    wait_until("the port is free", lambda: network.list("ports", "name=mine")[0]["device_id"] == "", 30, 0.1)


def test_client_when_networks_are_listed_then_there_are_two(cloud: RunningCloud) -> None:
    if not shutil.which(VENV / "bin" / "openstack"):
        pytest.skip("the clients are not installed")
    said = subprocess.run([VENV / "bin" / "openstack", "network", "list", "-f", "value", "-c", "Name"], check=True,
                          capture_output=True, text=True, env={**cloud.credentials(), "PATH": "/usr/bin"})
    assert sorted(said.stdout.split()) == ["private", "public"]


def test_demonstration_when_killed_then_networks_and_ports_are_there_again_and_no_others_instead(
        tmp_path: Path) -> None:
    words = (*NEUTRON, "--state", str(tmp_path / "state"))
    with RunningCloud(demo=True, more=words) as first:
        before = {one["id"] for one in Network(first, "admin").list("ports")}
        own = [one["name"] for one in Network(first, "alice", "shop").list("networks")]
        assert Compute(first).create("vm1")  # the demo project has one network, which need not be named
        first.kill()
    assert own == ["private", "public", "backend"]
    other = run("--state", str(tmp_path / "state"), "--port", "0")
    assert other.returncode == 2 and "was created with --networking neutron" in other.stderr
    with RunningCloud(demo=True, more=words) as second:
        assert before <= {one["id"] for one in Network(second, "admin").list("ports")}
        assert len(Network(second, "admin").list("routers")) == 1


def test_networking_when_guests_are_libvirts_then_a_sentence_says_that_it_cannot_be() -> None:
    done = run(*NEUTRON, "--driver", "libvirt")
    assert done.returncode == 2
    assert "--networking neutron requires fake guests" in done.stderr
