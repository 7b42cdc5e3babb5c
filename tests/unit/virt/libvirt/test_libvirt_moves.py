"""Moves of the libvirt driver between two fake hypervisors, with real files, image tools and offers of disks."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import types
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova import errors
from nova.conf._options import Options
from nova.model.guest.orders import Disk
from nova.model.server.states import PowerState
from nova.privileged import disk_exports, pid_files
from nova.privileged.qemu_img import QemuImg
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.disks import header
from nova.virt.libvirt.moves import source_info as tell
from nova.virt.libvirt.moves.watch import GIB, Act, Due, MigrationWatch
from nova.virt.libvirt.settings.moves import MoveSettings, move_settings_of
from nova.virt.libvirt.vifs import bridge
from tests.contract.driver_conformance import build, eventually, make_order, unbuild
from tests.contract.driver_move_cases import MoveCases, grown, move_order, off_and_left, prepared
from tests.contract.driver_packing_cases import PackingCases, holding
from tests.unit.virt.libvirt.orders import settings
from tests.unit.virt.libvirt.test_libvirt_driver import FakeLinks, Rig

pytestmark = [
    pytest.mark.one_in(3),  # programs of QEMU for each case
    pytest.mark.skipif(not all(map(shutil.which, ("qemu-img", "qemu-io", "xorrisofs", "qemu-storage-daemon"))),
                       reason="needs qemu-img, qemu-io, qemu-storage-daemon and xorrisofs")]

RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN
MARK_AT = 200 << 10


class MoveRig(Rig):
    """A host. Both see the other's files only where ``shared`` is their directory."""

    def __init__(self, path: Path, links: FakeLinks, shared: Path | None = None, **moves) -> None:
        path.mkdir()
        self.gates = Path(tempfile.mkdtemp(prefix="gates"))  # a socket's path is short
        changes = {"tpm_path": path / "swtpm", **({"instances_path": shared} if shared else {})}
        super().__init__(path, links, moves=MoveSettings(migrations_path=self.gates, **moves), **changes)
        self.root, self.has_image = self.driver.tools.settings.instances_path, True
        self.driver.connect()

    def close(self) -> None:
        shutil.rmtree(self.gates)  # what goes through them ends by itself
        super().close()

    def path(self, image_id: str) -> str:
        if not self.has_image:
            raise KeyError(image_id)
        return super().path(image_id)

    def disk(self, order, name: str = "disk") -> Path:
        return self.root / order.server_uuid / name

    def mark(self, order, text: str) -> None:
        pattern = self.root / "pattern"
        pattern.write_text(text.ljust(512))
        subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -s {pattern} {MARK_AT} 512", str(self.disk(order))],
                       check=True, capture_output=True)

    def marked(self, order) -> str:
        raw = self.root / "raw"
        subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(self.disk(order)), str(raw)], check=True)
        with raw.open("rb") as source:
            source.seek(MARK_AT)
            return source.read(512).decode().strip()


@pytest.fixture
def links(monkeypatch):
    fake = FakeLinks()  # netlink needs root and changes the machine
    monkeypatch.setattr(bridge, "links", fake)
    return fake


def two(first: MoveRig, second: MoveRig) -> MoveRig:
    for one, other in ((first, second), (second, first)):
        one.hypervisor.peers[other.gates] = other.hypervisor
    first.other = second
    return first


@pytest.fixture
def rig(tmp_path, links):
    made = two(MoveRig(tmp_path / "a", links, post_copy=True), MoveRig(tmp_path / "b", links))
    yield made
    for host in (made, made.other):
        host.close()


@pytest.fixture
def shared(tmp_path, links):
    """Two hosts with one directory of guests."""
    folder = tmp_path / "shared"
    made = two(MoveRig(tmp_path / "a", links, folder), MoveRig(tmp_path / "b", links, folder))
    yield made
    for host in (made, made.other):
        host.close()


@pytest.fixture
def order(rig):
    made = make_order(rig.bridge)
    yield made
    for host in (rig, rig.other):
        host.driver.cold_moves.forget(made.server_uuid)
        unbuild(host, made)


class TestMovesOfTheLibvirtDriver(MoveCases, PackingCases):
    pass


def test_driver_has_the_protocols_of_moves(rig):
    assert rig.driver.cold_moves is not None and rig.driver.live_moves is not None


def off(rig, order):
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.mark(order, "precious")
    return rig.driver.cold_moves.leave(order.server_uuid)


# --- cold: files

def test_base_comes_from_the_source_when_the_destination_has_not_got_the_image(rig, order):
    source = off(rig, order)
    rig.other.has_image = False
    rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)
    assert rig.other.marked(order) == "precious"
    base = rig.other.disk(order, "disk.base")
    assert base.read_bytes() == rig.base.read_bytes()
    record = next(disk for disk in rig.other.driver.tools.folders.of(order.server_uuid).disks() if disk.kind == "root")
    assert record.backing == str(base) and str(rig.root) not in str(record)
    rig.other.driver.interfaces.plug(order)
    rig.other.driver.lifecycle.start_new(order)
    rig.other.driver.lifecycle.shut_down(order.server_uuid, 0)
    back = rig.other.driver.cold_moves.leave(order.server_uuid)  # the base is put aside with the disk
    rig.driver.cold_moves.forget(order.server_uuid)
    rig.has_image = False
    rig.driver.cold_moves.fetch(move_order(order, back), rig.images)
    assert rig.marked(order) == "precious"


