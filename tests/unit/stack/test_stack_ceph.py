"""A stack with Ceph: what is installed and started, who may do what, who has which keys, what hosts are told."""

from __future__ import annotations

import base64
import configparser
import struct
from pathlib import Path

import pytest

from stacklib import ceph, cinder, cli, credentials, glance, libvirt, novaconf, ports, up
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.packages import PACKAGES
from stacklib.secrets import Secrets
from stacklib.spec import STORES
from stacklib.stack import Stack


@pytest.fixture
def layout(make_layout):
    return make_layout(sandbox=True, hosts=2, volumes="ceph")


@pytest.fixture
def stack(short_path, secrets, monkeypatch):
    """Debian's user `ceph` may not be there."""
    monkeypatch.setattr(ceph, "OWNER", None)
    monkeypatch.setattr(ceph, "SERVICE_USER", None)
    return Stack(Layout(short_path, Choices(sandbox=True, hosts=2, volumes="ceph")), secrets, None)


def parsed(text: str) -> configparser.ConfigParser:
    conf = configparser.ConfigParser(interpolation=None)
    conf.read_string(text)
    return conf


def test_up_when_ceph_is_asked_for_then_its_packages_are_installed_and_else_not(layout, make_layout):
    assert cli.choices(cli.parser().parse_args(["up", "--sandbox", "--volumes", "ceph"])).volumes == "ceph"
    assert "ceph" in up.parts_of(layout) and {"ceph-osd", "qemu-block-extra"} < set(PACKAGES["ceph"])
    for other in ("", "nfs"):
        assert "ceph" not in up.parts_of(make_layout(sandbox=True, volumes=other))


def test_install_when_nothing_is_said_then_ceph_is_left_out_and_it_may_be_said():
    assert "ceph" not in cli.parser().parse_args(["install"]).parts
    assert cli.parser().parse_args(["install", "--parts", "ceph"]).parts == ("ceph",)


def test_up_when_it_is_no_sandbox_then_ceph_is_on_the_machine_itself_at_its_loopback_alone(make_layout, secrets):
    alone = make_layout(volumes="ceph")
    assert cli.choices(cli.parser().parse_args(["up", "--volumes", "ceph"])) == alone.choices
    assert {"ceph"} < set(up.parts_of(alone)) and {"ceph", "ceph-v1"} <= ports.wanted(alone)
    assert "public_addr = 127.0.0.1\n" in ceph.settings(alone, secrets, alone.etc)
    [host] = alone.computes
    told = novaconf.compute(alone, secrets, host)["libvirt"]
    assert told["images_type"] == "rbd" and told["images_rbd_ceph_conf"] == str(ceph.conf_file(alone, host.name))


def test_clean_when_ceph_was_on_the_machine_itself_then_its_keys_go_from_libvirt(make_layout, secrets, monkeypatch):
    ran: list[list[str]] = []
    monkeypatch.setattr(libvirt.shutil, "which", lambda name: name)
    monkeypatch.setattr(libvirt.subprocess, "run", lambda argv, **_: ran.append(argv))
    for choices in ({"volumes": "ceph"}, {"volumes": "nfs"}, {}):
        libvirt.forget_secrets(Stack(make_layout(**choices), secrets, None))
    assert [argv[-1] for argv in ran] == [secrets.uuid("ceph-secret-nova"), secrets.uuid("ceph-secret-cinder")]
    assert cinder.back_end(make_layout(volumes="ceph"), secrets)["rbd_secret_uuid"] == ran[1][-1]


def test_daemons_then_they_run_in_the_foreground_at_the_controllers_address_alone(layout, secrets):
    stack = Stack(layout, secrets, None)
    made = [ceph._daemon(stack, name) for name in (ceph.MON, ceph.MGR, ceph.OSD)]
    assert all("-f" in one.argv and one.room == "controller" and one.user == "ceph" for one in made)
    assert [one.name for one in made if one.tier == STORES] == [ceph.MON, ceph.OSD]
    conf = parsed(ceph.settings(layout, secrets, layout.etc))
    assert conf["global"]["public_addr"] == conf["global"]["cluster_addr"] == layout.address
    assert conf["global"]["mon_host"] == f"[v2:{layout.address}:3300,v1:{layout.address}:6789]"
    assert all(conf[part]["log_to_file"] == "false" for part in ("mon", "mgr", "osd"))


