"""What a create refers to, by id, by name, by a name that is another's id, and by one that several have: it is what was
meant that the server gets, or the request is refused at once. Never a server in ERROR."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import webob

from nova.api import app
from nova.api.request import ComputeSite
from nova.model.flavor.flavors import NewFlavor
from nova.policies import Policy
from nova.rpc.contracts.cert import CertRPC
from nova.web import auth
from tests.fakes.api import configuration
from tests.fakes.consoles import FakeConsoles
from tests.fakes.contract import ContractFake
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, NEUTRON, SmallCloud

IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"
SSH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6zQ0n0PZqwJ0Mm0yqYkqgHqNnQ3bq0m8JrXbXy4nXq joe"
UNKNOWN = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
HEADERS = {"X-Identity-Status": "Confirmed", "X-User-Id": str(DEMO.user_id), "X-Project-Id": str(DEMO.project_id),
           "X-Roles": "member,reader", "X-Auth-Token": str(DEMO.token), "OpenStack-API-Version": "compute 2.96"}


class Cloud(NamedTuple):
    small: SmallCloud
    application: Any

    def ask(self, method: str, path: str, body: Any = None) -> webob.Response:
        request = webob.Request.blank(f"/v2.1{path}", method=method, headers=HEADERS)
        if body is not None:
            request.body, request.content_type = json.dumps(body).encode(), "application/json"
        return request.get_response(self.application)

    def create(self, **fields: Any) -> webob.Response:
        hints = {"os:scheduler_hints": fields.pop("hints")} if "hints" in fields else {}
        return self.ask("POST", "/servers", {"server": {"name": "vm", "flavorRef": "1", "imageRef": IMAGE,
                                                        "networks": [{"uuid": self.small.net}], **fields}, **hints})


def furnished(cloud: Cloud) -> dict[str, dict[str, str]]:
    """By kind of thing, a word -> the id of what it means. Each kind has a thing whose name is the id of another, and
    two of one name."""
    small = cloud.small
    small.image_service.add(IMAGE, name="cirros")
    like_image = small.image_service.add(new_uuid(), name=IMAGE).id
    made: dict[str, dict[str, str]] = {"image": {IMAGE: IMAGE, like_image: like_image}, "flavor": {"1": "1"}}
    for id, name in (("2", "1"), ("3", "2")):
        small.control.create_flavor(NewFlavor(name=name, flavorid=id, memory_mb=64, vcpus=1, root_gb=1))
        made["flavor"][id] = id
    groups = [small.neutron.add_group("dup") for _ in range(2)] + [small.neutron.add_group("web")]
    groups += [small.neutron.add_group(groups[0]), small.neutron.add_group(groups[2])]
    made["security group"] = {**{one: one for one in groups}, "web": groups[2]}
    networks = [small.net, small.neutron.add_network("private"), small.neutron.add_network(small.net)]
    made["network"] = {one: one for one in networks}
    made["port"] = {one: one for one in (small.neutron.add_port(small.net, name="p") for _ in range(2))}
    names = ("mine", IMAGE)
    for name in names:
        keypair = {"name": name, "type": "ssh", "public_key": SSH}
        assert cloud.ask("POST", "/os-keypairs", {"keypair": keypair}).status_int == 201
    made["key pair"] = {one: one for one in names}
    made["server group"] = {}
    for name in ("g", "g"):
        group = cloud.ask("POST", "/os-server-groups", {"server_group": {"name": name, "policy": "anti-affinity"}})
        made["server group"][group.json["server_group"]["id"]] = group.json["server_group"]["id"]
    volumes = [small.volume_service.add(name="v") for _ in range(2)]
    made["volume"] = {one: one for one in volumes}
    return made


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[Cloud]:
    small = SmallCloud(tmp_path_factory.mktemp("references"), templates, networks=NEUTRON)
    policy = Policy(configuration())
    site = ComputeSite(small.control, policy, FakeConsoles().client(), ContractFake(CertRPC).client())
    yield Cloud(small, app.build(site, lambda inner: auth.KeystoneContext(inner, policy)))
    small.close()


@pytest.fixture(scope="module")
def things(cloud: Cloud) -> dict[str, dict[str, str]]:
    return furnished(cloud)


def port_of(cloud: Cloud, server: Any) -> dict[str, Any]:
    [port] = cloud.small.neutron.of(server.uuid)
    return port


class Reference(NamedTuple):
    """``asks`` of a create with the word; ``got``: the id of what the server has. ``wrong``: words that mean nothing of
    the kind -> the code of the refusal."""

    asks: Callable[[str], Mapping[str, Any]]
    got: Callable[[Cloud, Any], str]
    wrong: Mapping[str, int]


REFERENCES: dict[str, Reference] = {
    "image": Reference(lambda word: {"imageRef": word}, lambda cloud, server: server.image_id,
                       {"cirros": 400, UNKNOWN: 400}),
    "flavor": Reference(lambda word: {"flavorRef": word}, lambda cloud, server: server.flavorid,
                        {"tiny": 400, UNKNOWN: 400}),
    "security group": Reference(lambda word: {"security_groups": [{"name": word}]},
                                lambda cloud, server: port_of(cloud, server)["security_groups"][0],
                                {"dup": 409, "none": 400, UNKNOWN: 400}),
    "network": Reference(lambda word: {"networks": [{"uuid": word}]},
                         lambda cloud, server: port_of(cloud, server)["network_id"], {"private": 400, UNKNOWN: 400}),
    "port": Reference(lambda word: {"networks": [{"port": word}]},
                      lambda cloud, server: port_of(cloud, server)["id"], {"p": 400, UNKNOWN: 400}),
    "key pair": Reference(lambda word: {"key_name": word}, lambda cloud, server: server.key_name,
                          {"none": 400, UNKNOWN: 400}),
    "server group": Reference(lambda word: {"hints": {"group": word}}, lambda cloud, server: cloud.ask(
        "GET", f"/servers/{server.uuid}").json["server"]["server_groups"][0], {"g": 400, UNKNOWN: 400}),
    "volume": Reference(lambda word: {"block_device_mapping_v2": [
        {"source_type": "image", "uuid": IMAGE, "destination_type": "local", "boot_index": 0},
        {"source_type": "volume", "uuid": word, "destination_type": "volume", "boot_index": -1}]},
        lambda cloud, server: server.volumes[0].volume_id, {"v": 400, UNKNOWN: 400})}


@pytest.mark.parametrize("kind", sorted(REFERENCES))
def test_create_when_it_refers_to_something_then_the_server_has_just_that(cloud: Cloud, things: Any, kind: str) -> None:
    reference = REFERENCES[kind]
    for word, meant in things[kind].items():
        answer = cloud.create(**reference.asks(word))
        assert answer.status_int == 202, (word, answer.text)
        server = cloud.small.ended(answer.json["server"]["id"])
        assert (server.vm_state, reference.got(cloud, server)) == ("active", meant), (word, server.fault)


@pytest.mark.parametrize("kind", sorted(REFERENCES))
def test_create_when_a_word_means_nothing_or_several_then_it_is_refused_and_no_server_is_made(
        cloud: Cloud, things: Any, kind: str) -> None:
    before = cloud.ask("GET", "/servers").json
    others = {word: 400 for other in things if other != kind for word in things[other] if word not in things[kind]}
    for word, code in {**others, **REFERENCES[kind].wrong}.items():
        answer = cloud.create(**REFERENCES[kind].asks(word))
        assert answer.status_int == code, (word, answer.text)
    assert cloud.ask("GET", "/servers").json == before