def test_cached_image_of_another_size_is_not_taken_for_the_base(rig, order):
    source = off(rig, order)
    os.truncate(rig.other.base, 2 << 20)
    rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)
    assert rig.other.marked(order) == "precious" and rig.other.disk(order, "disk.base").exists()


def test_disks_grow_swap_begins_anew_and_config_drive_follows(rig, order):
    source = off(rig, order)
    config = (rig.root / f"{order.server_uuid}_resize" / "disk.config").read_bytes()
    larger = msgspec.structs.replace(grown(order), disks=(
        Disk(kind="root", size_gb=3), Disk(kind="ephemeral", size_gb=2), Disk(kind="ephemeral", index=1, size_gb=1),
        Disk(kind="swap", size_mb=16)))
    rig.other.driver.cold_moves.fetch(move_order(larger, source), rig.other.images)
    sizes = {name: header.size(rig.other.disk(order, name), "qcow2") for name in
             ("disk", "disk.eph0", "disk.eph1", "disk.swap")}
    assert sizes == {"disk": 3 << 30, "disk.eph0": 2 << 30, "disk.eph1": 1 << 30, "disk.swap": 16 << 20}
    assert rig.other.disk(order, "disk.config").read_bytes() == config
    records = {disk.name: disk.size_bytes for disk in rig.other.driver.tools.folders.of(order.server_uuid).disks()}
    assert {name: records[name] for name in sizes} == sizes


@pytest.mark.parametrize("disks", [(Disk(kind="root", size_gb=1), Disk(kind="swap", size_mb=8)),
                                   (Disk(kind="root", size_gb=1), Disk(kind="ephemeral", size_gb=1))])
def test_ephemeral_disk_is_never_lost_but_swap_may_be(rig, order, disks):
    source = off(rig, order)
    there = move_order(msgspec.structs.replace(order, disks=disks), source)
    if any(disk.kind == "ephemeral" for disk in disks):
        rig.other.driver.cold_moves.fetch(there, rig.other.images)
        assert not rig.other.disk(order, "disk.swap").exists()
    else:
        with pytest.raises(errors.HostRefused, match="shrink"):
            rig.other.driver.cold_moves.fetch(there, rig.other.images)


def test_fetch_goes_on_where_it_was_cut_off(rig, order):
    source = off(rig, order)
    there = move_order(order, source)
    rig.other.driver.cold_moves.fetch(there, rig.other.images)
    rig.other.disk(order, "disk").unlink()
    rig.other.disk(order, "disk.part").write_bytes(b"half")
    kept = rig.other.disk(order, "disk.eph0").stat().st_ino
    rig.other.driver.cold_moves.fetch(there, rig.other.images)
    assert rig.other.marked(order) == "precious" and not rig.other.disk(order, "disk.part").exists()
    assert rig.other.disk(order, "disk.eph0").stat().st_ino == kept


def test_copies_of_an_earlier_move_are_not_taken_for_those_of_this_one(rig, order):
    rig.other.driver.cold_moves.fetch(move_order(order, off(rig, order)), rig.other.images)
    rig.driver.cold_moves.restore_source(order.server_uuid)
    rig.mark(order, "changed")
    again = rig.driver.cold_moves.leave(order.server_uuid)
    rig.other.driver.cold_moves.fetch(move_order(order, again), rig.other.images)
    assert rig.other.marked(order) == "changed"


def test_files_that_no_move_has_brought_are_not_overwritten(rig, order):
    build(rig.other, order)
    rig.other.driver.lifecycle.destroy(order.server_uuid)
    source = off(rig, order)
    with pytest.raises(errors.HostRefused, match="has old files of guest"):
        rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)


def test_source_that_lies_is_refused(rig, order, tmp_path):
    source = off(rig, order)
    path = rig.root / f"{order.server_uuid}_resize" / "disk"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", "data_file=data", "evil", "1G"], check=True,
                   cwd=tmp_path)
    bad = msgspec.structs.replace(source, facts={**source.facts, "records": source.facts["records"].replace(
        '"name":"disk"', '"name":"../disk"')})
    with pytest.raises(errors.HostRefused, match="has the name"):
        rig.other.driver.cold_moves.fetch(move_order(order, bad), rig.other.images)
    rig.driver.cold_moves.restore_source(order.server_uuid)
    shutil.copyfile(tmp_path / "evil", rig.disk(order))
    evil = rig.driver.cold_moves.leave(order.server_uuid)
    with pytest.raises(errors.HostRefused, match="has an external data file"):
        rig.other.driver.cold_moves.fetch(move_order(order, evil), rig.other.images)
    assert path.exists() and not rig.other.disk(order).exists()


