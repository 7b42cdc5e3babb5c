"""The API over the conductor's own queries and a real database (SQLite in a file), with no broker between them."""

from __future__ import annotations

import datetime
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.hosts.feed import Feed
from nova.conductor.hosts.registration import ServiceRegistry
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.service import conductor_service
from nova.db.host import hosts, reports
from nova.db.schema import migrate
from nova.db.sql.engine import Database
from nova.model.base import utcnow
from nova.model.host.hosts import HostUptime, Inventory, Node
from nova.model.host.services import Registration
from nova.model.network import addressing
from nova.model.network.networks import NewNetwork
from nova.model.quota.quotas import NETWORK_RESOURCES, RESOURCES
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.local import connect
from tests.fakes.api import ADMIN, DEMO, ApiClient

NODE = "22222222-2222-2222-2222-222222222222"
SSH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6zQ0n0PZqwJ0Mm0yqYkqgHqNnQ3bq0m8JrXbXy4nXq joe"
SORT_KEYS = ("created_at", "description", "disabled", "ephemeral_gb", "flavorid", "id", "is_public", "memory_mb",
             "name", "root_gb", "rxtx_factor", "swap", "updated_at", "vcpu_weight", "vcpus")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiClient]:
    """A cloud of one compute host without servers, and a network."""
    folder: Path = tmp_path_factory.mktemp("databases")
    api, cell = Database(f"sqlite:///{folder}/api"), Database(f"sqlite:///{folder}/cell")
    migrate.sync("api", api)
    migrate.sync("cell", cell)
    silent: Any = types.SimpleNamespace(update_hosts=lambda *args: None, hosts_alive=lambda *args: None)
    compute = types.SimpleNamespace()
    settings = ConductorSettings(quota_defaults={**dict.fromkeys(RESOURCES, 10),
                                                 **dict.fromkeys(NETWORK_RESOURCES, -1)},
                                 network_defaults=addressing.Defaults())
    deps = Deps(api=api, cell=cell, settings=settings, host="control", scheduler=silent, compute=compute,
                network=silent, images=None, certs=None)
    deps.feed, deps.networking = Feed(deps), NovaNetwork(deps)
    daemons = ServiceRegistry(deps)
    daemons.register(Registration(host="host1", binary="nova-compute", topic="compute", host_id=NODE))
    daemons.register(Registration(host="control", binary="nova-scheduler", topic="scheduler"))
    node = Node(name="node1", uuid=NODE, hypervisor_type="QEMU", vcpus=4, memory_mb=1000, local_gb=10,
                uptime=HostUptime(booted_at=utcnow() - datetime.timedelta(days=1, seconds=9)))
    inventory = Inventory(host="host1", host_id=NODE, nodes=(node,), version=1)
    cell.transact(lambda tx: hosts.write_nodes(tx, inventory))
    api.transact(lambda tx: reports.write_providers(tx, inventory))
    service: Any = conductor_service(deps, daemons)
    service.create_network(NewNetwork(label="private", cidr="10.0.0.0/24", bridge="br100"))
    yield ApiClient(SimpleNamespace(client=lambda: connect(ConductorRPC, service)), token=ADMIN)
    api.dispose()
    cell.dispose()


@pytest.fixture(scope="module")
def flavors(client: ApiClient) -> set[str]:
    """Alike and different, described or not, public or not."""
    for id, more in (("a", {}), ("b", {"ram": 128}), ("c", {"os-flavor-access:is_public": False}), ("d", {"swap": 1})):
        body = {"name": f"n{id}", "ram": 64, "vcpus": 1, "disk": 1, "id": id, **more}
        assert client.post("/flavors", {"flavor": body}).status_int == 200
    answer = client.put("/flavors/b", {"flavor": {"description": "text"}}, version="2.55")
    assert answer.json["flavor"]["description"] == "text"
    return {"a", "b", "c", "d"}


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("key", SORT_KEYS)
def test_flavors_by_page_are_each_shown_once(client: ApiClient, flavors: set[str], key: str, direction: str) -> None:
    path, seen = f"/flavors?is_public=none&sort_key={key}&sort_dir={direction}&limit=1", []
    while path and len(seen) <= len(flavors):
        page = client.get(path).json
        seen += [flavor["id"] for flavor in page["flavors"]]
        path = page.get("flavors_links", [{"href": ""}])[0]["href"].partition("/v2.1")[2]
    assert sorted(seen) == sorted(flavors)


