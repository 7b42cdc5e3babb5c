"""The contract against a cloud of real guests: reads at many versions, and published samples field by field.

Every operation there is, and every sample, is held by ``tests/functional/test_live_contract.py`` on the fake driver.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.contract import answers, rows
from tests.machine.shapes import differences
from tests.machine.stack import Live, Sandbox

pytestmark = [pytest.mark.in_turn(9, 10),
              rows.needs_contract]

SAMPLED = 8  # versions of an operation, beside its first and last
SERVER, FLAVOR, IMAGE = "/servers/{server}", "/flavors/{flavor}", "/images/{image}"


@dataclass(frozen=True)
class Things:
    """A cloud's admin, and names by which paths refer to what is there."""

    admin: Live
    names: dict[str, str] = field(default_factory=dict)

    def path(self, template: str, version: int) -> str:
        """Services and hypervisors were numbers before 2.53."""
        found = {name: self.numbered(name, version) for name in ("service", "hypervisor") if f"{{{name}}}" in template}
        return template.format(**self.names, **found)

    def numbered(self, kind: str, version: int) -> str:
        listed = self.admin.at(version, f"/os-{kind}s").json()[f"{kind}s"]
        return str(next(one["id"] for one in listed if "host1" in (one.get("host"), one.get("hypervisor_hostname"))
                        and one.get("binary", "nova-compute") == "nova-compute"))


@pytest.fixture(scope="module")
def things(sandbox: Sandbox) -> Iterator[Things]:
    """One of everything, with a value in every field that a user can give one to."""
    admin = sandbox.api("admin")
    flavor = admin.call("POST", "/flavors", {"flavor": {"name": "full", "ram": 128, "vcpus": 1, "disk": 1, "swap": 1,
                                                        "description": "text"}}).json()["flavor"]["id"]
    private = admin.call("POST", "/flavors", {"flavor": {"name": "private", "ram": 128, "vcpus": 1, "disk": 1,
                                                         "os-flavor-access:is_public": False}}).json()["flavor"]["id"]
    admin.call("POST", f"/flavors/{private}/os-extra_specs", {"extra_specs": {"hw:numa_nodes": "1"}})
    public = sandbox.key.with_suffix(".pub").read_text().strip()
    key = {"name": "samples", "public_key": public, "type": "ssh"}
    user = admin.call("POST", "/os-keypairs", {"keypair": key}).json()["keypair"]["user_id"]
    made = admin.create("full", flavorRef=flavor, key_name="samples", metadata={"colour": "blue"}, host="host1",
                        description="text", user_data="IyEK", config_drive=True, tags=["one"])
    server = admin.settled(made["id"], "ACTIVE")
    image = sandbox.openstack("image", "create", "--property", "colour=blue", "--property", "hw_disk_bus=virtio",
                              "--disk-format", "raw", "--container-format", "bare", "written", user="admin")["id"]
    label, network = next(iter(server["addresses"])), admin.at(1, "/os-networks").json()["networks"][0]["id"]
    yield Things(admin, {
        "flavor": flavor, "private": private, "server": server["id"], "image": sandbox.image, "user": user,
        "project": server["tenant_id"], "label": label, "network": network, "request": made["request_id"],
        "written": image, "public": public})
    sandbox.remove(admin, server["id"])
    for path in (f"/flavors/{flavor}", f"/flavors/{private}", "/os-keypairs/samples"):
        admin.call("DELETE", path)
    sandbox.run("openstack", "image", "delete", image, user="admin")


