"""What clients' tests expect of a cloud to begin with, made by its APIs where it is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from keystoneauth1 import session

from tests.clients import stand_ins
from tests.clients.cloud import ADMIN, USER, Cloud

DOMAIN = "default"
#: Those that nova-all has not by itself: name -> size. The smallest is the one that openstacksdk's tests look for;
#: gophercloud's boot with ephemeral disks.
FLAVORS: Mapping[str, Mapping[str, Any]] = {
    "cirros256": {"id": "c1", "ram": 256, "vcpus": 1, "disk": 1},
    "ephemeral.small": {"id": "e1", "ram": 512, "vcpus": 1, "disk": 1, "OS-FLV-EXT-DATA:ephemeral": 5},
    "ephemeral.large": {"id": "e2", "ram": 1024, "vcpus": 1, "disk": 1, "OS-FLV-EXT-DATA:ephemeral": 5},
}
IMAGE = "cirros-0.6.3-x86_64-uec"  # all three look for such a name
CONTENT = b"a disk of a fake guest" * 100
NETWORK, POOL = "private", "public"  # nova-all has them
ALT = "alt"
OLD = "2.1"  # the last whose networks are nova's own is 2.35


class Furnished(NamedTuple):
    """Ids and names for a judge's settings."""

    image: str
    network: str
    flavors: Mapping[str, str]


class Api:
    """JSON of one service, as the administrator. AssertionError for an answer that is not a success."""

    def __init__(self, own: session.Session, service: str, region: str, version: str = "") -> None:
        self.own, self.version = own, version
        self.filter = {"service_type": service, "interface": "public", "region_name": region}
        if service == "identity":
            self.filter["version"] = "3"  # it is in the catalogue without one

    def ask(self, method: str, path: str, body: object = None, **words: Any) -> Any:
        if self.version:
            words["microversion"] = self.version
        if body is not None:
            words["json"] = body
        answer = self.own.request(path, method, endpoint_filter=self.filter, raise_exc=False, **words)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.content else None


def create_sample_data(cloud: Cloud, services: Mapping[str, str]) -> Furnished:
    """``services``: stand-ins for the catalogue, type -> address."""
    own = cloud.session(ADMIN)
    compute, identity = (Api(own, name, cloud.region, OLD if name == "compute" else "") for name in (
        "compute", "identity"))
    image = _image(Api(own, "image", cloud.region))
    _alt(identity, cloud)
    for service in stand_ins.SERVICES:
        _forget(identity, service)
    for service, address in services.items():
        _service(identity, service, address, cloud.region)
    networks = {one["label"]: one["id"] for one in compute.ask("GET", "/os-networks")["networks"]}
    return Furnished(image, networks[NETWORK], _flavors(compute))


def _flavors(compute: Api) -> Mapping[str, str]:
    there = {one["name"]: one["id"] for one in compute.ask("GET", "/flavors?is_public=None")["flavors"]}
    for name, size in FLAVORS.items():
        if name not in there:
            there[name] = compute.ask("POST", "/flavors", {"flavor": {"name": name, **size}})["flavor"]["id"]
    return there


def _image(image: Api) -> str:
    found = image.ask("GET", f"/v2/images?name={IMAGE}")["images"]
    if found:
        return found[0]["id"]
    made = image.ask("POST", "/v2/images", {"name": IMAGE, "disk_format": "raw", "container_format": "bare",
                                            "visibility": "public", "min_disk": 0, "min_ram": 0})
    image.ask("PUT", f"/v2/images/{made['id']}/file", data=CONTENT, headers={
        "Content-Type": "application/octet-stream"})
    return made["id"]


def _alt(identity: Api, cloud: Cloud) -> None:
    """A second user in a project of his own, with the first one's password."""
    if identity.ask("GET", f"/users?name={ALT}&domain_id={DOMAIN}")["users"]:
        return
    project = identity.ask("POST", "/projects", {"project": {"name": ALT, "domain_id": DOMAIN}})["project"]
    user = identity.ask("POST", "/users", {"user": {
        "name": ALT, "password": cloud.login(USER)["password"], "domain_id": DOMAIN,
        "default_project_id": project["id"]}})["user"]
    role = next(one["id"] for one in identity.ask("GET", "/roles")["roles"] if one["name"] == "member")
    identity.ask("PUT", f"/projects/{project['id']}/users/{user['id']}/roles/{role}")


def _forget(identity: Api, kind: str) -> None:
    """What an earlier judge on the same cloud had put into the catalogue."""
    for one in identity.ask("GET", f"/services?type={kind}")["services"]:
        identity.ask("DELETE", f"/services/{one['id']}")


def _service(identity: Api, kind: str, address: str, region: str) -> None:
    """A new entry of the catalogue."""
    name, path = stand_ins.SERVICES[kind]
    made = identity.ask("POST", "/services", {"service": {"type": kind, "name": name}})["service"]
    identity.ask("POST", "/endpoints", {"endpoint": {
        "service_id": made["id"], "interface": "public", "region_id": region, "url": address + path}})


def own_project(cloud: Cloud, name: str) -> str:
    """A project that the administrator works in, beside the first one: its name."""
    identity = Api(cloud.session(ADMIN), "identity", cloud.region)
    made = identity.ask("POST", "/projects", {"project": {"name": name, "domain_id": DOMAIN}})["project"]["id"]
    user = identity.ask("GET", f"/users?name={cloud.login(ADMIN)['username']}&domain_id={DOMAIN}")["users"][0]["id"]
    role = next(one["id"] for one in identity.ask("GET", "/roles")["roles"] if one["name"] == "admin")
    identity.ask("PUT", f"/projects/{made}/users/{user}/roles/{role}")
    return name


def write_clouds(cloud: Cloud, file: Path, project: str | None = None) -> None:
    """A clouds.yaml with the names that openstacksdk's, openstackclient's and novaclient's tests have in them.
    ``project``: in which novaclient's are the administrator."""
    user, admin = cloud.login(USER), cloud.login(ADMIN)
    both = {"region_name": cloud.region, "identity_api_version": "3", "interface": "public"}
    domains = {"user_domain_id": DOMAIN, "project_domain_id": DOMAIN}
    plain = {key: admin[key] for key in ("auth_url", "username", "password")}
    owner = {**{key: user[key] for key in ("auth_url", "username", "password", "project_name")}, **domains}
    operator = {**plain, "project_name": admin["project_name"], **domains}
    entries: dict[str, Any] = {
        "devstack": {"auth": owner, **both},
        "devstack-alt": {"auth": {**owner, "username": ALT, "project_name": ALT}, **both},
        "devstack-admin": {"auth": operator, **both},
        "functional_admin": {"auth": {**operator, "project_name": project or operator["project_name"]}, **both,
                             "cacert": None, "cert": None},
        "devstack-system-admin": {"auth": {**plain, "user_domain_id": DOMAIN, "system_scope": "all"}, **both},
    }
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.touch(0o600)
    file.write_text(yaml.safe_dump({"clouds": entries}))
