"""A guest that boots reads what hosts write: the drive in both formats, to the byte; and anew after a hard reboot."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nova.model.guest.guest_tree import config_drive_files
from nova.model.guest.guests import GuestFacts
from nova.model.network.networks import FixedAddress, Interface, Subnet
from nova.privileged.runner import SystemRunner
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from tests.machine import cases
from tests.machine.guest_machine import Machine, overlay
from tests.machine.test_guest_image import CONDITIONS, make_key, public

pytestmark = [pytest.mark.in_turn(6, 10), *CONDITIONS]

if TYPE_CHECKING:
    from tests.machine.live import Live
    from tests.machine.stack import Sandbox

UUID = "7c3a5f0e-0b1d-4c5e-9d0a-2f8b6f1e4a21"
DRIVES = {"iso9660": "if=ide,media=cdrom,format=raw", "vfat": "if=virtio,format=raw"}
READ = ("mkdir -p /mnt/c && mount -o ro $(findfs LABEL=config-2) /mnt/c && cd /mnt/c && "
        "find . -type f -exec sha256sum {} +")


def facts(key: Path) -> GuestFacts:
    card = Interface(id="v", mac="fa:16:3e:00:00:01", network_id="n", label="l", injected=True, tag="front",
                     addresses=(FixedAddress(address="10.0.0.5"),), subnets=(Subnet(cidr="10.0.0.0/24"),))
    return GuestFacts(uuid=UUID, id=26, name="Vm É", hostname="vm1", project_id="p", key_name="k",
                      public_key=public(key), interfaces=(card,), files={"/etc/motd": "AAH/"},
                      user_data=base64.b64encode(b"#!/bin/sh\necho ran > /root/told\n").decode())


@pytest.mark.parametrize("format_", DRIVES)
def test_boot_when_the_drive_is_one_that_hosts_write_then_the_guest_reads_every_byte(
        format_: str, tmp_path: Path) -> None:
    cases.build_guest()
    cache = Path(os.environ.get("NOVA_TEST_CACHE") or Path.home() / ".cache/nova")
    key = make_key(tmp_path / "key")
    files, drive = config_drive_files(facts(key)), tmp_path / "disk.config"
    ConfigDrive(format_, 64, SystemRunner(60.0)).write(drive, files)
    arguments = ["-drive", f"file={drive},{DRIVES[format_]}"]
    with Machine(tmp_path, overlay(cache / "tiny.qcow2", tmp_path, "1G"), arguments) as machine:
        reported = machine.facts(30)
        assert {name: reported[name] for name in ("source", "uuid", "hostname", "userdata")} == {
            "source": "config-drive", "uuid": UUID, "hostname": "vm1", "userdata": "ran"}
        assert machine.ssh(key, "cat /root/told").stdout == "ran\n"
        listed = machine.ssh(key, READ).stdout
        found = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  \./(.+)$", listed, re.MULTILINE)}
    assert found == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert json.loads(files["openstack/latest/meta_data.json"])["network_config"]["content_path"] == "/content/0001"


# --- on a host


def on_drive(sandbox: Sandbox, address: str) -> dict[str, Any]:
    """meta_data.json on the guest's drive, as the guest reads it now."""
    script = ("mkdir -p /mnt/c && mount -o ro $(findfs LABEL=config-2) /mnt/c && "
              "cat /mnt/c/openstack/latest/meta_data.json; umount /mnt/c")
    return json.loads(sandbox.ssh(address, script))


def from_service(sandbox: Sandbox, address: str, path: str) -> str:
    return sandbox.ssh(address, f"wget -q -O - http://169.254.169.254/{path}")


def test_drive_and_service_when_the_server_lives_then_each_tells_what_it_should(
        sandbox: Sandbox, demo: Live) -> None:
    """The drive what was true at its last definition, the service what is true now; both where a tagged card is."""
    listed = sandbox.run("nova-manage", "network", "list")
    network = re.search(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", listed)
    assert network is not None, listed
    uuid = demo.create("cd", config_drive=True, key_name="demo", metadata={"colour": "blue"},
                       networks=[{"uuid": network[0], "tag": "front"}])["id"]
    try:
        server = demo.settled(uuid, "ACTIVE")
        assert sandbox.ready(demo, uuid)["source"] == "config-drive"
        address = server["addresses"]["private"][0]["addr"]
        first = on_drive(sandbox, address)
        assert first["meta"] == {"colour": "blue"} and "admin_pass" in first
        card, = first["devices"]
        assert card["tags"] == ["front"] and card["bus"] == "pci"
        assert sandbox.ssh(address, f"cat /sys/bus/pci/devices/{card['address']}/virtio*/net/*/address").strip() == \
            card["mac"]
        reported = json.loads(from_service(sandbox, address, "openstack/latest/meta_data.json"))
        assert reported["devices"] == [card] and "admin_pass" not in reported

        sandbox.run("openstack", "server", "set", "--property", "colour=red", "cd")
        assert on_drive(sandbox, address)["meta"] == {"colour": "blue"}, "as it was when the guest was defined"
        sandbox.run("openstack", "server", "reboot", "--hard", "--wait", "cd")
        sandbox.ready(demo, uuid)
        after = on_drive(sandbox, address)
        assert after["meta"] == {"colour": "red"} and "admin_pass" not in after and after["devices"] == [card]
    finally:
        sandbox.remove(demo, uuid)