def told_otherwise(source, **changes):
    """What a stolen source would say of its config drive."""
    records = msgspec.json.decode(source.facts["records"])
    config = next(record for record in records if record["kind"] == "config")
    disk = next(disk for disk in source.disks if disk.name == config["name"])
    others = tuple(one for one in source.disks if one is not disk)
    config |= changes
    facts = {**source.facts, "records": msgspec.json.encode(records).decode()}
    return msgspec.structs.replace(source, facts=facts,
                                   disks=(*others, msgspec.structs.replace(disk, name=config["name"])))


@pytest.mark.parametrize("changes", [
    {"format": "qcow2"}, {"format": "qcow2", "backing": "/etc/shadow", "backing_format": "raw"},
    {"name": "rescue.json"}, {"name": "exports.pid"}, {"device": "lun"}])
def test_config_drive_that_would_show_files_of_the_destination_is_refused(rig, order, changes):
    source = told_otherwise(off(rig, order), **changes)
    with pytest.raises(errors.HostRefused):
        rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)
    assert not rig.other.disk(order, changes.get("name", "disk.config")).exists()


def test_image_of_somebody_else_is_not_taken_for_the_base(rig, order):
    source = off(rig, order)
    reported = msgspec.structs.replace(source, disks=tuple(
        msgspec.structs.replace(disk, image_id="another") if disk.image_id else disk for disk in source.disks))
    rig.other.driver.cold_moves.fetch(move_order(order, reported), rig.other.images)
    record = next(disk for disk in rig.other.driver.tools.folders.of(order.server_uuid).disks() if disk.kind == "root")
    assert record.backing == str(rig.other.disk(order, "disk.base")) and rig.other.marked(order) == "precious"


@pytest.mark.parametrize("address", ["127.0.0.1,file.server.type=unix", "", "-x", "a b"])
def test_address_of_an_offer_that_is_none_is_refused(rig, order, address):
    source = msgspec.structs.replace(off(rig, order), address=address)
    with pytest.raises(errors.HostRefused, match="its address is"):
        rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)


# --- cold: the offer

def pid_of(rig, order) -> int:
    return int((rig.root / f"{order.server_uuid}_resize" / disk_exports.PID_FILE).read_text())


def test_offer_lives_until_it_is_forgotten_and_its_record_is_private(rig, order):
    off(rig, order)
    folder, pid = rig.root / f"{order.server_uuid}_resize", pid_of(rig, order)
    assert (folder / disk_exports.OFFER_FILE).stat().st_mode & 0o777 == 0o600
    assert rig.driver.cold_moves.leave(order.server_uuid) and pid_of(rig, order) == pid
    secret = next(iter(msgspec.json.decode((folder / disk_exports.OFFER_FILE).read_bytes())["names"].values()))
    assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    rig.driver.cold_moves.forget(order.server_uuid)
    assert eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), 5)


def test_offer_whose_process_died_is_made_again(rig, order):
    first = off(rig, order)
    os.kill(pid_of(rig, order), 9)
    assert eventually(lambda: rig.driver.cold_moves.leave(order.server_uuid).disks != first.disks, 5)
    source = rig.driver.cold_moves.leave(order.server_uuid)
    rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)
    assert rig.other.marked(order) == "precious"


def test_process_that_offers_when_it_starts_then_its_group_for_the_keys_is_there_and_not_made(rig, order):
    off(rig, order)
    folder = next(folder.path for folder in rig.driver.tools.folders.all()
                  if pid_files.running(folder.path / disk_exports.PID_FILE))
    assert (folder / disk_exports.KEYS / disk_exports.DH_FILE).read_text() == disk_exports.DH_PARAMETERS
    checked = subprocess.run(["openssl", "dhparam", "-check", "-noout"], input=disk_exports.DH_PARAMETERS, text=True,
                             capture_output=True, check=True)
    assert "appear to be ok" in checked.stderr + checked.stdout


def test_pid_of_somebody_else_is_not_ended(tmp_path):
    (tmp_path / disk_exports.PID_FILE).write_text(str(os.getpid()))
    disk_exports.withdraw(tmp_path)
    assert not (tmp_path / disk_exports.PID_FILE).exists()


def test_offer_whose_folder_was_renamed_ends_with_it(tmp_path):
    before, after = tmp_path / "guest", tmp_path / "guest_resize"
    before.mkdir()
    (before / "disk").write_bytes(b"x" * 512)
    disk_exports.offer(before, {"disk": before / "disk"}, disk_exports.Listen("127.0.0.1", (49216, 49279)))
    pid = int((before / disk_exports.PID_FILE).read_text())
    before.rename(after)
    try:
        disk_exports.withdraw(after)
        assert eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), 5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


def test_offer_of_a_live_move_that_failed_ends_when_the_guest_leaves_in_a_cold_one(rig, order):
    folder = rig.driver.tools.folders.of(order.server_uuid)
    build(rig, order)
    rig.driver.live_moves.describe(order.server_uuid)
    pid = int((folder.path / disk_exports.PID_FILE).read_text())
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.cold_moves.leave(order.server_uuid)
    assert pid_of(rig, order) != pid
    assert eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), 5)


