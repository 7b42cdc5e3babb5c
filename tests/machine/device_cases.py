"""Run by ``test_devices.py`` inside a room: one guest for each device and firmware that QEMU here can run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nova import concurrency, errors
from nova.model.guest.orders import BuildOrder, Disk
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.virt.libvirt import LibvirtDriver, LibvirtSettings
from tests import sampling
from tests.contract.driver_conformance import build, eventually, make_order, unbuild

concurrency.patch("threads")

BRIDGE = "br-room"
GUEST = Path(os.environ.get("NOVA_TEST_GUEST", "/root/.cache/nova/tiny.qcow2"))
PARTS = {"kernel": GUEST.with_name("tiny-vmlinuz"), "ramdisk": GUEST.with_name("tiny-initrd"),
         "root": GUEST.with_name("tiny-root.qcow2")}
TIMEOUT_S = 60
FIRMWARE = Path("/usr/share/qemu/firmware")
TEMPLATE = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
TPMS = Path("/var/lib/libvirt/swtpm")

booting = pytest.mark.skipif(not all(path.exists() for path in (GUEST, *PARTS.values())),
                             reason=f"no guest image at {GUEST} (bin/build-guest makes it)")
uefi = pytest.mark.skipif(not FIRMWARE.is_dir(), reason="no UEFI firmware (package ovmf)")
tpm = pytest.mark.skipif(not shutil.which("swtpm") or not shutil.which("swtpm_setup"),
                         reason="no TPM emulator (packages swtpm, swtpm-tools)")


class Rig:
    """A driver, and images by id; ``path`` makes it the LocalImages of its builds."""

    timeout_s = 5.0

    def __init__(self, state: Path) -> None:
        self.bridge, self.state, self.images = BRIDGE, state, self
        self.driver = LibvirtDriver(LibvirtSettings(instances_path=state / "instances", state_path=state,
                                                    virt_type="qemu",
                                                    shutdown_retry_s=2, swtpm=True))

    def path(self, image_id: str) -> str:
        return str(self.state / image_id)

    def folder(self, order: BuildOrder) -> Path:
        return self.state / "instances" / order.server_uuid

    def console(self, order: BuildOrder) -> str:
        return self.driver.consoles.console_output(order.server_uuid, None)

    def left_over(self, order: BuildOrder) -> list[str]:
        places = (self.state / "instances", TPMS, Path("/var/lib/libvirt/qemu"), Path("/etc/libvirt"))
        return [str(path) for place in places for path in place.rglob("*") if order.server_uuid in path.name
                or order.instance_name in path.name]


@pytest.fixture(scope="session")
def rig():
    state = Path("/run/nova")
    state.mkdir()
    made = Rig(state)
    for name, source in ({**PARTS, "disk.qcow2": GUEST}).items():
        if source.exists():
            shutil.copyfile(source, state / (f"{name}.qcow2" if source.suffix == ".qcow2" and name == "root" else name))
            (state / name).chmod(0o644) if (state / name).exists() else (state / f"{name}.qcow2").chmod(0o644)
    made.driver.connect()
    yield made
    made.driver.close()


def order_of(properties=None, specs=None, *, direct: bool = True, memory_mb: int = 160, vcpus: int = 1,
             **changes) -> BuildOrder:
    """With the guest's kernel given directly (the quickest boot), or from its own disk."""
    images = {"image": Image(id="root.qcow2", disk_format="qcow2", properties=properties or {}),
              "kernel": Image(id="kernel", disk_format="aki"), "ramdisk": Image(id="ramdisk", disk_format="ari")}
    if not direct:
        images = {"image": Image(id="disk.qcow2", disk_format="qcow2", properties=properties or {})}
    made = make_order(BRIDGE, **{"disks": (Disk(kind="root", size_gb=1),), **images, **changes})
    flavor = msgspec.structs.replace(made.flavor, memory_mb=memory_mb, vcpus=vcpus, extra_specs=specs or {})
    return msgspec.structs.replace(made, flavor=flavor)


@contextlib.contextmanager
def running(rig: Rig, order: BuildOrder) -> Iterator[BuildOrder]:
    """The guest, started; afterwards nothing of it is left."""
    try:
        assert build(rig, order) == PowerState.RUNNING
        yield order
    finally:
        unbuild(rig, order)
    assert rig.left_over(order) == []


def says(rig: Rig, order: BuildOrder, *texts: str, seconds: float = TIMEOUT_S) -> bool:
    return eventually(lambda: all(text in rig.console(order) for text in texts), seconds)


def xml_of(order: BuildOrder) -> str:
    return subprocess.run(["virsh", "dumpxml", order.server_uuid], capture_output=True, text=True, check=True).stdout


