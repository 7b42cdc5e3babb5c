"""Encrypted volumes on a libvirt host: their passphrases' way to libvirt, and their end."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.volumes import BACK_END, LUKS, VolumeConnection, VolumeDisk
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.volumes import luks
from nova.virt.libvirt.xml.arrival import ArrivalPaths, arrival_xml
from nova.virt.libvirt.xml.disks import find, remote_sources
from tests.contract.driver_volume_cases import attach, detach, of_file, volume_order
from tests.unit.virt.libvirt.orders import FOLDER, UUID
from tests.unit.virt.libvirt.test_volume_disks import DATA, RBD, device, guest, quick, xml_of
from tests.unit.virt.libvirt.test_volume_kinds import OTHER, Host, nfs, silent

__all__ = ["guest", "quick"]  # fixtures

PASSPHRASE = "0badc0de" * 8


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def secret(volume_id: str = DATA, passphrase: str = PASSPHRASE, **data: Any) -> VolumeDisk:
    one = nfs(volume_id, encrypted=True, **data)
    assert one.connection is not None
    connection = msgspec.structs.replace(one.connection, encryption=LUKS, passphrase=passphrase)
    return msgspec.structs.replace(one, connection=connection)


def test_passphrase_when_the_volume_is_connected_then_libvirt_alone_has_it_until_it_is_let_go(host):
    host.connect(secret())
    assert host.hypervisor.secrets == {DATA: PASSPHRASE.encode()}
    [record] = host.folders.of(UUID).volumes()
    assert record.encrypted
    for path in host.folders.of(UUID).path.rglob("*"):
        assert not path.is_file() or PASSPHRASE not in path.read_text()
    host.connections.release(UUID, DATA)
    host.connections.release(UUID, DATA)
    assert host.hypervisor.secrets == {} and host.records() == []


def test_secret_when_libvirt_is_told_of_it_then_it_is_private_in_memory_and_the_volumes():
    tree = ET.fromstring(luks.secret_xml(DATA))
    assert (tree.get("private"), tree.get("ephemeral")) == ("yes", "yes")
    assert (tree.findtext("uuid"), tree.findtext("usage[@type='volume']/volume")) == (DATA, DATA)


def test_passphrase_when_an_order_brings_none_then_the_one_that_is_there_is_used(host):
    host.connect(secret())
    host.connect(secret(passphrase=""))
    host.connect(silent(secret()))
    assert host.hypervisor.secrets == {DATA: PASSPHRASE.encode()}


@pytest.mark.parametrize("again", [secret(passphrase=""), silent(secret())])
def test_passphrase_when_libvirtd_was_started_anew_and_the_order_brings_none_then_it_is_refused(host, again):
    host.connect(secret())
    host.hypervisor.secrets.clear()
    with pytest.raises(errors.host.VolumeKey, match=f"{DATA} is encrypted"):
        host.connect(again)
    assert host.records() == [DATA]  # the host reaches it as before
    host.connect(secret())
    assert host.hypervisor.secrets


def test_passphrase_when_none_was_ever_there_then_nothing_is_connected(host):
    with pytest.raises(errors.host.VolumeKey):
        host.connect(secret(passphrase=""))
    assert host.records() == [] and not host.runner.mounted


def test_passphrase_when_the_connect_fails_after_it_then_it_is_gone(host):
    host.runner.fails = "no route to host"
    with pytest.raises(errors.host.VolumeMount):
        host.connect(secret())
    assert host.hypervisor.secrets == {} and host.records() == []


def test_passphrase_when_we_died_right_after_it_then_disconnect_takes_it(host):
    class Died(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Died
    host.mount = die
    with pytest.raises(Died):
        host.connect(secret())
    assert host.hypervisor.secrets and host.records() == [DATA]
    host.connections.disconnect(UUID)
    assert host.hypervisor.secrets == {} and host.records() == []


def test_passphrase_when_two_guests_have_the_volume_then_it_goes_with_the_last(host):
    host.connect(secret())
    host.connect(secret(), uuid=OTHER)
    host.connections.disconnect(UUID)
    assert host.hypervisor.secrets
    host.connections.disconnect(OTHER)
    assert host.hypervisor.secrets == {} and not host.runner.mounted


def test_passphrase_when_another_volume_of_the_export_goes_then_it_stays(host):
    host.connect(secret(), nfs("plain"))
    host.connections.release(UUID, "plain")
    assert host.hypervisor.secrets
    host.connections.release(UUID, DATA)
    assert host.hypervisor.secrets == {}


@pytest.mark.parametrize("what", [nfs(encrypted=True), msgspec.structs.replace(nfs(), device=device("vol-1",
                                                                                                 encrypted=True))])
def test_encryption_when_the_order_does_not_say_how_then_the_volume_is_refused(host, what):
    with pytest.raises(errors.host.VolumeData, match="older release"):
        host.connect(what)


def test_encryption_when_it_is_the_back_ends_then_the_host_has_nothing_to_do_with_it(host):
    one = nfs(encrypted=True)
    connection = msgspec.structs.replace(one.connection, encryption=BACK_END)
    host.connect(msgspec.structs.replace(one, connection=connection))
    [record] = host.folders.of(UUID).volumes()
    assert not record.encrypted and host.hypervisor.secrets == {}


def test_file_when_cinder_calls_its_format_luks_then_qemu_reads_it_as_raw_within(host):
    host.connect(secret(format="luks"))
    [record] = host.folders.of(UUID).volumes()
    assert record.format == "raw" and record.encrypted


def test_connection_when_it_is_shown_then_its_passphrase_is_not():
    connection = secret().connection
    assert connection is not None and PASSPHRASE not in repr(secret()) + repr(connection) + repr([connection])


# --- the guest

def test_guest_when_it_arrives_by_migration_then_its_disk_has_the_destinations_source_with_the_secret():
    there = xml_of((device(), msgspec.structs.replace(RBD, encrypted=True, hosts=(("10.9.9.9", "6789"),))))
    left = xml_of((device(), msgspec.structs.replace(RBD, encrypted=True)))
    moved = arrival_xml(left, str(FOLDER), ArrivalPaths(folder=str(FOLDER), volumes=remote_sources(there)))
    disk = find(moved, DATA)
    assert disk is not None and disk.find("source/host").get("name") == "10.9.9.9"
    assert [one.get("uuid") for one in disk.iter("secret") if one.get("type") == "passphrase"] == [DATA]


def header(sectors: int) -> bytes:
    return b"LUKS\xba\xbe\0\1" + b"\0" * 96 + struct.pack(">I", sectors)


def on_disk(where: Path, **changes: Any) -> VolumeRecord:
    return VolumeRecord(**{"volume_id": DATA, "kind": "local", "path": str(where), "encrypted": True, **changes})


def test_header_when_the_volume_is_a_file_then_its_own_word_counts(tmp_path):
    (tmp_path / "one").write_bytes(header(4040))
    assert luks.header_bytes(on_disk(tmp_path / "one")) == 4040 * 512


@pytest.mark.parametrize(("changes", "size"), [({"encrypted": False}, 0), ({"format": "qcow2"}, 0),
                                              ({"store": "rbd", "path": "pool/one"}, 2 << 20)])
def test_header_when_there_is_none_or_it_cannot_be_read_then_it_is_what_it_can_be_at_most(tmp_path, changes, size):
    assert luks.header_bytes(on_disk(tmp_path / "none", **changes)) == size


@pytest.mark.parametrize("content", [None, b"", b"LUKS\xba\xbe\0\2" + b"\0" * 200, b"\0" * 200])
def test_header_when_there_is_no_such_thing_then_it_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "one").write_bytes(content)
    with pytest.raises(errors.host.VolumeData):
        luks.header_bytes(on_disk(tmp_path / "one"))


def test_volume_when_it_has_grown_then_the_guest_sees_what_is_behind_the_header(quick, guest, tmp_path):
    plain = of_file(tmp_path / "volume", size_gb=3)
    with (tmp_path / "volume").open("r+b") as volume:
        volume.write(header(4040))
    assert plain.connection is not None
    connection = VolumeConnection(kind="local", data=plain.connection.data, encryption=LUKS, passphrase=PASSPHRASE)
    one = msgspec.structs.replace(plain, connection=connection)
    attach(quick.driver, guest, one)
    quick.driver.volumes.extend_volume(volume_order(guest, one, True))
    assert quick.hypervisor.disk_sizes == {(guest.server_uuid, "vdd"): (3 << 30) - 4040 * 512}
    detach(quick.driver, guest, one)
    assert quick.hypervisor.secrets == {}
