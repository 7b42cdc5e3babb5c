"""Run by ``test_helper.py`` inside a room: nova-compute's real driver as an ordinary user, on a real libvirtd, with the
helper as a process of root's beside it. The driver's own cases are run again, and hold as they do for root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nova import concurrency, errors
from nova.privileged import client, guest_files, links
from nova.privileged.about import about
from nova.privileged.qemu_img import QemuImg
from tests.contract.driver_conformance import build
from tests.machine import helped, libvirt_cases
from tests.machine.libvirt_cases import (  # noqa: F401 - cases of this file, too
    BRIDGE,
    LibvirtRig,
    TestLibvirtDriver,
    order,
    test_directory_without_a_domain_is_reported_as_having_no_state,
    test_guest_boots_shows_its_console_and_answers_the_power_button,
    test_guest_has_its_disks_tap_and_serial_number,
)

concurrency.patch("threads")  # NOVA_CONCURRENCY=eventlet runs the same cases on green threads

STATE, SOCKET = Path("/run/nova"), Path("/run/helper.sock")


def start_helper() -> subprocess.Popen[bytes]:
    conf = Path("/run/nova.conf")
    conf.write_text(f"[DEFAULT]\nstate_path = {STATE}\ninstances_path = {STATE}/instances\n"
                    "[libvirt]\nnfs_mount_point_base = /run/nova-mnt\n")
    return helped.start_helper([str(conf)], SOCKET, Path("/run/helper.log"))


@pytest.fixture(scope="session")
def rig():
    user = helped.some_user()
    STATE.mkdir()
    os.chown(STATE, user.pw_uid, user.pw_gid)
    helped.let_in_by_libvirt()
    if libvirt_cases.GUEST.exists():
        libvirt_cases.GUEST = Path(shutil.copy(libvirt_cases.GUEST, "/run"))  # for who is not root
    os.environ["LIBVIRT_DEFAULT_URI"] = "qemu:///system"
    helper = start_helper()
    helped.become_user(SOCKET)
    try:
        made = LibvirtRig(STATE)
        made.driver.connect()
        yield made
        made.driver.close()
    finally:
        client.use(None)
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        helper.terminate()
        helper.wait(20)


def test_driver_when_it_runs_then_it_is_not_root(rig):
    assert os.geteuid() != 0 and about().instances_path == str(rig.instances)
    with pytest.raises(PermissionError):
        Path("/etc/shadow").read_bytes()


def test_guest_when_it_runs_then_its_disk_is_qemus_and_the_helper_reads_its_header_alone(rig, order):  # noqa: F811
    build(rig, order)
    disk = rig.instances / order.server_uuid / "disk"
    assert disk.stat().st_uid not in (0, os.geteuid())
    with pytest.raises(PermissionError):
        disk.read_bytes()
    assert guest_files.head(disk, 4) == b"QFI\xfb"


def test_helper_when_a_link_leads_out_of_a_guests_folder_then_it_refuses(rig, order):  # noqa: F811
    build(rig, order)
    folder = rig.instances / order.server_uuid
    (folder / "etc").symlink_to("/etc")
    (folder / "shadow").symlink_to("/etc/shadow")
    for path in (folder / "etc" / "shadow", folder / "shadow", Path("/etc/shadow")):
        with pytest.raises(errors.HostRefused):
            guest_files.read_head(str(path), 16)
        with pytest.raises(errors.HostRefused):
            guest_files.give(str(path))
    with pytest.raises(errors.HostRefused):
        QemuImg().create(str(folder / "etc" / "made"), "raw", 512)
    assert not Path("/etc/made").exists() and os.stat("/etc/shadow").st_uid == 0


def test_helper_when_it_is_started_anew_then_the_next_call_finds_it(rig):
    pid = int(subprocess.run(["pgrep", "-f", "nova.cmd.privileged"], capture_output=True, text=True,
                             check=True).stdout.split()[0])
    os.setresuid(0, 0, 0)
    try:
        os.kill(pid, 9)
        SOCKET.unlink()
    finally:
        user = helped.some_user()
        os.setresuid(user.pw_uid, user.pw_uid, 0)
    with pytest.raises(errors.host.NoHelper, match="doc/install.rst"):
        about()
    os.setresuid(0, 0, 0)
    try:
        start_helper()
    finally:
        os.setresuid(user.pw_uid, user.pw_uid, 0)
    assert about().state_path == str(STATE)


def test_bridge_when_it_is_asked_for_then_the_helper_makes_it(rig):
    assert links.exists(BRIDGE)
    links.ensure_bridge("br-helped")
    try:
        links.ensure_address("br-helped", links.Address("192.0.2.1", 24, "192.0.2.255"))
        assert [one.address for one in links.addresses("br-helped")] == ["192.0.2.1"]
    finally:
        links.delete("br-helped")
    assert not links.exists("br-helped")
    with pytest.raises(errors.HostRefused):
        links.delete("lo")


