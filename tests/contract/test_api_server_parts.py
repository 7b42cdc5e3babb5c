"""What we answer about all that belongs to servers passes the contract's rows at every version."""

from __future__ import annotations

from typing import Any

import pytest

from nova.model.server.diagnostics import CpuUse, Diagnostics, DiskUse, NicUse
from nova.model.server.migrations import MigrationProgress
from nova.model.server.server_groups import ServerGroup
from nova.model.server.server_parts import NumaNode, ServerTopology
from nova.model.server.states import PowerState
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient

pytestmark = rows.needs_contract

UUID = "11111111-2222-4333-8444-555555555555"
GROUP_ID = "99999999-2222-4333-8444-555555555555"

READS = {
    "GET /os-server-groups": "/os-server-groups?limit=0",
    "GET /os-server-groups/{server_group_id}": f"/os-server-groups/{GROUP_ID}",
    "GET /servers/{server_id}/tags": f"/servers/{UUID}/tags",
    "GET /servers/{server_id}/tags/{tag}": f"/servers/{UUID}/tags/blue",
    "GET /servers/{server_id}/os-server-password": f"/servers/{UUID}/os-server-password",
    "GET /servers/{server_id}/diagnostics": f"/servers/{UUID}/diagnostics",
    "GET /servers/{server_id}/topology": f"/servers/{UUID}/topology",
    "GET /os-migrations": "/os-migrations",
    "GET /servers/{server_id}/migrations": f"/servers/{UUID}/migrations",
    "GET /servers/{server_id}/migrations/{migration_id}": f"/servers/{UUID}/migrations/1",
}
#: Of samples' fields those that depend on what is asked for: a group with a rule, a page that is full.
ELSEWHERE = {".server_groups[].rules.max_server_per_host", ".server_group.rules.max_server_per_host",
             ".migrations_links", ".migrations_links[].href", ".migrations_links[].rel"}
FROM_START = [id for id in READS if "tags" not in id and "topology" not in id and "/{server_id}/migr" not in id]

NODE = NumaNode(memory_mb=1024, vcpus=(0, 1), siblings=((0, 1),), host_node=0, cpu_pinning={0: 0, 1: 5})
OTHER = NumaNode(memory_mb=2048, vcpus=(2, 3), siblings=((2, 3),), host_node=1, cpu_pinning={2: 1, 3: 8})
DIAGNOSTICS = Diagnostics(
    power_state=PowerState.RUNNING, driver="libvirt", hypervisor="kvm", hypervisor_os="linux", uptime_s=3,
    cpus=(CpuUse(id=0, time_ns=17300000000),),
    nics=(NicUse(device="tap1", mac="01:23:45:67:89:ab", rx_octets=2070139),),
    disks=(DiskUse(device="vda", read_bytes=262144),), memory_max_mb=512)


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    fake = made.conductor
    fake.add_server(uuid=UUID, tags=("blue", "red"), project_id="admin", user_id="admin")
    fake.groups[GROUP_ID] = ServerGroup(uuid=GROUP_ID, project_id="admin", user_id="admin", name="g",
                                        policy="soft-affinity", members=(UUID,))
    fake.given(get_diagnostics=DIAGNOSTICS, get_server_topology=ServerTopology(
        project_id="admin", user_id="admin", nodes=(NODE, OTHER), page_kb=4))
    fake.passwords[UUID] = "secret"
    fake.add_migration(server_uuid=UUID, project_id="admin", user_id="admin",
                       progress=MigrationProgress(memory_total_bytes=5))
    return made


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    if id in FROM_START:
        answers.assert_reads(id, client, READS[id])
        return
    for version in answers.span(id):
        answers.assert_answer(id, version, client.get(READS[id], version=f"2.{version}"))


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples(READS))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    answer = client.get(READS[id], version=f"2.{version}")
    missing = answers.fields(content) - answers.fields(answer.json)
    assert missing <= ELSEWHERE


def test_answers_to_group_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        policy = ({"policy": "anti-affinity", "rules": {"max_server_per_host": "3"}} if version >= 64
                  else {"policies": ["anti-affinity"]})
        made = client.post("/os-server-groups", {"server_group": {"name": "g", **policy}}, version=f"2.{version}")
        answers.assert_answer("POST /os-server-groups", version, made)
        gone = client.delete(f"/os-server-groups/{made.json['server_group']['id']}", version=f"2.{version}")
        answers.assert_answer("DELETE /os-server-groups/{server_group_id}", version, gone)


def test_answers_to_tag_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    path = f"/servers/{UUID}/tags"
    for version in answers.span("PUT /servers/{server_id}/tags"):
        at = {"version": f"2.{version}"}
        answers.assert_answer("PUT /servers/{server_id}/tags", version, client.put(path, {"tags": ["a", "b"]}, **at))
        for code in (201, 204):
            put = client.request("PUT", f"{path}/c", **at)
            answers.assert_answer("PUT /servers/{server_id}/tags/{tag}", version, put)
            assert put.status_int == code
        answers.assert_answer("DELETE /servers/{server_id}/tags/{tag}", version, client.delete(f"{path}/c", **at))
        answers.assert_answer("DELETE /servers/{server_id}/tags", version, client.delete(path, **at))


def test_answers_to_other_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    event = {"name": "network-changed", "server_uuid": UUID, "tag": "foo"}
    for version in rows.VERSIONS:
        at = {"version": f"2.{version}"}
        reset = client.post(f"/servers/{UUID}/action", {"os-resetState": {"state": "error"}}, **at)
        answers.assert_answer("POST /servers/{server_id}/action#os-resetState", version, reset)
        clear = client.delete(f"/servers/{UUID}/os-server-password", **at)
        answers.assert_answer("DELETE /servers/{server_id}/os-server-password", version, clear)
        events = client.post("/os-server-external-events", {"events": [event]}, **at)
        answers.assert_answer("POST /os-server-external-events", version, events)


def test_answers_for_a_project_member_pass_the_contract(client: ApiClient) -> None:
    """Without what administrators see: no pinning, no hosts."""
    mine = "21111111-2222-4333-8444-555555555555"
    client.conductor.add_server(uuid=mine, project_id="demo", user_id="demo")
    client.conductor.given(get_server_topology=ServerTopology(project_id="demo", user_id="demo", nodes=(NODE,),
                                                              page_kb=4))
    answer = client.get(f"/servers/{mine}/topology", version="2.78", token=DEMO)
    answers.assert_answer("GET /servers/{server_id}/topology", 78, answer)
    assert answer.json["nodes"] == [{"memory_mb": 1024, "vcpu_set": [0, 1], "siblings": [[0, 1]]}]