def test_offer_without_a_free_port_is_a_refusal(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "f").write_bytes(b"x" * 512)
        with pytest.raises(errors.host.Export, match="none of the ports"):
            disk_exports.offer(tmp_path, {"f": tmp_path / "f"}, disk_exports.Listen("127.0.0.1", (port, port)))
    assert eventually(lambda: pid_files.running(tmp_path / disk_exports.PID_FILE) is None, 5), "nothing is left of it"


@pytest.mark.parametrize("program", ["no-such-program", "true"])
def test_offer_when_the_program_is_missing_or_ends_at_once_then_it_is_a_refusal(tmp_path, monkeypatch, program):
    monkeypatch.setattr(disk_exports, "PROGRAM", program)
    (tmp_path / "f").write_bytes(b"x" * 512)
    with pytest.raises(errors.host.Export):
        disk_exports.offer(tmp_path, {"f": tmp_path / "f"}, disk_exports.Listen("127.0.0.1", (49152, 49215)))


def test_secret_of_an_export_is_in_no_command_line(tmp_path):
    source = disk_exports.ExportSource("10.0.0.1", 49216, "5ecre7")
    with disk_exports.reading(source, tmp_path) as reported:
        words = (*reported.objects, reported.options)
        assert "5ecre7" not in " ".join(words) and "tls-creds=tls" in reported.options
        assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*"))
    assert not list(tmp_path.iterdir())


def test_key_that_a_kill_left_goes_at_the_next_read(tmp_path):
    (tmp_path / f"{disk_exports.KEY_PREFIX}old").mkdir()
    (tmp_path / f"{disk_exports.KEY_PREFIX}old" / "keys.psk").touch()
    with disk_exports.reading(disk_exports.ExportSource("10.0.0.1", 49216, "5ecre7"), tmp_path):
        assert [path for path in tmp_path.iterdir() if path.name.endswith("old")] == []
    assert not list(tmp_path.iterdir())


def test_process_that_offers_is_nobody_and_sees_what_it_offers_alone(tmp_path):
    """What whoever took it over by its protocol would be."""
    (tmp_path / "there").mkdir()
    offered, other = tmp_path / "there" / "disk", tmp_path / "there" / "disk.other"
    for path in (offered, other):
        path.write_bytes(b"x" * 512)
        path.chmod(0o600)
    disk_exports.offer(tmp_path / "there", {"disk": offered}, disk_exports.Listen("127.0.0.1", (49216, 49279)))
    try:
        pid = pid_files.running(tmp_path / "there" / disk_exports.PID_FILE)
        root = Path(f"/proc/{pid}/root")
        assert (root / str(offered)[1:]).exists() and not (root / str(other)[1:]).exists()
        assert not (root / "etc/shadow").exists() and not (root / "proc/1").exists()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert os.geteuid() or status["Uid"].split() == ["65534"] * 4
        assert int(status["CapBnd"], 16) in (0, 2) or os.geteuid(), "CAP_DAC_OVERRIDE at most"
    finally:
        disk_exports.withdraw(tmp_path / "there")


class WithoutTls(disk_exports.ReadExport):
    objects = ()

    @property
    def options(self):
        return super().options.removesuffix(",file.tls-creds=tls")


def test_offer_is_read_by_those_who_know_its_secret_alone(tmp_path):
    (tmp_path / "there").mkdir()
    file, got = tmp_path / "disk", tmp_path / "got"
    file.write_bytes(b"precious".ljust(4096, b"."))
    listen = disk_exports.Listen("127.0.0.1", (49216, 49279))
    offer = disk_exports.offer(tmp_path / "there", {"disk": file}, listen)
    try:
        asked = subprocess.run(["qemu-nbd", "--list", "--bind", offer.address, "--port", str(offer.port)],
                               capture_output=True, text=True, timeout=30, check=False)
        assert asked.returncode and "export" not in asked.stdout
        with disk_exports.reading(disk_exports.ExportSource(offer.address, offer.port, "0" * 32), tmp_path) as wrong, \
                pytest.raises(errors.HostRefused):
            QemuImg().fetch(wrong, str(got))
        source = disk_exports.ExportSource(offer.address, offer.port, offer.names["disk"])
        with disk_exports.reading(source, tmp_path) as export:
            without = WithoutTls(*export)
            assert without.options != export.options
            with pytest.raises(errors.HostRefused):
                QemuImg().fetch(without, str(got))
            with pytest.raises(errors.HostRefused, match="limits"):
                QemuImg().fetch(export, str(got), 2048)
            QemuImg().fetch(export, str(got), 4096)
        assert got.read_bytes() == file.read_bytes()
    finally:
        disk_exports.withdraw(tmp_path / "there")
    assert not list((tmp_path / "there").iterdir())


# --- cold: again and again

def test_leave_of_a_guest_that_runs_is_a_conflict(rig, order):
    build(rig, order)
    with pytest.raises(errors.Conflict):
        rig.driver.cold_moves.leave(order.server_uuid)
    assert rig.driver.lifecycle.power_state(order.server_uuid) == RUNNING


def test_leave_that_was_cut_off_before_the_rename_goes_on(rig, order):
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.hypervisor.undefine(order.server_uuid)
    assert rig.driver.cold_moves.leave(order.server_uuid).port


