"""The guest image, built by bin/build-guest and booted for real under emulation."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.machine.guest_machine import Machine, overlay, qemu_img, write_metadata

BUILD_GUEST = Path(__file__).resolve().parents[2] / "bin/build-guest"
TOOLS = ("qemu-system-x86_64", "ssh", "ssh-keygen", "genisoimage")
MISSING = [tool for tool in TOOLS if not shutil.which(tool)]
UUID = "7c3a5f0e-0b1d-4c5e-9d0a-2f8b6f1e4a11"
OTHER_UUID = "7c3a5f0e-0b1d-4c5e-9d0a-2f8b6f1e4a12"
HOST_KEY = "dropbearkey -y -f /var/lib/nova-guest/ssh/ed25519"
READY_WITHIN = 15
OFF_WITHIN = 2
USER_DATA = "#!/bin/sh\necho run once for $(hostname) >> /root/ran\necho user data speaks\n"

CONDITIONS = [
    pytest.mark.skipif(os.geteuid() != 0, reason="building the image needs root"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
pytestmark = [pytest.mark.in_turn(5, 10), *CONDITIONS]


def build(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD_GUEST, *arguments], capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def cache() -> Path:
    return Path(os.environ.get("NOVA_TEST_CACHE") or Path.home() / ".cache/nova")


@pytest.fixture(scope="module")
def image(cache: Path) -> Path:
    done = build("--output", cache / "tiny.qcow2", "--cache", cache / "build-guest")
    assert done.returncode == 0, done.stderr
    return cache / "tiny.qcow2"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "key")


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


def public(key: Path) -> str:
    return key.with_suffix(".pub").read_text().strip()


def config_drive(tmp_path: Path, uuid: str, key: Path) -> list[str]:
    """QEMU's arguments for a config drive as ISO 9660."""
    tree, drive = write_metadata(tmp_path / uuid, uuid, public(key), USER_DATA), tmp_path / f"{uuid}.iso"
    subprocess.run(["genisoimage", "-quiet", "-J", "-r", "-V", "config-2", "-o", drive, tree], check=True)
    return ["-drive", f"file={drive},if=ide,media=cdrom,format=raw"]


def test_build_when_nothing_changed_then_returns_at_once_and_leaves_the_file(image: Path, cache: Path) -> None:
    before, started = image.stat().st_mtime_ns, time.monotonic()
    done = build("--output", image, "--cache", cache / "build-guest")
    assert done.returncode == 0 and "nothing to do" in done.stderr
    assert time.monotonic() - started < 5
    assert image.stat().st_mtime_ns == before


def test_image_when_built_then_is_a_qcow2_of_at_most_40_megabytes(image: Path) -> None:
    facts = json.loads(qemu_img("info", "--output=json", str(image)))
    assert facts["format"] == "qcow2" and "backing-filename" not in facts
    assert image.stat().st_size <= 40_000_000
    assert facts["virtual-size"] <= 1 << 30, "does not fit a flavor with a disk of 1 GB"


def test_boot_when_a_config_drive_is_there_then_takes_its_name_key_and_script_and_keeps_what_is_written(
    image: Path, key: Path, tmp_path: Path
) -> None:
    disk = overlay(image, tmp_path, "1G")
    arguments = config_drive(tmp_path, UUID, key)
    with Machine(tmp_path, disk, arguments) as machine:
        facts = machine.facts(READY_WITHIN)
        assert re.fullmatch(r"[0-9.]+s", facts.pop("uptime"))
        assert facts == {
            "hostname": "vm1",
            "uuid": UUID,
            "address": "10.0.2.15",
            "key": "yes",
            "userdata": "ran",
            "source": "config-drive",
        }
        assert "user data speaks" in machine.output().splitlines()
        machine.await_output(re.compile("^vm1 login: ", re.MULTILINE), 10)
        check_shell(machine, key)
        assert machine.ssh(make_key(tmp_path / "stranger"), "true").returncode == 255
        host_key = machine.ssh(key, HOST_KEY).stdout
        assert machine.ssh(key, "echo kept > /root/written").returncode == 0
        assert machine.press_power_button() <= OFF_WITHIN
    with Machine(tmp_path, disk, arguments) as machine:
        assert machine.facts()["userdata"] == "none", "user data runs once a server, not once a boot"
        assert machine.ssh(key, "cat /root/written /root/ran").stdout == "kept\nrun once for vm1\n"
        assert "ssh-ed25519" in host_key and machine.ssh(key, HOST_KEY).stdout == host_key
        assert machine.ssh(key, "grep -c . /root/.ssh/authorized_keys").stdout == "1\n"
        assert machine.press_power_button() <= OFF_WITHIN
    check_copy(tmp_path, disk, key, host_key)


