"""Each row of the shared contract's metadata.yaml, against the service as a guest sees it and the drive it is given."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import webob
import yaml
from oslo_config import cfg

from nova.clients import vendordata
from nova.conf import api as api_options
from nova.conf import base as base_options
from nova.conf import guests as guest_options
from nova.conf import neutron as neutron_options
from nova.errors import Conflict, Invalid, NotFound
from nova.metadata.app import MetadataApp
from nova.metadata.options import MetadataOptions
from nova.model.guest import guest_tree
from nova.model.guest.guest_tree import TreeOptions, VendorData
from nova.model.guest.guests import DevicePlace, GuestFacts, GuestPassword, GuestQuery
from nova.model.network.networks import FixedAddress, GuestRoute, Interface, Subnet
from nova.privileged import config_drives as drives
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from tests.fakes.contract import ContractFake

CONTRACT = Path(__file__).resolve().parents[3] / "shared" / "contract" / "metadata.yaml"
pytestmark = pytest.mark.skipif(not CONTRACT.exists(), reason="the shared contract is not beside this checkout")
ROWS: dict[str, Any] = yaml.safe_load(CONTRACT.read_text()) if CONTRACT.exists() else {}

UUID, ADDRESS, SECRET = "6f70656e-7374-4163-8b00-000000000001", "10.0.0.5", "s3cret"
SUBNETS = (Subnet(cidr="10.0.0.0/24", gateway="10.0.0.1", dns=("8.8.4.4",), dhcp=False,
                  routes=(GuestRoute(cidr="10.9.0.0/16", gateway="10.0.0.9"),)),
           Subnet(cidr="10.1.0.0/24", dhcp=True),
           Subnet(cidr="fd00::/64", version=6, dhcp=True),
           Subnet(cidr="fd01::/64", version=6, dhcp=False),
           *(Subnet(cidr=f"fd0{number}::/64", version=6, dhcp=True, ipv6_mode=mode)
             for number, mode in enumerate(("slaac", "dhcpv6-stateful", "dhcpv6-stateless"), start=2)))
ADDRESSES = (FixedAddress(address=ADDRESS), FixedAddress(address="10.1.0.5"),
             *(FixedAddress(address=f"fd0{number}::5", version=6) for number in range(5)))
CARD = Interface(id="v", mac="fa:16:3e:00:00:01", network_id="n", label="l", tag="front", device="tap1", mtu=1450,
                 vnic_type="direct", details={"vlan": 7}, profile={"trusted": True}, addresses=ADDRESSES,
                 subnets=SUBNETS, floating_addresses=(FixedAddress(address="203.0.113.7"),))
INJECTED = Interface(id="w", mac="fa:16:3e:00:00:02", network_id="m", label="m", cidr="10.2.0.0/24", injected=True,
                     addresses=(FixedAddress(address="10.2.0.5"),))
FULL = GuestFacts(
    uuid=UUID, id=26, name="Web 1", hostname="web", project_id="p1", reservation_id="r-12345678", launch_index=2,
    availability_zone="nova", metadata={"role": "web"}, key_name="k", public_key="ssh-ed25519 AAAA me",
    user_data=base64.b64encode(b"\x00#!/bin/sh\n").decode(), flavor_name="m1.tiny",
    image_id="70a599e0-31e7-49b7-b260-868f441e862b", kernel_id="aaaaaaaa-31e7-49b7-b260-868f441e862b",
    ramdisk_id="bbbbbbbb-31e7-49b7-b260-868f441e862b", interfaces=(CARD, INJECTED),
    security_groups=("default", "web"), files={"/etc/motd": "aGVsbG8="}, ephemeral_count=1, swap_mb=64,
    dedicated_cpus=(0, 2), places={CARD.mac: DevicePlace(bus="pci", address="0000:00:03.0")}, admin_password="adm1n")
BARE = GuestFacts(uuid=UUID, id=1, name="bare", hostname="bare", project_id="p1")


class Conductor(ContractFake, contract=ConductorHostRPC):
    def __init__(self, facts: GuestFacts) -> None:
        super().__init__()
        self.facts, self.password = facts, ""

    def guest_facts(self, host: str, query: GuestQuery) -> GuestFacts:
        if query.provider_id is not None and query.address != ADDRESS:
            raise Invalid("not exactly one port")
        if query.provider_id is None and query.address != ADDRESS and query.server_uuid != UUID:
            raise NotFound()
        return msgspec.structs.replace(self.facts, password=self.password)

    def set_guest_password(self, host: str, password: GuestPassword) -> None:
        if self.password:
            raise Conflict("a password is stored already")
        self.password = password.password


class Guest:
    """Asks as a guest does."""

    def __init__(self, facts: GuestFacts = FULL, today: str = "2026-01-01", **options: Any) -> None:
        day = datetime.date.fromisoformat(today)
        self.app = MetadataApp(Conductor(facts).client("meta"), "meta", MetadataOptions(**options), today=lambda: day)

    def ask(self, path: str, method: str = "GET", address: str = ADDRESS, body: bytes = b"",
            headers: dict[str, str] | None = None) -> webob.Response:
        request = webob.Request.blank(path, method=method, remote_addr=address, headers=headers or {})
        if body:
            request.body = body
        return request.get_response(self.app)

    def names(self, path: str) -> list[str]:
        reply = self.ask(path)
        assert reply.status_int == 200 and reply.content_type == ROWS["service"]["content_types"]["text"], path
        assert not reply.text.endswith("\n")
        return reply.text.split("\n")


def since(versions: list[str], first: str) -> list[str]:
    return versions[versions.index(first):]


def sign(text: str) -> str:
    return hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()


# --- service, who_is_asking

def test_service_when_asked_for_its_root_then_ec2s_versions_and_openstacks_below_theirs() -> None:
    assert ROWS["service"]["root"]["path"] == "/" and Guest().names("/") == ROWS["ec2"]["versions"]
    assert Guest().names("/openstack") == ROWS["openstack"]["versions"]
    assert Guest(today="2016-06-30").names("/openstack/") == [*ROWS["openstack"]["versions"][:5], "latest"]
    for path in ("/nonsense", "/openstack/1999-01-01", "/2011-01-01/meta-data", "/openstack/content"):
        assert Guest().ask(path).status_int == ROWS["service"]["unknown_path_or_version"], path
    assert Guest().ask("/2009-04-04/meta-data/instance-id").body == b"i-0000001a"
    known = cfg.ConfigOpts()
    known.register_opts(api_options.OPTS, group="api")
    known([], default_config_files=[])
    assert known.api.metadata_cache_expiration == ROWS["service"]["cache_seconds"]["default"] == 15


def test_who_is_asking_when_there_is_no_proxy_then_the_address_says() -> None:
    assert Guest().ask("/latest").status_int == 200 and Guest().ask("/latest", address="10.9.9.9").status_int == 404


@pytest.mark.parametrize("number", [1, 2])
def test_who_is_asking_when_a_proxy_signs_then_each_header_counts(number) -> None:
    row = ROWS["who_is_asking"][number]
    values = {"X-Instance-ID": UUID, "X-Tenant-ID": "p1", "X-Instance-ID-Signature": sign(UUID),
              "X-Metadata-Provider": "lb", "X-Metadata-Provider-Signature": sign("lb"), "X-Forwarded-For": ADDRESS}
    good = {name: values[name] for name in row["headers"]}
    guest = Guest(behind_proxy=True, secret=SECRET)

    def status(**changes: str) -> int:
        return guest.ask("/latest", address="127.0.0.1", headers=good | {
            name.replace("_", "-"): value for name, value in changes.items()}).status_int
    assert status() == 200
    for missing in row["headers"]:
        left = {name: value for name, value in good.items() if name != missing}
        assert guest.ask("/latest", headers=left).status_int == row["errors"]["missing_header"], missing
    signature = next(name for name in row["headers"] if name.endswith("Signature"))
    assert status(**{signature: sign("another")}) == row["errors"]["bad_signature"] == 403
    if number == 1:
        other = {"X-Instance-ID": "other", signature: sign("other")}
        assert status(**other) == row["errors"]["unknown_instance"]
        assert status(**{"X-Tenant-ID": "p2"}) == row["errors"]["project_differs"]
    else:
        assert status(**{"X-Forwarded-For": "10.0.0.6"}) == row["errors"]["not_exactly_one_port"]


# --- openstack

@pytest.mark.parametrize("number", range(6))
def test_file_when_asked_for_at_each_version_then_as_its_row_says(number) -> None:
    row, versions = ROWS["openstack"]["files"][number], ROWS["openstack"]["versions"]
    for version in versions:
        path, later = f"/openstack/{version}/{row['name']}", version in since(versions, row["since"])
        reply = Guest().ask(path)
        assert reply.status_int == (200 if later or "in_older_versions" in row else 404), path
        assert (row["name"] in Guest().names(f"/openstack/{version}")) == later
        if reply.status_int == 200:
            assert reply.content_type == ("application/json" if row["type"] == "json" else "text/plain")
        if "absent" in row:
            assert Guest(BARE).ask(path).status_int == 404
            assert row["name"] not in Guest(BARE).names(f"/openstack/{version}")
    assert len(ROWS["openstack"]["files"]) == 6


def test_password_when_used_as_its_row_says_then_the_codes_are_those() -> None:
    path, guest = "/openstack/latest/password", Guest()
    assert (guest.ask(path).status_int, guest.ask(path).body) == (200, b"")
    assert guest.ask(path, "PUT", body=b"x").status_int == guest.ask(path, "DELETE").status_int == 400
    assert guest.ask(path, "POST", body=b"x" * 1021).status_int == 400
    assert guest.ask(path, "POST", body=b"x" * 1020).status_int == 200
    assert guest.ask(path).body == b"x" * 1020 and guest.ask(path, "POST", body=b"y").status_int == 409


def meta(version: str, facts: GuestFacts = FULL) -> dict[str, Any]:
    return Guest(facts).ask(f"/openstack/{version}/meta_data.json").json


@pytest.mark.parametrize("number", range(15))
def test_field_of_meta_data_when_its_version_has_come_then_it_is_there(number) -> None:
    row, versions = ROWS["openstack"]["meta_data_json"][number], ROWS["openstack"]["versions"]
    for version in versions:
        later = version in since(versions, row.get("since", versions[0]))
        assert (row["field"] in meta(version)) == (later and row["field"] != "admin_pass"), version
        assert (row["field"] in meta(version, BARE)) == (later and "when" not in row), version
    drive = json.loads(guest_tree.config_drive_files(FULL)["openstack/latest/meta_data.json"])
    assert row["field"] in drive
    assert set(drive) == {one["field"] for one in ROWS["openstack"]["meta_data_json"]}
    assert len(ROWS["openstack"]["meta_data_json"]) == 15


def test_values_of_meta_data_are_as_the_rows_say() -> None:
    found = meta("latest")
    assert found["hostname"] == "web.novalocal" and found["name"] == "Web 1"
    assert len(base64.b64decode(found["random_seed"])) == 512 and found["dedicated_cpus"] == [0, 2]
    assert found["keys"] == [{"name": "k", "type": "ssh", "data": "ssh-ed25519 AAAA me"}]
    for reported in (*found["files"], found["network_config"]):
        assert re.fullmatch(r"/content/\d{4}", reported["content_path"])
        assert Guest().ask(f"/openstack{reported['content_path']}").status_int == 200
    assert Guest().ask("/openstack/content").status_int == ROWS["openstack"]["content"]["listing"]


def test_devices_are_those_of_the_rows() -> None:
    rows = ROWS["openstack"]["devices"]
    for version, fields in (("2016-06-30", {"mac"}), ("2017-02-22", {"mac", "vlan"}),
                            ("2018-08-27", {"mac", "vlan", "vf_trusted"})):
        card, = meta(version)["devices"]
        assert set(card) == {*rows["common"], *fields}
        assert card["type"] in rows["types"] and card["bus"] in rows["buses"]


def test_network_data_is_as_the_rows_say() -> None:
    rows = ROWS["openstack"]["network_data_json"]
    found = Guest().ask("/openstack/latest/network_data.json").json
    assert [set(link) for link in found["links"]] == [set(rows["links"]["fields"])] * 2
    assert [link["id"] for link in found["links"]] == ["tap1", "interface1"]
    assert [entry["id"] for entry in found["networks"]] == [f"network{n}" for n in range(len(found["networks"]))]
    kinds = [entry["type"] for entry in found["networks"]]
    assert set(kinds) == set(rows["networks"]["type"])
    for entry in found["networks"]:
        by_dhcp = entry["type"].endswith("_dhcp")
        assert set(entry) == set(rows["networks"]["dhcp_entries_have_only" if by_dhcp else "fields"]), entry
        assert all(set(route) == set(rows["networks"]["routes"]) for route in entry.get("routes", ()))
    assert [set(one) for one in found["services"]] == [set(rows["services"]["fields"])]
    assert found["links"][0]["mtu"] is None
    assert Guest(BARE).ask("/openstack/latest/network_data.json").json == {}


# --- vendordata

def test_vendordata_options_are_the_rows_options() -> None:
    rows = ROWS["vendordata"]
    known = {option.name: option for option in api_options.OPTS}

    def named(row: dict[str, Any]) -> Any:
        return known[row["option"].removeprefix("[api]")]
    assert named(rows["providers_option"]).default == rows["providers_option"]["default"]
    assert rows["providers_option"]["allowed"] == [vendordata.STATIC, vendordata.DYNAMIC]
    assert named(rows["static"]) and named(rows["dynamic"]["targets"])
    assert rows["dynamic"]["request"]["body"] == list(vendordata.question(BARE))
    assert rows["dynamic"]["request"]["headers"]["User-Agent"] == vendordata.USER_AGENT
    assert rows["dynamic"]["timeouts"] == {"connect": known["vendordata_dynamic_connect_timeout"].default,
                                           "read": known["vendordata_dynamic_read_timeout"].default}
    assert not known["vendordata_dynamic_failure_fatal"].default
    assert [target.name for target in vendordata.parse_targets(["a@http://x", "bad", "a@http://y", "b@http://z"])] == \
        ["a", "b"]


def test_vendor_data_files_are_as_the_rows_say() -> None:
    vendor = VendorData(static={"cloud": "ours"}, dynamic={"target": {"a": 1}})
    files = guest_tree.tree(FULL, TreeOptions(), vendor)
    assert json.loads(files["openstack/latest/vendor_data.json"]) == {"cloud": "ours"}
    assert json.loads(files["openstack/latest/vendor_data2.json"]) == {"static": {"cloud": "ours"}, "target": {"a": 1}}


# --- ec2

#: Name -> a pattern of its value, for the guest that has everything.
EC2 = {
    "ami-id": "ami-[0-9a-f]{8}", "ami-launch-index": "2", "ami-manifest-path": "FIXME", "instance-id": "i-[0-9a-f]{8}",
    "hostname": "web.novalocal", "local-ipv4": "10.0.0.5", "reservation-id": "r-.{8}",
    "security-groups": "default\nweb", "public-keys/": "0=k", "local-hostname": "web.novalocal",
    "public-hostname": "web.novalocal", "public-ipv4": "203.0.113.7", "instance-type": "m1.tiny",
    "block-device-mapping/": "ami\nephemeral0\nroot\nswap", "kernel-id": "aki-[0-9a-f]{8}",
    "ramdisk-id": "ari-[0-9a-f]{8}", "placement/availability-zone": "nova", "instance-action": "none"}


@pytest.mark.parametrize("name", EC2)
def test_ec2_when_asked_for_a_name_then_from_its_version_on(name) -> None:
    row = next(one for one in ROWS["ec2"]["meta_data"] if one["name"] == name)
    for version in ROWS["ec2"]["versions"]:
        path, later = f"/{version}/meta-data/{name}", version in since(ROWS["ec2"]["versions"], row["since"])
        reply = Guest().ask(path)
        assert reply.status_int == (200 if later else 404), path
        assert not later or re.fullmatch(EC2[name], reply.text), path
        assert (name.split("/")[0] in [one.rstrip("/") for one in Guest().names(f"/{version}/meta-data/")]) == later
        assert Guest(BARE).ask(path).status_int == (200 if later and "when" not in row else 404), path
    assert {one["name"] for one in ROWS["ec2"]["meta_data"]} == set(EC2)


def test_ec2_tree_when_there_is_user_data_then_it_is_there() -> None:
    for version in ROWS["ec2"]["versions"]:
        assert Guest().names(f"/{version}/") == ["meta-data/", "user-data"]
        assert Guest().ask(f"/{version}/user-data").body == b"\x00#!/bin/sh\n"
        assert Guest(BARE).names(f"/{version}/") == ["meta-data/"]
    assert Guest().ask("/latest/meta-data/public-keys/0/openssh-key").text == "ssh-ed25519 AAAA me"


# --- config_drive

def test_config_drive_is_as_the_rows_say() -> None:
    rows = ROWS["config_drive"]
    assert rows["volume_label"] == drives.LABEL and drives.VFAT_BYTES == 64 << 20
    formats = next(option for option in guest_options.OPTS if option.name == "config_drive_format")
    assert formats.default == rows["format"]["default"] and set(formats.type.choices) == {"iso9660", "vfat"}
    skip = next(option for option in api_options.OPTS if option.name == "config_drive_skip_versions")
    assert skip.default == rows["skipped_ec2_versions"]["default"]
    assert any(option.name == "force_config_drive" for option in base_options.OPTS)


def test_config_drive_when_made_then_its_layout_is_the_contracts() -> None:
    files, versions = set(guest_tree.config_drive_files(FULL)), ROWS["openstack"]["versions"]
    expected = {f"openstack/{version}/{row['name']}" for row in ROWS["openstack"]["files"] if row["name"] != "password"
                for version in since(versions, row["since"])}
    ec2 = [version for version in ROWS["ec2"]["versions"]
           if version not in ROWS["config_drive"]["skipped_ec2_versions"]["default"].split()]
    expected |= {f"ec2/{version}/{name}" for version in ec2 for name in ("meta-data.json", "user-data")}
    assert files == expected | {"openstack/content/0000", "openstack/content/0001"}


def test_proxy_option_is_the_contracts() -> None:
    assert {"service_metadata_proxy", "metadata_proxy_shared_secret"} <= {one.name for one in neutron_options.OPTS}