LOGIN = "login:"
SERIALS = tuple(f"ttyS{port} at I/O" for port in range(4))
BOOTS = {  # name -> (image properties, extra specs, what the guest's console says)
    "pc": ({"hw_machine_type": "pc"}, {}, (LOGIN,)),
    "q35": ({"hw_machine_type": "q35"}, {}, (LOGIN,)),
    "scsi": ({"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi",
              "os_command_line": "root=/dev/sda console=ttyS0"}, {}, (LOGIN, "QEMU HARDDISK")),
    "ide": ({"hw_disk_bus": "ide", "os_command_line": "root=/dev/sda console=ttyS0"}, {}, (LOGIN,)),
    "packed-ring": ({}, {"hw:virtio_packed_ring": "true"}, (LOGIN,)),
    "serial-ports": ({}, {"hw:serial_port_count": "4"}, (LOGIN, *SERIALS)),
    # on a busy machine its timer may tick too late for what the kernel expects of one behind an IOMMU
    "iommu-intel": ({"hw_machine_type": "q35", "os_command_line": "root=/dev/vda console=ttyS0 no_timer_check"},
                    {"hw:viommu_model": "intel"}, (LOGIN, "DMAR")),
    "iommu-virtio": ({"hw_viommu_model": "virtio"}, {}, (LOGIN,)),
    "cpus": ({"hw_cpu_threads": "2"}, {}, (LOGIN, "smpboot: Allowing 2 CPUs")),
    "quotas-and-small-devices": ({"hw_sound_model": "ich9", "hw_usb_model": "nec-xhci", "hw_boot_menu": "yes",
                                  "img_hide_hypervisor_id": "yes", "hw_input_bus": "virtio", "hw_pmu": "no"},
                                 # (no quota of interfaces: not every kernel has tc's qdisc sfq)
                                 {"quota:disk_total_iops_sec": "5000",
                                  "hw_rng:rate_bytes": "2048", "hw_rng:rate_period": "1000"}, (LOGIN,)),
    **{f"video-{model}": ({"hw_video_model": model}, {"hw_video:ram_max_mb": "64"}, (LOGIN,))
       for model in ("vga", "cirrus", "qxl", "virtio", "bochs", "vmvga", "none")},
}


@booting
@pytest.mark.parametrize("name", sampling.drawn(list(BOOTS), 4, every=5))
def test_guest_boots_with(rig, name):
    properties, specs, texts = BOOTS[name]
    with running(rig, order_of(properties, specs, vcpus=2 if name == "cpus" else 1)) as order:
        assert says(rig, order, *texts), rig.console(order)


@booting
@pytest.mark.in_turn(0, 4)
def test_guest_on_sata_is_loaded_from_its_disk(rig):
    """(Its kernel has no driver for the bus, and waits for the root disk.)"""
    with running(rig, order_of({"hw_machine_type": "q35", "hw_disk_bus": "sata"}, direct=False)) as order:
        assert says(rig, order, "a shell follows", seconds=100), rig.console(order)


# --- firmware

@booting
@uefi
@pytest.mark.parametrize("machine", sampling.drawn(["pc", "q35"], 1, every=5))
def test_guest_boots_by_uefi_and_its_variables_stay_with_it(rig, machine):
    properties = {"hw_firmware_type": "uefi", "hw_machine_type": machine}
    with running(rig, order_of(properties, memory_mb=256)) as order:
        assert says(rig, order, "efi: EFI v", LOGIN, seconds=120), rig.console(order)
        kept = rig.folder(order) / "nvram.fd"
        assert kept.stat().st_mode & 0o777 == 0o600
        before = kept.read_bytes()
        assert before != TEMPLATE.read_bytes()
        rig.driver.lifecycle.destroy(order.server_uuid)  # what a hard reboot does
        inode = kept.stat().st_ino
        assert rig.driver.lifecycle.start_new(order) == PowerState.RUNNING
        assert kept.stat().st_ino == inode and kept.read_bytes() != TEMPLATE.read_bytes()


SECURE = {"os_secure_boot": "required", "hw_firmware_type": "uefi"}


@booting
@uefi
@pytest.mark.in_turn(0, 2)
def test_guest_with_secure_boot_sees_it_in_force(rig):
    """(The firmware trusts a kernel that QEMU hands it.)"""
    with running(rig, order_of(SECURE, memory_mb=256)) as order:
        assert says(rig, order, "UEFI Secure Boot is enabled", "secureboot: Secure boot enabled", seconds=120)
        assert (rig.folder(order) / "nvram.secure.fd").exists()