def test_screen_when_typed_into_then_its_shell_answers_and_the_serial_line_tells(image: Path, tmp_path: Path) -> None:
    with Machine(tmp_path, overlay(image, tmp_path, "1G"), nic=False) as machine:
        machine.await_output(re.compile("^nova-guest login: $", re.MULTILINE), READY_WITHIN)
        time.sleep(1)
        assert "tty1" not in machine.output(), "nothing was typed yet"
        machine.type("echo hello-$((6*7))\n")
        machine.await_output(re.compile("^tty1: hello-42$", re.MULTILINE), 10)
        pixels = machine.picture(tmp_path / "screen.ppm", "ppm").read_bytes().split(b"\n", 3)[3]
        blue = sum(1 for red, green, much in struct.iter_unpack("3B", pixels) if red == green == 0 and 160 < much < 180)
        assert blue > 720 * 40, "the bar, less its letters"


def check_copy(tmp_path: Path, disk: Path, old_key: Path, old_host_key: str) -> None:
    """Another server started from the first one's disk is another: own host key, own user's key, its script runs."""
    key = make_key(tmp_path / "other")
    with Machine(tmp_path, disk, config_drive(tmp_path, OTHER_UUID, key)) as machine:
        facts = machine.facts()
        assert (facts["uuid"], facts["userdata"]) == (OTHER_UUID, "ran")
        assert machine.ssh(key, HOST_KEY).stdout not in ("", old_host_key)
        assert machine.ssh(old_key, "true").returncode == 255


def check_shell(machine: Machine, key: Path) -> None:
    """By ssh: the root fills its 1 GB disk, and the VNC screen shows a login."""
    assert machine.ssh(key, "hostname -f").stdout == "vm1.novalocal\n"
    size = int(machine.ssh(key, "df -m / | awk 'END { print $2 }'").stdout)
    assert 900 < size <= 1024
    screen = machine.ssh(key, "cat /dev/vcs1").stdout
    assert "nova-guest: a small test system" in screen and "vm1 login:" in screen


def test_boot_when_only_the_metadata_service_is_there_then_asks_it(image: Path, key: Path, tmp_path: Path) -> None:
    metadata = write_metadata(tmp_path / "metadata", UUID, public(key), None)
    with Machine(tmp_path, overlay(image, tmp_path, "1G"), metadata=metadata) as machine:
        facts = machine.facts(READY_WITHIN)
        assert (facts["source"], facts["uuid"], facts["userdata"]) == ("metadata", UUID, "none")
        assert facts["address"] == "169.254.169.15"
        assert machine.ssh(key, "hostname").stdout == "vm1\n"


def test_boot_when_there_is_no_network_then_is_ready_without_waiting(image: Path, tmp_path: Path) -> None:
    with Machine(tmp_path, overlay(image, tmp_path, "1G"), nic=False) as machine:
        facts = machine.facts(READY_WITHIN)
        assert (facts["address"], facts["source"], facts["key"]) == ("-", "none", "no")


def test_boot_when_the_metadata_service_is_silent_then_gives_up_within_its_bound(image: Path, tmp_path: Path) -> None:
    with Machine(tmp_path, overlay(image, tmp_path, "1G")) as machine:
        facts = machine.facts(READY_WITHIN + 25)
        assert (facts["address"], facts["source"]) == ("10.0.2.15", "none")


def test_boot_when_given_kernel_and_ramdisk_then_runs_from_a_bare_root_and_a_vfat_config_drive(
    cache: Path, key: Path, tmp_path: Path
) -> None:
    kernel, ramdisk, root = cache / "tiny-vmlinuz", cache / "tiny-initrd", cache / "tiny-root.qcow2"
    done = build("--kernel", kernel, "--initrd", ramdisk, "--root", root, "--cache", cache / "build-guest")
    assert done.returncode == 0, done.stderr
    tree = write_metadata(tmp_path / "drive", UUID, public(key), "#!/bin/nonsense\n")
    drive = make_vfat(cache / "build-guest/packages/mtools/usr/bin", tree, tmp_path / "drive.img")
    arguments = ["-kernel", str(kernel), "-initrd", str(ramdisk), "-append", "root=/dev/vda console=ttyS0"]
    arguments += ["-drive", f"file={drive},if=virtio,format=raw"]
    with Machine(tmp_path, overlay(root, tmp_path, "512M"), arguments) as machine:
        facts = machine.facts(READY_WITHIN)
        assert (facts["source"], facts["hostname"], facts["userdata"]) == ("config-drive", "vm1", "ran")
        assert machine.ssh(key, "grep ' / ' /proc/mounts | cut -d ' ' -f 1").stdout == "/dev/vda\n"


def make_vfat(tools: Path, tree: Path, image: Path) -> Path:
    with image.open("wb") as file:
        file.truncate(4 << 20)
    subprocess.run([tools / "mformat", "-i", image, "-v", "config-2", "::"], check=True)
    subprocess.run([tools / "mcopy", "-s", "-i", image, tree / "openstack", "::"], check=True)
    return image


@pytest.mark.parametrize("arguments", [["--output"], ["--no-such-option"]])
def test_build_when_arguments_are_wrong_then_says_so(arguments: list[str]) -> None:
    done = build(*arguments)
    assert done.returncode == 2 and "usage:" in done.stderr


def test_build_when_the_output_cannot_be_written_then_fails_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = build("--output", tmp_path / "file/tiny.qcow2", "--cache", cache / "build-guest")
    assert done.returncode == 1 and done.stderr.strip().splitlines()[-1].startswith("build-guest: ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