def test_flavor_by_name_and_its_grants(client: ApiClient, flavors: set[str]) -> None:
    assert [one["id"] for one in client.get("/flavors?name=nb", version="2.102").json["flavors"]] == ["b"]
    assert client.get("/flavors/c", token=DEMO).status_int == 404
    assert client.post("/flavors/c/action", {"addTenantAccess": {"tenant": "demo"}}).status_int == 200
    assert client.post("/flavors/c/action", {"addTenantAccess": {"tenant": "demo"}}).status_int == 409
    assert len(client.get("/flavors", token=DEMO).json["flavors"]) == 4
    assert client.post("/flavors/c/action", {"removeTenantAccess": {"tenant": "demo"}}).status_int == 200
    assert len(client.get("/flavors", token=DEMO).json["flavors"]) == 3


def test_extra_specs_are_kept(client: ApiClient, flavors: set[str]) -> None:
    path = "/flavors/a/os-extra_specs"
    assert client.post(path, {"extra_specs": {"hw:numa_nodes": 1}}, version="2.86").status_int == 200
    assert client.put(f"{path}/hw:pmu", {"hw:pmu": "true"}, version="2.86").status_int == 200
    assert client.get(path).json == {"extra_specs": {"hw:numa_nodes": "1", "hw:pmu": "true"}}
    assert [client.delete(f"{path}/hw:pmu").status_int for _ in range(2)] == [200, 404]


def test_keypairs_are_kept_until_the_quota(client: ApiClient) -> None:
    client.put("/os-quota-sets/demo", {"quota_set": {"key_pairs": 1}})
    answers = [client.post("/os-keypairs", {"keypair": {"name": name, "public_key": SSH}}, token=DEMO).status_int
               for name in ("k", "k", "l")]
    assert answers == [200, 409, 403]
    assert client.get("/os-keypairs/k", token=DEMO).json["keypair"]["public_key"] == SSH
    assert client.delete("/os-keypairs/k", token=DEMO).status_int == 202
    client.delete("/os-quota-sets/demo")


def test_quotas_of_a_user_stay_below_the_projects(client: ApiClient) -> None:
    def put(who: str, cores: int) -> int:
        return client.put(f"/os-quota-sets/p{who}", {"quota_set": {"cores": cores}}).status_int
    assert [put("", 5), put("?user_id=joe", 6), put("?user_id=joe", 4)] == [200, 400, 200]
    assert client.get("/os-quota-sets/p?user_id=joe").json["quota_set"]["cores"] == 4
    assert client.get("/limits?tenant_id=p").json["limits"]["absolute"]["maxTotalCores"] == 5
    assert client.delete("/os-quota-sets/p").status_int == 202
    assert client.get("/os-quota-sets/p/detail?user_id=joe").json["quota_set"]["cores"] == {
        "limit": 10, "in_use": 0, "reserved": 0}


def test_service_is_disabled_forced_down_and_brought_back(client: ApiClient) -> None:
    service = client.get("/os-services?binary=nova-compute", version="2.53").json["services"][0]
    path = f"/os-services/{service['id']}"
    reason = {"status": "disabled", "disabled_reason": "why"}
    assert client.put(path, reason, version="2.53").json["service"]["disabled_reason"] == "why"
    shown = client.put(path, {"status": "enabled", "forced_down": True}, version="2.53").json["service"]
    assert (shown["status"], shown["state"], shown["disabled_reason"]) == ("enabled", "down", None)
    assert client.put(path, {"forced_down": False}, version="2.53").json["service"]["state"] == "up"


def test_zones_hypervisors_and_networks_are_shown(client: ApiClient) -> None:
    assert [zone["zoneName"] for zone in client.get("/os-availability-zone", token=DEMO).json["availabilityZoneInfo"]
            ] == ["nova"]
    shown = client.get(f"/os-hypervisors/{NODE}?with_servers=1", version="2.75").json["hypervisor"]
    assert (shown["servers"], shown["vcpus"], shown["free_ram_mb"]) == ([], 4, 1000)
    detail = client.get("/os-hypervisors/detail", version="2.88").json["hypervisors"][0]
    assert " up 1 day, " in detail["uptime"]
    assert client.get("/os-hypervisors?marker=99", version="2.33").status_int == 400
    network = client.get("/os-networks", token=DEMO).json["networks"][0]
    assert client.get(f"/os-networks/{network['id']}").json["network"]["bridge"] == "br100"