def test_users_then_each_has_the_pools_that_it_needs_and_no_more():
    may = {name: ceph.CAPS[name]["osd"] for name in (ceph.CINDER, ceph.GLANCE, ceph.NOVA)}
    read = "profile rbd-read-only pool=images, profile rbd-read-only pool=snapshots"
    assert may == {
        ceph.CINDER: f"profile rbd pool=volumes, {read}",
        ceph.GLANCE: "profile rbd pool=images, profile rbd pool=snapshots",
        ceph.NOVA: "profile rbd pool=vms, profile rbd pool=snapshots, profile rbd-read-only pool=images"}
    assert all(ceph.CAPS[name]["mon"] == "profile rbd" for name in may)


def test_keys_then_hosts_have_those_of_guests_and_volumes_and_never_the_administrators(stack):
    ceph.write_files(stack)
    found = {path.parent.name: sorted(one.name for one in path.parent.glob("*.keyring"))
             for path in stack.layout.etc.glob("ceph*/ceph.conf")}
    assert found == {"ceph": ["ceph.client.admin.keyring", "ceph.client.cinder.keyring"],
                     "ceph-glance": ["ceph.client.glance.keyring"],
                     **{f"ceph-{host}": ["ceph.client.cinder.keyring", "ceph.client.nova.keyring"]
                        for host in ("host1", "host2")}}
    keyrings = [*stack.layout.state.rglob("*keyring")]
    assert len(keyrings) == 9 and {path.stat().st_mode & 0o777 for path in keyrings} == {0o600}


def test_key_then_it_is_what_cephx_reads_and_the_same_when_it_is_asked_for_again(secrets):
    kind, _seconds, _rest, length = struct.unpack("<HIIH", base64.b64decode(secrets.ceph_key("client.nova"))[:12])
    assert (kind, length) == (1, 16) and len(base64.b64decode(secrets.ceph_key("client.nova"))) == 28
    assert secrets.ceph_key("client.nova") == secrets.ceph_key("client.nova") != secrets.ceph_key("client.cinder")


def test_cinder_conf_when_ceph_is_behind_it_then_it_has_the_pool_and_no_key(layout, secrets):
    conf = parsed(text := cinder.settings(layout, secrets))
    assert conf["DEFAULT"]["enabled_backends"] == conf["DEFAULT"]["default_volume_type"] == "ceph"
    assert conf["ceph"]["rbd_pool"] == "volumes" and conf["ceph"]["rbd_user"] == "cinder"
    assert not [name for name in ceph.CAPS if secrets.ceph_key(name) in text]
    assert cinder.binds(Stack(layout, secrets, None), "host1") == ()


def test_glance_when_there_is_ceph_then_new_images_go_there_and_locations_are_not_told_to_users(layout, secrets):
    conf = parsed(text := glance.settings(layout, secrets))
    assert conf["glance_store"]["default_backend"] == "ceph" and conf["DEFAULT"]["enabled_backends"] == (
        "ceph:rbd, snapshots:rbd, local:file")
    assert (conf["snapshots"]["rbd_store_pool"], conf["snapshots"]["rbd_store_user"]) == ("snapshots", "glance")
    assert conf["oslo_concurrency"]["lock_path"].startswith(str(layout.data))
    assert (conf["ceph"]["rbd_store_pool"], conf["ceph"]["rbd_store_user"]) == ("images", "glance")
    assert conf["ceph"]["rbd_store_ceph_conf"] == f"{layout.etc}/ceph-glance/ceph.conf"
    assert "show_multiple_locations" not in text and "show_image_direct_url" not in text
    assert not [name for name in ceph.CAPS if secrets.ceph_key(name) in text]