def efi_disk(path: Path) -> None:
    """A disk whose EFI program is the guest's kernel: none of the keys that firmware has enrolled has signed it."""
    path.unlink(missing_ok=True)
    sectors = str((64 << 20) // 512)
    for argv in (["mformat", "-C", "-i", str(path), "-T", sectors, "-h", "64", "-s", "32", "::"],
                 ["mmd", "-i", str(path), "::/EFI", "::/EFI/BOOT"],
                 ["mcopy", "-i", str(path), str(PARTS["kernel"]), "::/EFI/BOOT/BOOTX64.EFI"]):
        subprocess.run(argv, check=True, capture_output=True)
    path.chmod(0o644)


@booting
@uefi
@pytest.mark.in_turn(1, 2)
@pytest.mark.parametrize(("properties", "loaded"), [({"hw_firmware_type": "uefi"}, True), (SECURE, False)],
                         ids=["uefi", "secure"])
def test_program_that_nobody_signed_is_loaded_from_disk_but_for_secure_boot(rig, properties, loaded):
    efi_disk(rig.state / "efi")
    image = Image(id="efi", disk_format="raw", properties={"hw_machine_type": "q35", **properties})
    with running(rig, order_of(image=image, kernel=None, ramdisk=None, memory_mb=256)) as order:
        if loaded:
            assert says(rig, order, "BdsDxe: starting Boot", seconds=90), rig.console(order)
        else:
            assert says(rig, order, "Access Denied", seconds=90), rig.console(order)
            refused = re.findall(r"failed to load (Boot\w+) .*Access Denied", rig.console(order))
            started = re.findall(r"starting (Boot\w+)", rig.console(order))  # the firmware's own shell, at most
            assert refused and not set(refused) & set(started), rig.console(order)


# --- TPM

TPM_MODELS = [("2.0", "tpm-crb", "tpm_crb"), ("2.0", "tpm-tis", "tpm_tis"), ("1.2", "tpm-tis", "tpm_tis")]


@booting
@tpm
@pytest.mark.parametrize(("version", "model", "seen"), sampling.drawn(TPM_MODELS, 1, every=5))
def test_guest_has_a_tpm_whose_state_stays_until_the_guest_goes(rig, version, model, seen):
    order = order_of({}, {"hw:tpm_version": version, "hw:tpm_model": model, "hw:tpm_secret_security": "host"})
    with running(rig, order):
        assert says(rig, order, LOGIN), rig.console(order)
        assert seen in rig.console(order)
        (state,) = TPMS.rglob("*.permall")
        assert state.read_bytes()
        rig.driver.lifecycle.destroy(order.server_uuid)  # what a hard reboot does
        assert state.exists()
        assert rig.driver.lifecycle.start_new(order) == PowerState.RUNNING
    assert order.server_uuid not in subprocess.run(["virsh", "secret-list"], capture_output=True, text=True,
                                                   check=True).stdout


@tpm
def test_tpm_whose_secret_was_lost_is_not_made_anew_behind_the_guests_back(rig):
    order = order_of({}, {"hw:tpm_version": "2.0"})
    with running(rig, order):
        rig.driver.lifecycle.destroy(order.server_uuid)
        subprocess.run(["virsh", "secret-undefine", order.server_uuid], check=True, capture_output=True)
        with pytest.raises(errors.HostRefused, match="secret of the TPM"):
            rig.driver.lifecycle.start_new(order)


# --- the watchdog

def watchdog_disk(path: Path) -> None:
    """A disk whose boot sector says B on the first serial port, and arms the watchdog: it fires after some 2 s.

    By the PCI BIOS: find device 8086:25ab; word at 60h = 4 (a clock of 1 MHz); byte at 68h = 2 (enable); then halt.
    """
    code = bytes.fromhex("b84201 31d2 cd14"
                         "b802b1 b9ab25 ba8680 31f6 cd1a"
                         "b80cb1 bf6000 b90400 cd1a"
                         "b80bb1 bf6800 b90200 cd1a"
                         "f4 ebfd")
    path.write_bytes(code.ljust(510, b"\0") + b"\x55\xaa" + bytes(1 << 20))
    path.chmod(0o644)


OFF = (PowerState.SHUTDOWN, PowerState.CRASHED)  # QEMU ends at once, which libvirt may take for a crash
FIRES = {
    "poweroff": lambda rig, order: rig.driver.lifecycle.power_state(order.server_uuid) in OFF,
    "pause": lambda rig, order: rig.driver.lifecycle.power_state(order.server_uuid) == PowerState.PAUSED,
    "reset": lambda rig, order: rig.console(order).count("B") >= 2,
}


@pytest.mark.parametrize("action", sampling.drawn([*FIRES, "none", "disabled"], 2, every=5))
def test_watchdog_that_fires_does_what_the_image_says(rig, action):
    watchdog_disk(rig.state / "watchdog")
    image = Image(id="watchdog", disk_format="raw", properties={"hw_watchdog_action": action})
    with running(rig, order_of(image=image, kernel=None, ramdisk=None)) as order:
        if action in FIRES:
            assert eventually(lambda: FIRES[action](rig, order), 30), rig.console(order)
        else:
            assert says(rig, order, "B")
            assert not eventually(lambda: any(fired(rig, order) for fired in FIRES.values()), 5)