READS = {
    "GET /servers": "/servers", "GET /servers/detail": "/servers/detail?all_tenants=1",
    "GET /servers/{server_id}": SERVER,
    "GET /servers/{server_id}/ips": f"{SERVER}/ips", "GET /servers/{server_id}/metadata": f"{SERVER}/metadata",
    "GET /servers/{server_id}/ips/{network_label}": f"{SERVER}/ips/{{label}}",
    "GET /servers/{server_id}/metadata/{key}": f"{SERVER}/metadata/colour",
    "GET /servers/{server_id}/os-instance-actions": f"{SERVER}/os-instance-actions",
    "GET /servers/{server_id}/os-instance-actions/{request_id}": f"{SERVER}/os-instance-actions/{{request}}",
    "GET /flavors": "/flavors?limit=2", "GET /flavors/detail": "/flavors/detail?limit=2",
    "GET /flavors/{flavor_id}": FLAVOR, "GET /flavors/{flavor_id}/os-extra_specs": "/flavors/{private}/os-extra_specs",
    "GET /flavors/{flavor_id}/os-extra_specs/{key}": "/flavors/{private}/os-extra_specs/hw:numa_nodes",
    "GET /flavors/{flavor_id}/os-flavor-access": "/flavors/{private}/os-flavor-access",
    "GET /os-keypairs": "/os-keypairs", "GET /os-keypairs/{keypair_name}": "/os-keypairs/samples",
    "GET /limits": "/limits", "GET /os-quota-sets/{tenant_id}": "/os-quota-sets/{project}",
    "GET /os-quota-sets/{tenant_id}/detail": "/os-quota-sets/{project}/detail",
    "GET /os-quota-sets/{tenant_id}/defaults": "/os-quota-sets/{project}/defaults",
    "GET /os-availability-zone": "/os-availability-zone",
    "GET /os-availability-zone/detail": "/os-availability-zone/detail", "GET /os-services": "/os-services",
    "GET /os-hypervisors": "/os-hypervisors", "GET /os-hypervisors/detail": "/os-hypervisors/detail",
    "GET /os-hypervisors/{hypervisor_id}": "/os-hypervisors/{hypervisor}",
    "GET /os-hypervisors/statistics": "/os-hypervisors/statistics",
    "GET /os-hypervisors/{hypervisor_hostname_pattern}/search": "/os-hypervisors/host/search",
    "GET /os-hypervisors/{hypervisor_hostname_pattern}/servers": "/os-hypervisors/host1/servers",
    "GET /os-hypervisors/{hypervisor_id}/uptime": "/os-hypervisors/{hypervisor}/uptime",
    "GET /os-networks": "/os-networks", "GET /os-networks/{network_id}": "/os-networks/{network}",
    "GET /images": "/images", "GET /images/detail": "/images/detail", "GET /images/{image_id}": IMAGE,
    "GET /images/{image_id}/metadata": f"{IMAGE}/metadata",
    "GET /images/{image_id}/metadata/{key}": "/images/{written}/metadata/colour",
}


#: Held against the schemas alone: what the samples show of these is another driver's, or another history.
OTHER_READS = {
    "GET /servers/{server_id}/diagnostics": f"{SERVER}/diagnostics",
    "GET /servers/{server_id}/topology": f"{SERVER}/topology", "GET /servers/{server_id}/tags": f"{SERVER}/tags",
    "GET /servers/{server_id}/os-server-password": f"{SERVER}/os-server-password",
    "GET /servers/{server_id}/migrations": f"{SERVER}/migrations", "GET /os-migrations": "/os-migrations",
    "GET /os-aggregates": "/os-aggregates", "GET /os-server-groups": "/os-server-groups", "GET /os-hosts": "/os-hosts",
    "GET /os-hosts/{host_name}": "/os-hosts/host1", "GET /extensions": "/extensions",
    "GET /os-simple-tenant-usage": "/os-simple-tenant-usage?detailed=1",
    "GET /os-quota-class-sets/{quota_class}": "/os-quota-class-sets/default",
}


def versions_of(id: str, dice: random.Random, all_of_them: bool) -> list[int]:
    span = answers.span(id)
    if all_of_them:
        return list(span)
    turns = {rows.minor(version, 1) for version in rows.operations()[id].get("changes") or {}}
    turns |= {version - 1 for version in turns}
    some = sorted(turns & set(span) | set(dice.sample(list(span), 3)))
    return sorted({span[0], span[-1], *dice.sample(some, min(SAMPLED, len(some)))})


