"""What we answer for other services at old versions passes the contract's rows."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from nova.model.network.networks import NEUTRON
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient
from tests.fakes.conductor import WHEN

pytestmark = rows.needs_contract

ID = str(uuid.UUID(int=1))
READS = {
    "GET /os-networks": "/os-networks",
    "GET /os-networks/{network_id}": f"/os-networks/{ID}",
    "GET /images": "/images?limit=1",
    "GET /images/detail": "/images/detail?limit=1",
    "GET /images/{image_id}": f"/images/{ID}",
    "GET /images/{image_id}/metadata": f"/images/{ID}/metadata",
    "GET /images/{image_id}/metadata/{key}": f"/images/{ID}/metadata/kernel_id",
}


def client(token: str, sparse: bool = False) -> ApiClient:
    made = ApiClient(token=token)
    properties = {"kernel_id": "x", "auto_disk_config": "True", "instance_uuid": ID}
    if sparse:
        made.conductor.add_network(cidr=None)
        made.conductor.add_image(name=None, status="queued", updated_at=None, properties={"kernel_id": "x"})
    else:
        made.conductor.add_network(
            netmask="255.255.255.0", broadcast="10.0.0.255", gateway="10.0.0.1", dhcp_start="10.0.0.2", vlan=100,
            dns1="8.8.8.8", dns2="8.8.4.4", cidr_v6="fd00::/64", bridge="br100", bridge_interface="eth0", mtu=1500,
            host="host1", priority=1, rxtx_base=3, vpn_public_port=1000, project_id="demo", updated_at=WHEN,
            dhcp_server="10.0.0.1", vpn_private_address="10.0.0.2", vpn_public_address="192.0.2.1")
        made.conductor.add_image(size_bytes=3, min_disk_gb=1, min_ram_mb=64, properties=properties)
    return made


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("token", [ADMIN, DEMO])
@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, token: str, sparse: bool) -> None:
    made = client(token, sparse)
    if "os-networks" in id:  # the rows are those of Neutron's; nova-network's: test_old_network_types
        for uuid_, network in made.conductor.networks.items():
            made.conductor.networks[uuid_] = msgspec.structs.replace(network, back_end=NEUTRON)
    answers.assert_reads(id, made, READS[id])


@pytest.mark.parametrize("id", ["GET /os-networks", "GET /os-networks/{network_id}"])
def test_answer_of_nova_networks_when_neutron_would_say_null_then_all_else_passes_the_contract(id: str) -> None:
    answer = client(ADMIN).get(READS[id], version="2.35")
    found = rows.judge(rows.shapes(id)["response"], answer.json, 35)
    assert [problem for problem in found if not answers.NEUTRONS_ROWS.search(problem)] == []


def test_answers_to_image_writes_at_every_version_pass_the_contract() -> None:
    made = client(DEMO)
    for version in range(1, 39):
        at: dict[str, Any] = {"version": f"2.{version}"}
        base, keyed = "/images/{image_id}/metadata", "/images/{image_id}/metadata/{key}"
        new = made.conductor.add_image().id
        steps = [(f"POST {base}", made.post(f"/images/{new}/metadata", {"metadata": {"a": "b"}}, **at)),
                 (f"PUT {base}", made.put(f"/images/{new}/metadata", {"metadata": {"a": "c", "d": "e"}}, **at)),
                 (f"PUT {keyed}", made.put(f"/images/{new}/metadata/a", {"meta": {"a": "c"}}, **at)),
                 (f"DELETE {keyed}", made.delete(f"/images/{new}/metadata/a", **at))]
        if version <= 35:
            steps.append(("DELETE /images/{image_id}", made.delete(f"/images/{new}", **at)))
        for id, answer in steps:
            answers.assert_answer(id, version, answer)


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples(READS))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any) -> None:
    answer = client(ADMIN).get(READS[id], version=f"2.{version}")
    assert answers.fields(content) - {".meta.kernel_id"} <= answers.fields(answer.json)