def test_leave_while_an_older_move_is_not_forgotten_is_a_conflict(rig, order):
    off(rig, order)
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    with pytest.raises(errors.Conflict, match="earlier move"):
        rig.driver.cold_moves.leave(order.server_uuid)


# --- live

def nobody(percent, progress) -> None:
    pass


def test_arrival_has_the_destinations_paths_and_devices(rig, order):
    build(rig, order)
    rig.driver.live_moves.migrate(prepared(rig, order, rig.other), nobody, lambda: False)
    xml = rig.hypervisor.departures[-1].xml
    assert str(rig.root) not in xml and str(rig.other.base) in xml and str(rig.other.disk(order, "console.log")) in xml
    assert rig.hypervisor.departures[-1].disks == ("vda", "vdb", "vdc")
    assert rig.other.disk(order, "disk.config").stat().st_size > 0
    assert header.size(rig.other.disk(order), "qcow2") == 1 << 30


def places(xml: str) -> set[tuple[str, str, str]]:
    """What a guest's disks, consoles and interfaces are on its host: (element, what the guest sees, what is behind)."""
    found = set()
    for device in ET.fromstring(xml).find("devices"):
        behind = {value for part in ("source", "log", "backingStore/source") for one in device.findall(part)
                  for value in one.attrib.values()}
        seen = device.find("target").get("dev", "") if device.find("target") is not None else ""
        found |= {(device.tag, seen, value) for value in behind}
    return found


def test_landed_guest_when_it_is_started_anew_then_it_has_what_it_runs_with(rig, order):
    build(rig, order)
    rig.driver.live_moves.migrate(prepared(rig, order, rig.other), nobody, lambda: False)
    there, uuid = rig.other.hypervisor, order.server_uuid
    live = places(rig.hypervisor.departures[-1].xml)
    there.xml[uuid] = there.xml[uuid].replace(str(rig.other.root), str(rig.root))  # as if libvirt kept the source's
    rig.other.driver.live_moves.finish_arrival(move_order(order))
    assert {one for one in live if one[0] == "disk"} and places(there.xml[uuid]) == live
    assert str(rig.root) not in there.xml[uuid]


def test_arrival_when_the_guest_holds_something_then_it_is_where_its_destination_says(rig, order):
    build(rig, holding(order, numa=True))
    there = holding(order, 3, numa=True)
    rig.driver.live_moves.migrate(prepared(rig, there, rig.other), nobody, lambda: False)
    xml = rig.hypervisor.departures[-1].xml
    assert '<vcpupin vcpu="0" cpuset="3"' in xml and '<vcpupin vcpu="0" cpuset="0"' not in xml
    rig.other.driver.live_moves.finish_arrival(move_order(there))
    assert '<vcpupin vcpu="0" cpuset="3"' in rig.other.hypervisor.xml[order.server_uuid]


def test_arrival_when_the_place_is_unlike_the_one_it_has_then_the_destination_refuses(rig, order):
    build(rig, holding(order, numa=True))
    source = rig.driver.live_moves.describe(order.server_uuid)
    with pytest.raises(errors.HostRefused) as caught:
        rig.other.driver.live_moves.prepare_arrival(move_order(holding(order, numa=False), source), rig.other.images)
    assert caught.value.code == "move.unlike_place" and not rig.other.disk(order).exists()


def test_processor_that_the_destination_has_not_is_named_flag_by_flag(rig, order):
    build(rig, order)
    source = rig.driver.live_moves.describe(order.server_uuid)
    cpu = '<cpu><feature policy="require" name="avx512f"/><feature policy="require" name="aes"/></cpu>'
    with pytest.raises(errors.HostRefused, match="required features: avx512f$"):
        rig.other.driver.live_moves.prepare_arrival(
            move_order(order, msgspec.structs.replace(source, cpu=cpu)), rig.other.images)
    assert not rig.other.disk(order).exists()


def test_storage_that_is_not_shared_is_refused_unless_blocks_may_be_copied(rig, order):
    build(rig, order)
    source = rig.driver.live_moves.describe(order.server_uuid)
    with pytest.raises(errors.HostRefused, match="do not share"):
        rig.other.driver.live_moves.prepare_arrival(move_order(order, source, block=False), rig.other.images)
    copied = rig.other.driver.live_moves.prepare_arrival(move_order(order, source, block=True), rig.other.images)
    assert copied.shared is False


def test_space_counts_unless_it_may_be_promised_twice(rig, order, monkeypatch):
    build(rig, order)
    source = rig.driver.live_moves.describe(order.server_uuid)
    space = types.SimpleNamespace(f_bavail=100, f_bfree=100, f_blocks=100, f_frsize=1 << 20)
    monkeypatch.setattr(os, "statvfs", lambda path: space)  # no test fills a disk
    with pytest.raises(errors.HostRefused, match="no space"):
        rig.other.driver.live_moves.prepare_arrival(move_order(order, source), rig.other.images)
    assert rig.other.driver.live_moves.prepare_arrival(move_order(order, source, over_commit=True), rig.other.images)


