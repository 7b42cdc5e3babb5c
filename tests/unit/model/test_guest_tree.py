"""Every path and version of contract/metadata.yaml, for the service and for the config drive."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path

import msgspec
import pytest

from nova.model.guest import guest_tree
from nova.model.guest.guest_tree import TreeOptions, VendorData
from nova.model.guest.guests import GuestFacts
from nova.model.network.networks import FixedAddress, Interface

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CONTRACT = Path(__file__).resolve().parents[4] / "shared" / "contract" / "metadata.yaml"
TODAY = datetime.date(2026, 1, 1)
UUID = "6f70656e-7374-4163-8b00-000000000001"
SEED = base64.b64encode(bytes(512)).decode()

CARD = Interface(id="vif-1", mac="fa:16:3e:00:00:01", network_id="net-1", label="private", bridge="br100",
                 addresses=(FixedAddress(address="fd00::5", version=6), FixedAddress(address="10.0.0.5")),
                 floating_addresses=(FixedAddress(address="203.0.113.7"),), cidr="10.0.0.0/24", gateway="10.0.0.1",
                 dhcp_server="10.0.0.1", dns=("8.8.4.4",), mtu=1450, tag="front", device="tap1")
FACTS = GuestFacts(uuid=UUID, id=26, name="Web 1", hostname="web-1", project_id="p1", reservation_id="r-12345678",
                   launch_index=2, availability_zone="nova", metadata={"role": "web"}, key_name="k",
                   public_key="ssh-ed25519 AAAA me", user_data=base64.b64encode(b"#!/bin/sh\nid\n").decode(),
                   flavor_name="m1.tiny", image_id="70a599e0-31e7-49b7-b260-868f441e862b",
                   kernel_id="aaaaaaaa-31e7-49b7-b260-868f441e862b", ramdisk_id="bbbbbbbb-31e7-49b7-b260-868f441e862b",
                   root_device_name="/dev/vda", interfaces=(CARD,), security_groups=("default", "web"),
                   files={"/etc/motd": base64.b64encode(b"hello").decode()}, ephemeral_count=1, swap_mb=64,
                   password="enc", admin_password="secret")
BARE = GuestFacts(uuid=UUID, id=1, name="bare", hostname="bare", project_id="p1")


def tree(facts: GuestFacts = FACTS, **options) -> dict[str, bytes]:
    return guest_tree.tree(facts, TreeOptions(**options), VendorData(static={"cloud": "ours"}, dynamic={"t": {"a": 1}}),
                           random_bytes=bytes)


def drive(facts: GuestFacts = FACTS, **options) -> dict[str, bytes]:
    return guest_tree.config_drive_files(facts, TreeOptions(**options), random_bytes=bytes)


def meta(version: str = "latest", facts: GuestFacts = FACTS) -> dict:
    return json.loads(tree(facts)[f"openstack/{version}/meta_data.json"])


def names(path: str, facts: GuestFacts = FACTS, today: datetime.date = TODAY) -> list[str] | None:
    text = guest_tree.listing(tree(facts), path, today)
    return None if text is None else text.decode().split("\n")


def test_tree_of_a_guest_with_everything_is_the_golden_one():
    """Paths, and contents up to the seed; written anew with NOVA_WRITE_GOLDEN=1 after a wanted change."""
    import os

    found = {path: content.decode().replace(SEED, "SEED") for path, content in sorted(tree().items())}
    golden = GOLDEN / "guest_tree.json"
    if os.environ.get("NOVA_WRITE_GOLDEN"):
        golden.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(golden.read_text())


def test_meta_data_has_each_field_from_its_version_on():
    first = {"uuid", "meta", "files", "public_keys", "keys", "hostname", "name", "launch_index", "availability_zone"}
    assert set(meta("2012-08-10")) == first
    assert set(meta("2013-04-04")) == first | {"random_seed"}
    assert set(meta("2015-10-15")) == first | {"random_seed", "project_id"}
    assert set(meta("2016-06-30")) == first | {"random_seed", "project_id", "devices"}
    assert set(meta("2020-10-14")) == set(meta()) == first | {"random_seed", "project_id", "devices", "dedicated_cpus"}


def test_meta_data_says_what_the_server_is():
    found = meta()
    assert (found["uuid"], found["hostname"], found["name"]) == (UUID, "web-1.novalocal", "Web 1")
    assert found["public_keys"] == {"k": "ssh-ed25519 AAAA me"}
    assert found["keys"] == [{"name": "k", "type": "ssh", "data": "ssh-ed25519 AAAA me"}]
    assert found["meta"] == {"role": "web"} and found["launch_index"] == 2
    assert len(base64.b64decode(found["random_seed"])) == 512
    assert found["files"] == [{"path": "/etc/motd", "content_path": "/content/0000"}]
    assert tree()["openstack/content/0000"] == b"hello"


def test_meta_data_of_a_bare_server_leaves_out_what_it_has_not():
    assert set(meta("2012-08-10", BARE)) == {"uuid", "hostname", "name", "launch_index", "availability_zone"}


def test_meta_data_seed_is_fresh_for_each_tree():
    one, two = (json.loads(guest_tree.tree(BARE)["openstack/latest/meta_data.json"]) for _ in range(2))
    assert one["random_seed"] != two["random_seed"]


def test_devices_are_tagged_cards():
    assert meta("2017-02-22")["devices"] == [{"type": "nic", "bus": "none", "address": "none", "tags": ["front"],
                                              "mac": "fa:16:3e:00:00:01"}]
    assert meta("2018-08-27")["devices"][0]["vf_trusted"] is False
    plain = msgspec.structs.replace(FACTS, interfaces=(msgspec.structs.replace(CARD, tag=None),))
    assert meta(facts=plain)["devices"] == []


def test_admin_password_is_on_the_drive_alone():
    assert not any(b"secret" in content for content in tree().values())
    assert json.loads(drive()["openstack/latest/meta_data.json"])["admin_pass"] == "secret"


def test_hostname_without_a_domain_is_the_bare_name():
    assert json.loads(tree(dhcp_domain="")["openstack/latest/meta_data.json"])["hostname"] == "web-1"


@pytest.mark.parametrize(("stored", "content"), [
    (base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
    (base64.encodebytes(b"x" * 100).decode(), b"x" * 100),
    ("not base64!", b"not base64!"),
])
def test_user_data_is_the_raw_bytes(stored, content):
    facts = msgspec.structs.replace(BARE, user_data=stored)
    assert tree(facts)["openstack/latest/user_data"] == tree(facts)["latest/user-data"] == content
    assert not [path for path in tree(BARE) if "user_data" in path or "user-data" in path]


def test_vendor_data_has_static_alone_and_vendor_data2_all():
    files = tree()
    assert json.loads(files["openstack/2013-10-17/vendor_data.json"]) == {"cloud": "ours"}
    assert json.loads(files["openstack/2016-10-06/vendor_data2.json"]) == {"static": {"cloud": "ours"}, "t": {"a": 1}}
    assert "openstack/2016-06-30/vendor_data2.json" not in files
    none = guest_tree.tree(BARE, None, VendorData(static=None))
    assert json.loads(none["openstack/latest/vendor_data.json"]) == {}
    assert json.loads(none["openstack/latest/vendor_data2.json"]) == {}


def test_network_data_by_dhcp_has_the_four_fields():
    found = json.loads(tree()["openstack/latest/network_data.json"])
    assert found["links"] == [{"id": "tap1", "vif_id": "vif-1", "type": "bridge", "mtu": None,
                               "ethernet_mac_address": "fa:16:3e:00:00:01"}]
    assert found["networks"] == [
        {"id": "network0", "type": "ipv6_dhcp", "link": "tap1", "network_id": "net-1"},
        {"id": "network1", "type": "ipv4_dhcp", "link": "tap1", "network_id": "net-1"}]
    assert found["services"] == []


def test_network_data_without_dhcp_has_addresses_routes_and_servers():
    card = msgspec.structs.replace(CARD, dhcp_server=None, device=None, addresses=(FixedAddress(address="10.0.0.5"),))
    found = guest_tree.network_data([card])
    assert found["links"][0]["id"] == "interface0" and found["links"][0]["mtu"] == 1450
    dns = [{"type": "dns", "address": "8.8.4.4"}]
    assert found["networks"] == [{
        "id": "network0", "type": "ipv4", "link": "interface0", "network_id": "net-1", "ip_address": "10.0.0.5",
        "netmask": "255.255.255.0", "services": dns,
        "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"}]}]
    assert found["services"] == dns


def test_network_data_without_interfaces_is_empty():
    assert json.loads(tree(BARE)["openstack/latest/network_data.json"]) == {}


def test_listing_of_versions_leaves_out_the_future():
    assert names("openstack") == [*guest_tree.OPENSTACK_VERSIONS, "latest"]
    assert names("") == [*guest_tree.EC2_VERSIONS, "latest"]
    assert names("openstack", today=datetime.date(2016, 7, 1)) == [
        "2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "latest"]


@pytest.mark.parametrize(("version", "listed"), [
    ("2012-08-10", ["meta_data.json", "user_data"]),
    ("2013-04-04", ["meta_data.json", "user_data", "password"]),
    ("2013-10-17", ["meta_data.json", "user_data", "password", "vendor_data.json"]),
    ("2015-10-15", ["meta_data.json", "user_data", "password", "vendor_data.json", "network_data.json"]),
    ("latest", ["meta_data.json", "user_data", "password", "vendor_data.json", "network_data.json",
                "vendor_data2.json"]),
])
def test_listing_of_an_openstack_version_grows(version, listed):
    assert names(f"openstack/{version}") == listed
    assert names(f"openstack/{version}", BARE) == [name for name in listed if name != "user_data"]
    assert f"openstack/{version}/network_data.json" in tree(), "served in older versions, too"


@pytest.mark.parametrize("path", ["openstack/content", "openstack/2011-01-01", "2011-01-01", "latest/nothing", "x"])
def test_listing_of_what_is_not_there_is_none(path):
    assert names(path) is None


def test_listing_of_ec2_directories():
    assert names("2009-04-04") == ["meta-data/", "user-data"]
    assert names("latest/meta-data") == sorted([
        "ami-id", "ami-launch-index", "ami-manifest-path", "block-device-mapping/", "hostname", "instance-action",
        "instance-id", "instance-type", "kernel-id", "local-hostname", "local-ipv4", "placement/", "public-hostname",
        "public-ipv4", "public-keys/", "ramdisk-id", "reservation-id", "security-groups"])
    assert names("latest/meta-data/public-keys") == ["0=k"]
    assert names("latest/meta-data/public-keys/0") == ["openssh-key"]
    assert names("latest/meta-data/placement") == ["availability-zone"]
    assert names("latest/meta-data/block-device-mapping") == ["ami", "ephemeral0", "root", "swap"]


def test_ec2_values_are_text():
    files = {path.removeprefix("latest/meta-data/"): content.decode() for path, content in tree().items()}
    assert (files["instance-id"], files["ami-id"], files["kernel-id"]) == ("i-0000001a", "ami-70a599e0", "aki-aaaaaaaa")
    assert (files["local-ipv4"], files["public-ipv4"]) == ("10.0.0.5", "203.0.113.7")
    assert (files["ami-launch-index"], files["security-groups"]) == ("2", "default\nweb")
    assert files["public-keys/0/openssh-key"] == "ssh-ed25519 AAAA me"
    assert [files[f"block-device-mapping/{name}"] for name in ("ami", "root", "ephemeral0", "swap")] == [
        "vda", "/dev/vda", "/dev/vdb", "/dev/vdc"]
    assert (files["placement/availability-zone"], files["instance-action"]) == ("nova", "none")


def test_ec2_of_a_bare_server_has_no_keys_kernel_or_floating_address():
    files = tree(BARE)
    assert "latest/meta-data/kernel-id" not in files and "latest/meta-data/public-keys/" not in files
    assert files["latest/meta-data/public-ipv4"] == b""


def test_config_drive_has_the_layout_of_the_contract():
    files = drive()
    top = {"/".join(path.split("/")[:2]) for path in files}
    assert top == {"ec2/2009-04-04", "ec2/latest", "openstack/content",
                   *(f"openstack/{version}" for version in (*guest_tree.OPENSTACK_VERSIONS, "latest"))}
    assert not [path for path in files if path.endswith("/password")]
    assert "openstack/2013-10-17/network_data.json" not in files and "openstack/2015-10-15/network_data.json" in files
    assert files["ec2/latest/user-data"] == files["openstack/latest/user_data"] == b"#!/bin/sh\nid\n"
    ec2 = json.loads(files["ec2/latest/meta-data.json"])
    assert ec2["instance-id"] == "i-0000001a" and ec2["public-keys"] == {"0": {"openssh-key": "ssh-ed25519 AAAA me"}}
    assert "ec2/1.0/meta-data.json" in drive(skip_versions=())


@pytest.mark.skipif(not CONTRACT.exists(), reason="the shared contract is not beside this checkout")
def test_versions_files_and_fields_are_the_contracts():
    import yaml

    contract = yaml.safe_load(CONTRACT.read_text())
    assert [*guest_tree.OPENSTACK_VERSIONS, "latest"] == contract["openstack"]["versions"]
    assert [*guest_tree.EC2_VERSIONS, "latest"] == contract["ec2"]["versions"]
    assert {row["name"]: row["since"] for row in contract["openstack"]["files"]} == guest_tree.OPENSTACK_FILES
    known = {row["field"] for row in contract["openstack"]["meta_data_json"]}
    on_drive = json.loads(drive()["openstack/latest/meta_data.json"])
    assert set(on_drive) == known - {"network_config"}
    for row in contract["ec2"]["meta_data"]:
        place = row["name"].rstrip("/")
        since = contract["ec2"]["versions"].index(row["since"])
        for number, version in enumerate(contract["ec2"]["versions"]):
            start = f"{version}/meta-data/{place}"
            there = any(path == start or path.startswith(f"{start}/") for path in tree())
            assert there == (number >= since), (version, place)
    assert contract["config_drive"]["skipped_ec2_versions"]["default"] == guest_tree.SKIPPED_ON_DRIVE
