"""Sessions of the unmodified `openstack` command with its placement plugin."""

from __future__ import annotations

import re
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.functional.clients import VENV, Failed, User
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(9, 10)

COMMANDS = ("import importlib.metadata as m; print(*[e.name.replace('_', ' ') for e in "
            "m.distribution('osc-placement').entry_points if e.group == 'openstack.placement.v1'], sep='\\n')")
NEWEST = "1.39"


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    return make_cloud(Plan(computes=2, network=False, placement=True)).start()


class Terminal:
    """``openstack`` at a version of Placement's API."""

    def __init__(self, user: User, version: str = NEWEST) -> None:
        self.user, self.version = user, f"--os-placement-api-version={version}"

    def __call__(self, line: str, *more: str) -> Any:
        """What `-f json` printed."""
        return self.user.openstack(f"{self.version} {line}", *more)

    def do(self, line: str, *more: str) -> None:
        self.user.do(f"{self.version} {line}", *more)

    def provider(self, *more: str) -> str:
        """The uuid of a new one."""
        return str(self(f"resource provider create p-{uuid.uuid4().hex}", *more)["uuid"])


@pytest.fixture
def op(admin: User) -> Terminal:
    return Terminal(admin)


def test_provider_create_show_set_list_delete(op: Terminal) -> None:
    id = op.provider()
    assert op(f"resource provider show {id}")["root_provider_uuid"] == id
    child = op.provider("--parent-provider", id)
    assert op(f"resource provider set {child} --name renamed")["name"] == "renamed"
    assert {one["uuid"] for one in op(f"resource provider list --in-tree {id}")} == {id, child}
    assert [one["uuid"] for one in op("resource provider list --name renamed")] == [child]
    with pytest.raises(Failed, match="child"):
        op.do(f"resource provider delete {id}")
    op.do(f"resource provider delete {child}")
    op.do(f"resource provider delete {id}")
    with pytest.raises(Failed, match="No resource provider"):
        op(f"resource provider show {id}")


def test_hosts_are_providers_with_what_they_report_and_stay(op: Terminal, cloud: Cloud) -> None:
    hosts = {one["name"]: one["uuid"] for one in op("resource provider list")}
    assert {"host1", "host2"} <= set(hosts)
    found = {one["resource_class"]: one for one in op(f"resource provider inventory list {hosts['host1']}")}
    assert {"VCPU", "MEMORY_MB", "DISK_GB"} <= set(found) and found["VCPU"]["used"] == 0
    with pytest.raises(Failed, match="HTTP 409"):
        op.do(f"resource provider delete {hosts['host1']}")


def test_inventory_set_show_class_set_delete(op: Terminal) -> None:
    id = op.provider()
    op.do(f"resource provider inventory set {id} --resource VCPU=16 --resource VCPU:allocation_ratio=2.0 "
          "--resource MEMORY_MB=512")
    assert op(f"resource provider inventory show {id} VCPU")["allocation_ratio"] == 2.0
    assert op(f"resource provider inventory class set {id} VCPU --total 8 --reserved 1")["total"] == 8
    op.do(f"resource provider inventory set {id} --amend --resource MEMORY_MB:reserved=12")
    op.do(f"resource provider inventory delete {id} --resource-class VCPU")
    (left,) = op(f"resource provider inventory list {id}")
    assert (left["resource_class"], left["reserved"]) == ("MEMORY_MB", 12)
    op.do(f"resource provider inventory delete {id}")
    assert op(f"resource provider inventory list {id}") == []
    op.do(f"resource provider delete {id}")


def test_trait_create_set_list_show_delete(op: Terminal) -> None:
    id = op.provider()
    op.do("trait create CUSTOM_GOLD")
    assert op("trait show CUSTOM_GOLD")["name"] == "CUSTOM_GOLD"
    op.do(f"resource provider trait set {id} --trait CUSTOM_GOLD --trait HW_CPU_X86_AVX2")
    assert {one["name"] for one in op(f"resource provider trait list {id}")} == {"CUSTOM_GOLD", "HW_CPU_X86_AVX2"}
    assert [one["uuid"] for one in op("resource provider list --required CUSTOM_GOLD")] == [id]
    assert {"name": "CUSTOM_GOLD"} in op("trait list --associated")
    assert [one["name"] for one in op("trait list --name startswith:CUSTOM_GOLD")] == ["CUSTOM_GOLD"]
    with pytest.raises(Failed, match="HTTP 409"):
        op.do("trait delete CUSTOM_GOLD")
    op.do(f"resource provider trait delete {id}")
    op.do("trait delete CUSTOM_GOLD")
    with pytest.raises(Failed, match="HTTP 404"):
        op("trait show CUSTOM_GOLD")
    op.do(f"resource provider delete {id}")


def test_class_create_list_show_set_delete(op: Terminal) -> None:
    op.do("resource class create CUSTOM_TAPE")
    assert op("resource class show CUSTOM_TAPE")["name"] == "CUSTOM_TAPE"
    op.do("resource class set CUSTOM_TAPE")
    op.do("resource class set CUSTOM_DRUM")
    assert {"CUSTOM_TAPE", "CUSTOM_DRUM", "VCPU"} <= {one["name"] for one in op("resource class list")}
    op.do("resource class delete CUSTOM_TAPE")
    op.do("resource class delete CUSTOM_DRUM")
    with pytest.raises(Failed, match="HTTP 400"):
        op.do("resource class delete VCPU")