def going(rig, live_order, stopped=lambda: False):
    """A migration under way: its thread, and what it ends with."""
    ends: list[object] = []

    def run() -> None:
        try:
            ends.append(rig.driver.live_moves.migrate(live_order, nobody, stopped))
        except errors.NovaError as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert eventually(lambda: bool(rig.hypervisor.jobs or ends), 5)
    return thread, ends


def test_aborted_migration_ends_with_an_error_and_the_guest_runs_on(rig, order):
    build(rig, order)
    rig.hypervisor.migration_hangs = True
    thread, ends = going(rig, prepared(rig, order, rig.other))
    rig.driver.live_moves.abort(order.server_uuid)
    thread.join(10)
    assert isinstance(ends[0], errors.Conflict) and "canceled" in str(ends[0])
    assert rig.driver.lifecycle.power_state(order.server_uuid) == RUNNING


def test_migration_is_given_up_when_its_operation_was_overtaken(rig, order):
    build(rig, order)
    rig.hypervisor.migration_hangs = True
    overtaken = threading.Event()
    thread, ends = going(rig, prepared(rig, order, rig.other), stopped=overtaken.is_set)
    overtaken.set()
    thread.join(10)
    assert isinstance(ends[0], errors.Conflict)


def test_repeated_order_joins_the_migration(rig, order):
    build(rig, order)
    rig.hypervisor.migration_hangs = True
    live_order = prepared(rig, order, rig.other)
    first, ends = going(rig, live_order)
    second, more = going(rig, live_order)
    rig.driver.live_moves.force(order.server_uuid)
    first.join(10)
    second.join(10)
    assert ends == [None] == more and len(rig.hypervisor.departures) == 1


def test_migration_of_an_earlier_process_is_watched_to_its_end(rig, order):
    build(rig, order)
    rig.hypervisor.migration_hangs = True
    live_order = prepared(rig, order, rig.other)
    thread, _ = going(rig, live_order)
    restarted = LibvirtDriver(rig.driver.tools.settings, rig.hypervisor)
    reported: list[int] = []
    threading.Timer(2.5, lambda: restarted.live_moves.force(order.server_uuid)).start()
    restarted.live_moves.migrate(live_order, lambda percent, progress: reported.append(percent), lambda: False)
    thread.join(10)
    assert reported == [60] and len(rig.hypervisor.departures) == 1
    assert rig.other.driver.live_moves.finish_arrival(move_order(order)) == RUNNING


def test_call_that_is_lost_while_the_guest_goes_is_a_success(rig, order):
    build(rig, order)
    live_order = prepared(rig, order, rig.other)
    rig.hypervisor.migration_lost = True
    rig.driver.live_moves.migrate(live_order, nobody, lambda: False)
    assert rig.other.driver.live_moves.finish_arrival(move_order(order)) == RUNNING


def test_call_that_is_lost_while_the_guest_stands_still_is_no_failure_that_may_be_undone(rig, order, monkeypatch):
    build(rig, order)
    live_order = prepared(rig, order, rig.other)
    monkeypatch.setattr("nova.virt.libvirt.moves.job.OUTCOME_S", 0.5)

    def cut_off(uuid, departure):
        rig.hypervisor.power[uuid] = PowerState.PAUSED  # sent whole; what became of it there was not heard
        raise errors.host.LibvirtDown(host="host1", uri="fake:///", reason="it went away")
    monkeypatch.setattr(rig.hypervisor, "migrate", cut_off)
    with pytest.raises(errors.Unavailable, match="may run on the destination"):
        rig.driver.live_moves.migrate(live_order, nobody, lambda: False)
    rig.hypervisor.power[order.server_uuid] = PowerState.RUNNING
    monkeypatch.setattr(rig.hypervisor, "migrate", lambda uuid, departure: (_ for _ in ()).throw(
        errors.host.LibvirtDown(host="host1", uri="fake:///", reason="it went away")))
    with pytest.raises(errors.Conflict, match="went away"):
        rig.driver.live_moves.migrate(live_order, nobody, lambda: False)


def test_failed_migration_says_why_and_the_next_one_may_succeed(rig, order):
    build(rig, order)
    rig.hypervisor.migration_fails = "the network went away"
    with pytest.raises(errors.Conflict, match="the network went away"):
        rig.driver.live_moves.migrate(prepared(rig, order, rig.other), nobody, lambda: False)
    unbuild(rig.other, order)
    rig.driver.live_moves.migrate(prepared(rig, order, rig.other), nobody, lambda: False)


def test_migration_when_a_host_has_no_post_copy_then_the_guest_goes_without(rig, order, caplog):
    build(rig, order)
    rig.hypervisor.migration_fails = "QEMU command 'migrate-set-capabilities': Postcopy is not supported"
    rig.driver.live_moves.migrate(prepared(rig, order, rig.other), nobody, lambda: False)
    assert [one.post_copy for one in rig.hypervisor.departures] == [True, False]
    assert "vm.unprivileged_userfaultfd" in caplog.text
    assert rig.other.driver.live_moves.finish_arrival(move_order(order)) == RUNNING