@pytest.mark.parametrize("id", {**READS, **OTHER_READS})
def test_read_when_asked_live_then_the_answer_passes_the_contract(
        id: str, things: Things, dice: random.Random, request: pytest.FixtureRequest) -> None:
    wrong = {}
    for version in versions_of(id, dice, request.config.getoption("--long")):
        answer = things.admin.at(version, things.path({**READS, **OTHER_READS}[id], version))
        codes = {code["code"] for code in rows.operations()[id]["success"] if rows.holds(code, version)}
        found = [] if answer.status_code in codes else [f"{answer.status_code} {answer.text}"]
        found = found or rows.judge(rows.shapes(id)["response"], answer.json(), version)
        if "os-networks" in id:  # those here are nova-network's
            found = [problem for problem in found if not answers.NEUTRONS_ROWS.search(problem)]
        if found:
            wrong[f"2.{version}"] = found
    assert wrong == {}


# --- the samples

#: Samples, by how their names begin -> what they have that ours need not, as paths.
BEYOND = {
    "os-instance-actions": ("instanceAction.events[].host",),  # steps of the conductor have none
    "images/image-get": ("image.OS-DCF:diskConfig",)}  # shown of images with that property alone


def read_samples() -> list[Any]:
    return answers.response_samples(id for id in READS if rows.SHARED.is_dir())