def test_aggregate_set_list(op: Terminal) -> None:
    id, group = op.provider(), str(uuid.uuid4())
    generation = op(f"resource provider show {id}")["generation"]
    op.do(f"resource provider aggregate set {id} --aggregate {group} --generation {generation}")
    assert [one["uuid"] for one in op(f"resource provider aggregate list {id}")] == [group]
    assert [one["uuid"] for one in op(f"resource provider list --member-of {group}")] == [id]
    op.do(f"resource provider delete {id}")


def test_allocation_set_show_unset_delete_and_usages(op: Terminal) -> None:
    id, consumer = op.provider(), str(uuid.uuid4())
    op.do("resource class create CUSTOM_SLOT")
    op.do(f"resource provider inventory set {id} --resource CUSTOM_SLOT=4 --resource VCPU=4")
    owner = "--project-id some --user-id joe --consumer-type JOB"
    op.do(f"resource provider allocation set {consumer} --allocation rp={id},CUSTOM_SLOT=2,VCPU=1 {owner}")
    (shown,) = op(f"resource provider allocation show {consumer}")
    assert shown["resource_provider"] == id and shown["resources"] == {"CUSTOM_SLOT": 2, "VCPU": 1}
    assert consumer in op(f"resource provider show {id} --allocations")["allocations"]
    used = {one["resource_class"]: one["usage"] for one in op(f"resource provider usage show {id}")}
    assert used == {"CUSTOM_SLOT": 2, "VCPU": 1}
    assert op("resource usage show some")
    assert {one["resource_class"]: one["usage"] for one in Terminal(op.user, "1.9")("resource usage show some")} == used
    with pytest.raises(Failed, match="HTTP 409"):
        op.do(f"resource provider allocation set {consumer} --allocation rp={id},CUSTOM_SLOT=5 {owner}")
    with pytest.raises(Failed, match="HTTP 409"):
        op.do(f"resource provider inventory delete {id} --resource-class VCPU")
    op.do(f"resource provider allocation unset {consumer} --resource-class VCPU")
    assert op(f"resource provider allocation show {consumer}")[0]["resources"] == {"CUSTOM_SLOT": 2}
    op.do(f"resource provider allocation delete {consumer}")
    assert op(f"resource provider allocation show {consumer}") == []
    op.do(f"resource provider delete {id}")
    op.do("resource class delete CUSTOM_SLOT")


def test_allocation_candidate_list(op: Terminal) -> None:
    wanted = "allocation candidate list --resource VCPU=1 --resource MEMORY_MB=64"
    hosts = {one["resource provider"] for one in op(f"{wanted} --limit 5")}
    assert len(hosts) == 2 and len(op(f"{wanted} --limit 1")) == 1
    marked = op.provider()
    op.do("trait create CUSTOM_MARKED")
    op.do(f"resource provider trait set {marked} --trait CUSTOM_MARKED")
    op.do(f"resource provider inventory set {marked} --resource VCPU=2 --resource MEMORY_MB=64")
    assert [one["resource provider"] for one in op(f"{wanted} --required CUSTOM_MARKED")] == [marked]
    assert {one["resource provider"] for one in op(f"{wanted} --forbidden CUSTOM_MARKED")} == hosts
    grouped = op("allocation candidate list --group 1 --resource VCPU=1 --required CUSTOM_MARKED "
                 "--group 2 --resource MEMORY_MB=64 --group-policy none")
    assert {one["resource provider"] for one in grouped} == {marked}
    op.do(f"resource provider delete {marked}")
    op.do("trait delete CUSTOM_MARKED")


def test_server_holds_what_its_flavor_says_and_placement_cannot_take_it_away(op: Terminal, cloud: Cloud) -> None:
    server = cloud.api().boot("held", networks="none")
    (held,) = op(f"resource provider allocation show {server['id']}")
    assert held["resources"] == {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1} and held["project_id"] == "demo"
    assert held["consumer_type"] == "INSTANCE"
    with pytest.raises(Failed, match="HTTP 409"):
        op.do(f"resource provider allocation delete {server['id']}")
    assert len(op(f"resource provider allocation show {server['id']}")) == 1
    cloud.api().delete(server["id"])
    cloud.wait_clean()
    assert op(f"resource provider allocation show {server['id']}") == []


def test_tenant_may_see_the_own_usage_and_nothing_else(demo: User, op: Terminal) -> None:
    tenant = Terminal(demo)
    assert tenant("resource usage show demo") == []
    for command in ("resource provider list", "resource usage show admin", "trait list"):
        with pytest.raises(Failed, match="HTTP 403"):
            tenant(command)


@pytest.mark.parametrize("version", ["1.0", "1.14", "1.29"])
def test_older_versions_of_the_client_work(admin: User, version: str) -> None:
    old = Terminal(admin, version)
    id = old.provider()
    old.do(f"resource provider inventory set {id} --resource VCPU=4")
    owner = "--project-id some --user-id joe" if version != "1.0" else ""
    consumer = str(uuid.uuid4())
    old.do(f"resource provider allocation set {consumer} --allocation rp={id},VCPU=1 {owner}")
    assert old(f"resource provider usage show {id}") == [{"resource_class": "VCPU", "usage": 1}]
    old.do(f"resource provider allocation delete {consumer}")
    old.do(f"resource provider delete {id}")


def test_client_when_no_version_is_named_then_finds_one(admin: User, cloud: Cloud) -> None:
    assert {one["name"] for one in admin.openstack("resource provider list")} >= set(cloud.hosts)


def test_every_command_of_the_plugin_is_in_a_session_here() -> None:
    done = subprocess.run([VENV / "bin" / "python", "-c", COMMANDS], capture_output=True, text=True, check=True)
    text = re.sub(r"\s+", " ", Path(__file__).read_text())
    assert [name for name in done.stdout.split("\n") if name and f'"{name}' not in text] == []