@pytest.mark.parametrize("no_post_copy", [False, True])
def test_force_is_post_copy_where_it_can_be_else_a_pause(rig, order, no_post_copy):
    build(rig, order)
    rig.hypervisor.migration_hangs, rig.hypervisor.no_post_copy = True, no_post_copy
    thread, ends = going(rig, prepared(rig, order, rig.other))
    rig.driver.live_moves.force(order.server_uuid)
    if no_post_copy:
        assert rig.hypervisor.power[order.server_uuid] == PowerState.PAUSED
        rig.hypervisor.forced.append("pause")
    thread.join(10)
    assert ends == [None] and rig.hypervisor.forced == ["pause" if no_post_copy else "post-copy"]


def test_pause_that_did_not_help_is_taken_back(rig, order):
    build(rig, order)
    rig.hypervisor.migration_hangs = rig.hypervisor.no_post_copy = True
    thread, ends = going(rig, prepared(rig, order, rig.other))
    rig.driver.live_moves.force(order.server_uuid)
    rig.driver.live_moves.abort(order.server_uuid)
    thread.join(10)
    assert isinstance(ends[0], errors.Conflict) and rig.driver.lifecycle.power_state(order.server_uuid) == RUNNING


# --- what belongs to a guest beside its disks

def with_tpm(rig, order) -> None:
    folder, tpms = rig.driver.tools.folders.of(order.server_uuid), rig.driver.tools.tpms
    tpms.prepare(order.server_uuid, folder)
    (tpms.state(order.server_uuid) / "tpm2").mkdir(parents=True)
    (tpms.state(order.server_uuid) / "tpm2" / "tpm2-00.permall").write_bytes(b"sealed")


def tpm_of(rig, order) -> tuple[bytes, bytes]:
    tpms = rig.driver.tools.tpms
    return tpms.secret(order.server_uuid), (tpms.state(order.server_uuid) / "tpm2" / "tpm2-00.permall").read_bytes()


def test_tpm_and_firmware_variables_follow_a_guest_that_is_off(rig, order):
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    with_tpm(rig, order)
    rig.disk(order, "nvram.fd").write_bytes(b"variables")
    had = tpm_of(rig, order)
    source = rig.driver.cold_moves.leave(order.server_uuid)
    rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)
    rig.other.driver.cold_moves.fetch(move_order(order, source), rig.other.images)
    assert tpm_of(rig.other, order) == had and rig.other.disk(order, "nvram.fd").read_bytes() == b"variables"
    assert not list(rig.other.disk(order, "").glob("tpm.s*")), "no secret is left in the folder"
    rig.driver.cold_moves.forget(order.server_uuid)
    assert rig.driver.tools.tpms.secret(order.server_uuid) is None and tpm_of(rig.other, order) == had


def test_secret_of_a_tpm_is_there_before_the_guest_that_runs(rig, order):
    build(rig, order)
    with_tpm(rig, order)
    live_order = prepared(rig, order, rig.other)
    assert rig.other.driver.tools.tpms.secret(order.server_uuid) == tpm_of(rig, order)[0]
    rig.driver.live_moves.migrate(live_order, nobody, lambda: False)
    for host in (rig, rig.other):
        assert not list(host.disk(order, "").glob("tpm.s*")), "no secret is left in the folder"


def test_disks_that_are_no_files_are_refused_before_anything_is_touched(rig, order):
    build(rig, order)
    folder = rig.driver.tools.folders.of(order.server_uuid)
    first, *others = folder.disks()
    folder.keep_disks((msgspec.structs.replace(first, store="lvm", place="vg/x"), *others))
    with pytest.raises(errors.Conflict, match="stored as lvm"):
        rig.driver.live_moves.describe(order.server_uuid)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    with pytest.raises(errors.Conflict, match="stored as lvm"):
        rig.driver.cold_moves.leave(order.server_uuid)
    assert rig.driver.lifecycle.power_state(order.server_uuid) == SHUTDOWN
    folder.keep_disks((first, *others))


# --- shared storage

def test_guest_on_shared_storage_moves_and_stays_where_it_is(shared):
    order = make_order(shared.bridge)
    build(shared, order)
    inode = shared.disk(order).stat().st_ino
    live_order = prepared(shared, order, shared.other)
    assert live_order.arrival.shared and {host.driver.guests()[0].server_uuid for host in (shared, shared.other)}
    with pytest.raises(errors.HostRefused, match="share"):
        again = move_order(order, shared.driver.live_moves.describe(order.server_uuid), block=True)
        shared.other.driver.live_moves.prepare_arrival(again, None)
    shared.driver.live_moves.migrate(live_order, nobody, lambda: False)
    assert shared.hypervisor.departures[-1].disks == ()
    assert shared.other.driver.live_moves.finish_arrival(move_order(order)) == RUNNING
    unbuild(shared, order)  # what is another host's now stays
    assert shared.disk(order).stat().st_ino == inode and shared.driver.guests() == ()
    assert [guest.epoch for guest in shared.other.driver.guests()] == [3]
    unbuild(shared.other, order)
    assert shared.left_over(order) == [] == shared.other.left_over(order)


