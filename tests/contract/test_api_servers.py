"""What we answer about servers passes the contract's rows, at every version, for admins and for others."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from nova.model.flavor.flavors import Flavor
from nova.model.network.networks import FixedAddress, Interface
from nova.model.server.actions import ActionEvent, InstanceAction
from nova.model.server.servers import AttachedVolume, Fault, ServerDetail
from nova.model.server.states import PowerState, VmState
from tests.contract import rows
from tests.fakes.api import ADMIN, DEMO, ApiClient
from tests.fakes.conductor import FakeConductor

pytestmark = rows.needs_contract

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"


def full(conductor: FakeConductor, **fields: Any) -> ServerDetail:
    """A server with a value in every field."""
    return conductor.add_server(**{
        "uuid": UUID, "name": "full", "project_id": "demo", "user_id": "demo", "created_at": WHEN, "updated_at": WHEN,
        "launched_at": WHEN, "terminated_at": WHEN, "vm_state": VmState.ERROR, "power_state": PowerState.RUNNING,
        "progress": 50, "reservation_id": "r-1", "host": "host1", "node": "node1", "host_status": "UP",
        "availability_zone": "nova", "pinned_availability_zone": "nova", "image_id": IMAGE,
        "image_properties": {"hw_disk_bus": "virtio", "unknown": "x"}, "kernel_id": IMAGE, "ramdisk_id": IMAGE,
        "hostname": "full", "root_device_name": "/dev/vda", "user_data": "YQ==", "key_name": "key",
        "access_ip_v4": "192.0.2.1", "access_ip_v6": "2001:db8::1", "config_drive": True, "locked": True,
        "locked_by": "admin", "locked_reason": "no", "description": "text", "metadata": {"a": "b"}, "tags": ("x",),
        "flavor": Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1, extra_specs={"a": "b"}),
        "interfaces": (Interface(id=UUID, mac="fa:16:3e:00:00:01", network_id=UUID, label="private",
                                 addresses=(FixedAddress(address="10.0.0.2"),
                                            FixedAddress(address="2001:db8::2", version=6)),
                                 floating_addresses=(FixedAddress(address="192.0.2.9"),)),),
        "security_groups": ("default",), "volumes": (AttachedVolume(id=UUID),),
        "fault": Fault(message="No valid host", details="trace", created_at=WHEN), "trusted_certs": ("cert",),
        "scheduler_hints": {"group": UUID}, "server_groups": (UUID,), "instance_name": "instance-00000001", **fields})


@pytest.fixture(scope="module", params=["full", "sparse"])
def conductor(request: pytest.FixtureRequest) -> FakeConductor:
    made = FakeConductor()
    if request.param == "full":
        full(made)
    else:
        made.add_server(uuid=UUID, vm_state=VmState.BUILDING, launched_at=None, host=None, node=None)
    event = ActionEvent(event="compute_stop_instance", started_at=WHEN, finished_at=WHEN, result="Error",
                        host="host1", details="why", traceback="trace")
    running = ActionEvent(event="compute_start_instance", started_at=WHEN)
    made.actions.append(InstanceAction(id=1, action="stop", server_uuid=UUID, request_id="req-1", user_id="demo",
                                       project_id="demo", started_at=WHEN, events=(event, running)))
    return made


@pytest.fixture(scope="module", params=[ADMIN, DEMO])
def client(request: pytest.FixtureRequest, conductor: FakeConductor) -> ApiClient:
    return ApiClient(conductor, token=request.param)


READS = {
    "GET /servers": "/servers?all_tenants={all}",
    "GET /servers/detail": "/servers/detail?all_tenants={all}&limit=1",
    "GET /servers/{server_id}": f"/servers/{UUID}",
    "GET /servers/{server_id}/ips": f"/servers/{UUID}/ips",
    "GET /servers/{server_id}/metadata": f"/servers/{UUID}/metadata",
    "GET /servers/{server_id}/os-instance-actions": f"/servers/{UUID}/os-instance-actions",
    "GET /servers/{server_id}/os-instance-actions/{request_id}": f"/servers/{UUID}/os-instance-actions/req-1",
}


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    path = READS[id].format(all=int(client.token == ADMIN))
    for version in rows.VERSIONS:
        answer = client.get(path, version=f"2.{version}")
        assert answer.status_int == 200, answer.text
        assert rows.judge(rows.shapes(id)["response"], answer.json, version) == [], f"2.{version}"


@pytest.mark.parametrize("token", [ADMIN, DEMO])
@pytest.mark.parametrize(("id", "path"), [
    ("GET /servers", "/servers?all_tenants={all}"), ("GET /servers/detail", "/servers/detail?all_tenants={all}"),
    ("GET /servers/{server_id}", f"/servers/{UUID}")])
@pytest.mark.parametrize("bare", [False, True])
def test_answer_about_a_server_whose_cell_is_silent_passes_the_contract(id: str, path: str, token: str, bare: bool
                                                                        ) -> None:
    conductor = FakeConductor()
    full(conductor, unknown=True, power_state=PowerState.NOSTATE, **(
        {"image_id": "", "server_groups": (), "availability_zone": "UNKNOWN"} if bare else {}))
    client = ApiClient(conductor, token=token)
    for version in range(69, 105):
        answer = client.get(path.format(all=int(token == ADMIN)), version=f"2.{version}")
        assert answer.status_int == 200 and "UNKNOWN" in answer.text, answer.text
        assert rows.judge(rows.shapes(id)["response"], answer.json, version) == [], f"2.{version}"


@pytest.mark.parametrize(("sample", "path"), [("v2.69/servers-details-resp", "/servers/detail?all_tenants=1"),
                                              ("v2.71/server-get-down-cell-resp", f"/servers/{UUID}")])
def test_answer_about_a_server_whose_cell_is_silent_has_exactly_the_samples_fields(sample: str, path: str) -> None:
    conductor = FakeConductor()
    full(conductor, unknown=True, power_state=PowerState.NOSTATE)
    published = json.loads((rows.SHARED / "samples/servers" / f"{sample}.json").read_text())
    ours = ApiClient(conductor, token=ADMIN, version=sample[1:5]).get(path).json
    assert _fields(ours) == _fields(published)


def test_answer_to_update_at_every_version_passes_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        answer = client.put(f"/servers/{UUID}", {"server": {"name": "again"}}, version=f"2.{version}")
        assert answer.status_int == 200, answer.text
        shape = rows.shapes("PUT /servers/{server_id}")["response"]
        assert rows.judge(shape, answer.json, version) == [], f"2.{version}"


def test_answer_to_create_at_every_version_passes_the_contract(client: ApiClient) -> None:
    for version in (1, 18, 19, 37, 42, 57, 74, 90, 94, 104):
        body = {"server": {"name": "new", "flavorRef": "1", "imageRef": IMAGE, "networks": "auto"}}
        if version < 37:
            del body["server"]["networks"]
        answer = client.post("/servers", body, version=f"2.{version}")
        assert answer.status_int == 202, answer.text
        assert rows.judge(rows.shapes("POST /servers")["response"], answer.json, version) == []


def _fields(value: Any, where: str = "") -> set[str]:
    if isinstance(value, dict):
        found = {f"{where}.{key}" for key in value}
        open_keys = where.endswith((".metadata", ".addresses", ".extra_specs", ".properties", ".scheduler_hints"))
        return found.union(*(_fields(item, f"{where}.*" if open_keys else f"{where}.{key}")
                             for key, item in value.items())) if not open_keys else set()
    if isinstance(value, list):
        return set().union(*(_fields(item, f"{where}[]") for item in value))
    return set()


def detail_samples() -> list[Any]:
    if not rows.SHARED.is_dir():
        return []
    folder = rows.SHARED / "samples/servers"
    names = sorted([*folder.glob("**/server-get-resp.json"), *folder.glob("**/servers-details-resp.json")])
    return [pytest.param(path, id=str(path.relative_to(rows.SHARED))) for path in names]


@pytest.mark.parametrize("path", detail_samples())
def test_answer_has_every_field_of_the_published_sample(path: Any) -> None:
    conductor = FakeConductor()
    full(conductor, vm_state=VmState.ACTIVE)
    client = ApiClient(conductor, token=ADMIN, version=f"2.{rows.sample_version(str(path))}")
    ours = _fields(client.get("/servers/detail?all_tenants=1&limit=1" if "details" in path.name
                              else f"/servers/{UUID}").json)
    assert _fields(json.loads(path.read_text())) - ours == set()