def test_glance_when_there_is_no_ceph_then_images_are_files(make_layout, secrets):
    conf = parsed(glance.settings(make_layout(sandbox=True, volumes="nfs"), secrets))
    assert conf["DEFAULT"]["enabled_backends"] == "local:file" and "ceph" not in conf


def test_hosts_then_their_guests_disks_are_in_the_pool_by_one_secret(layout, secrets):
    told = [novaconf.compute(layout, secrets, host)["libvirt"] for host in layout.computes]
    assert {one["images_type"] for one in told} == {"rbd"} and {one["images_rbd_pool"] for one in told} == {"vms"}
    assert len({one["rbd_secret_uuid"] for one in told}) == 1
    assert [one["images_rbd_ceph_conf"] for one in told] == [f"{layout.etc}/ceph-{host}/ceph.conf"
                                                            for host in ("host1", "host2")]
    assert told[0]["rbd_secret_uuid"] != cinder.back_end(layout, secrets)["rbd_secret_uuid"]


@pytest.mark.parametrize("choices", [{"volumes": "nfs"}, {}, {"volumes": "ceph", "driver": "fake"}])
def test_hosts_when_there_is_no_ceph_or_no_guest_then_they_are_told_nothing_of_it(make_layout, secrets, choices):
    layout = make_layout(sandbox=True, **choices)
    assert "images_type" not in novaconf.compute(layout, secrets, layout.computes[0]).get("libvirt", {})


def test_commands_at_the_controller_and_at_hosts_then_ceph_finds_its_configuration(layout, secrets, make_layout):
    for host, name in (("", "ceph"), ("host1", "ceph-host1")):
        found = credentials.environment(layout, secrets, "admin", host)
        assert found["CEPH_CONF"] == f"{layout.etc}/{name}/ceph.conf"
    assert "CEPH_CONF" not in credentials.environment(make_layout(sandbox=True), secrets, "admin")


def test_ports_when_there_is_no_ceph_then_its_ports_are_not_asked_for(layout, make_layout):
    assert {"ceph", "ceph-v1"} <= ports.wanted(layout)
    assert not {"ceph", "ceph-v1"} & ports.wanted(make_layout(sandbox=True, volumes="nfs"))


@pytest.mark.parametrize("venv", ["cinder", "nextdoor"])
def test_modules_when_an_environment_has_no_ceph_then_debians_are_linked_once(tmp_path, monkeypatch, venv):
    debian, packages = tmp_path / "debian", tmp_path / venv / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    debian.mkdir()
    for name in ("rados", "rbd", "rgw"):
        (debian / f"{name}.cpython-311-x86_64-linux-gnu.so").touch()
    monkeypatch.setattr(ceph, "MODULES", debian)
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path))
    for _ in range(2):
        ceph.link_modules(Layout(Path("/srv/s"), Choices(sandbox=True)))
    assert sorted(path.name.partition(".")[0] for path in packages.iterdir()) == ["rados", "rbd"]


def test_monitor_when_making_it_was_cut_off_then_it_is_made_anew_and_no_key_is_left_behind(stack, monkeypatch):
    ran: list[list[str]] = []

    def command(self: Stack, name: str, argv: list[str], **_: object) -> str:
        ran.append(argv)
        if len(ran) == 2:
            raise StackError("killed")
        return ""
    monkeypatch.setattr(Stack, "command", command)
    with pytest.raises(StackError):
        ceph._make_monitor(stack)
    for _ in range(2):
        ceph._make_monitor(stack)
    assert [argv[0] for argv in ran] == ["monmaptool", "ceph-mon", "monmaptool", "ceph-mon"]
    assert not (stack.layout.data / "ceph" / "first.keyring").exists()
    keys = [Secrets.ceph_key(stack.secrets, name) for name in ceph.CAPS]
    assert not [key for key in keys for argv in ran if key in " ".join(argv)]