def test_destination_on_shared_storage_that_gives_up_leaves_the_guest_as_it_was(shared):
    order = make_order(shared.bridge)
    build(shared, order)
    before = sorted(path.name for path in shared.disk(order, "").iterdir())
    prepared(shared, order, shared.other)
    unbuild(shared.other, order)
    assert shared.other.driver.guests() == ()
    after = sorted(path.name for path in shared.disk(order, "").iterdir()
                   if not path.name.startswith(("probe", "exports")))
    assert after == before and shared.driver.guests()[0].power_state == RUNNING


def test_cold_move_on_shared_storage_copies_without_the_network(shared):
    order = make_order(shared.bridge)
    build(shared, order)
    shared.driver.lifecycle.shut_down(order.server_uuid, 0)
    shared.mark(order, "precious")
    source = msgspec.structs.replace(off_and_left(shared, order), port=0)
    assert shared.other.driver.cold_moves.kept_sources() == frozenset()
    shared.other.driver.cold_moves.fetch(move_order(order, source), shared.other.images)
    assert shared.marked(order) == "precious"
    shared.mark(order, "changed")
    unbuild(shared.other, order)
    assert shared.driver.cold_moves.restore_source(order.server_uuid) is True and shared.marked(order) == "precious"


def test_what_another_host_put_aside_on_shared_storage_is_left_alone(shared):
    order = make_order(shared.bridge)
    build(shared, order)
    shared.driver.lifecycle.shut_down(order.server_uuid, 0)
    shared.mark(order, "precious")
    shared.driver.cold_moves.leave(order.server_uuid)
    pid = pid_of(shared, order)
    shared.other.driver.cold_moves.forget(order.server_uuid)
    assert shared.other.driver.cold_moves.restore_source(order.server_uuid) is False
    assert pid_of(shared, order) == pid and Path(f"/proc/{pid}/exe").exists()
    with pytest.raises(errors.NotFound):
        shared.other.driver.cold_moves.leave(order.server_uuid)
    assert shared.driver.cold_moves.restore_source(order.server_uuid) is True and shared.marked(order) == "precious"
    assert eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), 5)


# --- small things

@pytest.mark.parametrize("probe", ["", "/", "a/../b", "../a", "a/b/c", "/etc/passwd", "a/."])
def test_probe_that_is_no_name_is_not_seen(tmp_path, probe):
    assert tell.sees(tmp_path, probe) is False


def test_source_does_not_open_what_a_destination_makes_up(rig, order):
    build(rig, order)
    going_to = prepared(rig, order, rig.other)
    gate = going_to.arrival.gate

    def other(**changes) -> dict:
        return {"gate": msgspec.structs.replace(gate, **changes)}
    for change, said in (({"gate": None}, "older release"), ({"facts": {}}, "missing or invalid"),
                         (other(address="unix:///x"), "its listener is"), (other(address="a;b"), "its listener is"),
                         (other(port=0), "its listener is"), (other(port=65536), "its listener is"),
                         (other(secret="x"), "is invalid"), (other(certificate="x" * 5000), "is invalid"),
                         (other(certificate="x"), "no way"),
                         ({"facts": {"folder": "/x", "bases": "[", "vifs": ""}}, "missing or invalid")):
        arrival = msgspec.structs.replace(going_to.arrival, **change)
        with pytest.raises(errors.HostRefused, match=said):
            rig.driver.live_moves.migrate(msgspec.structs.replace(going_to, arrival=arrival), nobody, lambda: False)
    assert rig.hypervisor.departures == [] and rig.driver.lifecycle.power_state(order.server_uuid) == RUNNING


@pytest.mark.parametrize(("option", "value"), [("disk_export_ports", "9-3"), ("disk_export_ports", "x"),
                                               ("live_migration_ports", "70000-70001")])
def test_setting_that_cannot_be_is_named(option, value):
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([])
    conf.set_override(option, value, "libvirt")
    with pytest.raises(errors.config.Libvirt, match=option):
        move_settings_of(conf, conf.libvirt)


def test_settings_say_where_others_reach_this_host():
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([])
    conf.set_override("live_migration_inbound_addr", "fd00::1", "libvirt")
    made = move_settings_of(Options.of(conf), conf.libvirt)
    assert (made.address, made.migration_ports, made.completion_s) == ("fd00::1", (49152, 49215), 800)
    assert settings().moves == MoveSettings()


def test_settings_when_the_files_are_read_again_then_the_next_migration_has_the_new_bound(tmp_path):
    file = tmp_path / "nova.conf"
    file.write_text("[libvirt]\nlive_migration_completion_timeout = 100\n")
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([], default_config_files=[str(file)])
    options = Options.of(conf)
    made = move_settings_of(options, options.libvirt)
    before = MigrationWatch(made, GIB)
    file.write_text("[libvirt]\nlive_migration_completion_timeout = 10\n"
                    "live_migration_timeout_action = force_complete\n")
    conf.mutate_config_files()
    after = MigrationWatch(made, GIB)
    assert (made.now().completion_s, made.now().force_at_timeout) == (10, True)
    assert after.due(20) == Due(Act.FORCE) and before.due(20) != Due(Act.FORCE) and before.due(200) == Due(Act.ABORT)