@pytest.mark.parametrize(("id", "version", "content"), read_samples())
def test_published_answer_when_asked_live_then_ours_has_the_same_shape(
        id: str, version: int, content: Any, things: Things, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    if "UNKNOWN" in str(content) and "v2.69" in name:
        pytest.skip("shows what is known of a cell that does not answer")
    path = READS[id]
    if "with-servers" in name and version >= 53:
        path += "?with_servers=1"
    if "non-admin" in name:
        pytest.skip("shows what a server's owner sees: see the same sample in tests/contract")
    answer = things.admin.at(version, things.path(path, version))
    assert answer.status_code == 200, answer.text
    assert differences(content, answer.json(), allowed(name, content)) == []


def allowed(name: str, content: Any) -> tuple[str, ...]:
    return tuple(path for part, paths in BEYOND.items() if name.startswith(part) for path in paths)


def _server(name: str, **fields: Any) -> Callable[[Things], dict[str, Any]]:
    def body(things: Things) -> dict[str, Any]:
        return {"server": {"name": name, "flavorRef": things.names["flavor"], "imageRef": things.names["image"],
                           **fields}}
    return body


_KEY = {"name": "posted", "type": "ssh", "user_id": "{user}", "public_key": "{public}"}
_SERVICE = {"host": "host2", "binary": "nova-compute"}

#: Sample -> (path, body). Each can be repeated; what it makes is taken away by ``undone``.
WRITES: dict[str, tuple[str, Any]] = {
    "flavor-manage/v2.102/flavor-create-post-resp.json": ("/flavors", {"flavor": {
        "name": "posted", "ram": 128, "vcpus": 1, "disk": 1, "id": "posted", "description": "text"}}),
    "flavor-access/flavor-access-add-tenant-resp.json":
        ("/flavors/{private}/action", {"addTenantAccess": {"tenant": "{project}"}}),
    "flavor-access/flavor-access-remove-tenant-resp.json":
        ("/flavors/{private}/action", {"removeTenantAccess": {"tenant": "{project}"}}),
    "flavor-extra-specs/flavor-extra-specs-create-resp.json":
        ("/flavors/{private}/os-extra_specs", {"extra_specs": {"hw:cpu_policy": "shared"}}),
    "images/image-metadata-post-resp.json": ("/images/{written}/metadata", {"metadata": {"colour": "red"}}),
    "images/image-metadata-put-resp.json": ("/images/{written}/metadata", {"metadata": {"colour": "green"}}),
    "images/image-meta-key-put-resp.json": ("/images/{written}/metadata/colour", {"meta": {"colour": "blue"}}),
    "os-keypairs/v2.10/keypairs-import-post-resp.json": ("/os-keypairs", {"keypair": _KEY}),
    "os-keypairs/v2.92/keypairs-import-post-resp.json": ("/os-keypairs", {"keypair": _KEY}),
    "os-quota-sets/quotas-update-post-resp.json": ("/os-quota-sets/{project}", {"quota_set": {"instances": 45}}),
    "os-services/service-disable-put-resp.json": ("/os-services/disable", _SERVICE),
    "os-services/service-disable-log-put-resp.json":
        ("/os-services/disable-log-reason", {**_SERVICE, "disabled_reason": "test"}),
    "os-services/service-enable-put-resp.json": ("/os-services/enable", _SERVICE),
    "os-services/v2.53/service-disable-log-put-resp.json":
        ("/os-services/{service}", {"status": "disabled", "disabled_reason": "maintenance"}),
    "os-multiple-create/multiple-create-post-resp.json":
        ("/servers", _server("many", min_count=1, max_count=2, return_reservation_id=True)),
    "os-multiple-create/multiple-create-no-resv-post-resp.json":
        ("/servers", _server("many", min_count=1, max_count=2)),
    "servers/v2.96/server-update-resp.json": (SERVER, {"server": {"name": "full", "accessIPv4": "4.3.2.1"}}),
    "servers/v2.75/server-update-resp.json": (SERVER, {"server": {"name": "full", "accessIPv4": "4.3.2.1"}}),
    "server-metadata/server-metadata-all-resp.json": (f"{SERVER}/metadata", {"metadata": {"colour": "red"}}),
    "server-metadata/server-metadata-resp.json": (f"{SERVER}/metadata/colour", {"meta": {"colour": "blue"}}),
    "os-console-output/console-output-post-resp.json":
        (f"{SERVER}/action", {"os-getConsoleOutput": {"length": 10}}),
}


@contextlib.contextmanager
def undone(things: Things, name: str) -> Iterator[None]:
    """What a write leaves is taken away again."""
    try:
        yield
    finally:
        admin = things.admin
        if "flavor-create" in name:
            admin.call("DELETE", "/flavors/posted")
        elif name.startswith("os-keypairs"):
            admin.call("DELETE", "/os-keypairs/posted")
        elif name.startswith("os-quota-sets"):
            admin.call("DELETE", things.path("/os-quota-sets/{project}", 104))
        elif name.startswith("os-services"):
            for host in ("host1", "host2"):
                admin.ask("PUT", "/os-services/enable", 1, {"host": host, "binary": "nova-compute"})
        elif name.startswith("os-multiple-create"):
            admin.remove(*[one["id"] for one in admin.servers() if one["name"].startswith("many")])


def written_samples() -> list[Any]:
    if not rows.SHARED.is_dir():
        return []
    found = [(id, entry) for id, entry in rows.operations().items() if not id.startswith("GET ")]
    return [pytest.param(id, version, content, name, id=f"{id} {name}") for id, entry in found
            for name, version, content in rows.samples(entry) if name in WRITES]


@pytest.mark.parametrize(("id", "version", "content", "name"), written_samples())
def test_published_answer_when_written_live_then_ours_has_the_same_shape(
        id: str, version: int, content: Any, name: str, things: Things) -> None:
    template, body = WRITES[name]
    body = filled(body(things) if callable(body) else body, things.names)
    if name.startswith("flavor-access"):  # the other way first; its maker's project may have access already
        before = WRITES[next(other for other in WRITES if other.startswith("flavor-access") and other != name)]
        things.admin.ask("POST", things.path(template, version), version, filled(before[1], things.names))
    with undone(things, name):
        answer = things.admin.ask(id.split()[0], things.path(template, version), version, body)
        codes = {code["code"] for code in rows.operations()[id]["success"] if rows.holds(code, version)}
        assert answer.status_code in codes, answer.text
        assert differences(content, answer.json(), ()) == []
        assert rows.judge(rows.shapes(id)["response"], answer.json(), version) == []


def filled(body: Any, names: dict[str, str]) -> Any:
    """The body with names put in where a text is one in braces."""
    if isinstance(body, dict):
        return {key: filled(value, names) for key, value in body.items()}
    return names.get(body[1:-1], body) if isinstance(body, str) and body.startswith("{") else body
