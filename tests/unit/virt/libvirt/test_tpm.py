from __future__ import annotations

import pytest

from nova import errors
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.tpm import MARK, Tpms, secret_xml
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.orders import UUID


class Capacities:
    def __init__(self, tmp_path) -> None:
        self.hypervisor, self.folder = FakeHypervisor(), Folder(tmp_path / UUID)
        self.folder.make()
        self.tpms = Tpms(self.hypervisor, tmp_path / "swtpm")

    def start_guest(self) -> None:
        """libvirt makes the state when the guest starts."""
        self.tpms.state(UUID).mkdir(parents=True)


@pytest.fixture
def room(tmp_path):
    return Capacities(tmp_path)


def test_secret_is_made_once_and_kept(room):
    room.tpms.prepare(UUID, room.folder)
    first = room.tpms.secret(UUID)
    room.start_guest()
    room.tpms.prepare(UUID, room.folder)
    assert room.tpms.secret(UUID) == first and len(first) == 64


def test_secrets_of_two_guests_are_not_the_same(room):
    other = UUID[:-1] + "2"
    room.tpms.prepare(UUID, room.folder)
    room.tpms.prepare(other, room.folder)
    assert len(set(room.hypervisor.secrets.values())) == 2


def test_secret_that_was_lost_is_not_made_anew_under_an_older_state(room):
    room.tpms.prepare(UUID, room.folder)
    room.start_guest()
    room.hypervisor.secrets.clear()
    with pytest.raises(errors.guest.TpmSecretLost, match=UUID):
        room.tpms.prepare(UUID, room.folder)
    assert room.hypervisor.secrets == {}


def test_removal_takes_state_secret_and_mark_and_may_be_repeated(room):
    room.tpms.prepare(UUID, room.folder)
    room.start_guest()
    for _ in range(2):
        room.tpms.remove(UUID, room.folder)
        assert not room.tpms.state(UUID).exists() and room.hypervisor.secrets == {}
        assert not room.folder.file(MARK).exists()


def test_removal_after_a_death_between_mark_and_secret_or_start_finds_all(room):
    room.tpms.prepare(UUID, room.folder)  # the guest never started: there is no state
    room.tpms.remove(UUID, room.folder)
    assert room.hypervisor.secrets == {}


def test_removal_of_a_guest_without_a_tpm_does_not_ask_libvirt(room):
    room.hypervisor.drop_secret = None  # it would be called
    room.tpms.remove(UUID, room.folder)


def test_removal_while_libvirt_is_away_can_be_repeated(room, monkeypatch):
    room.tpms.prepare(UUID, room.folder)

    def down(secret_uuid):
        raise errors.Unavailable("down")
    with monkeypatch.context() as broken:
        broken.setattr(room.hypervisor, "drop_secret", down)
        with pytest.raises(errors.Unavailable):
            room.tpms.remove(UUID, room.folder)
    room.tpms.remove(UUID, room.folder)
    assert room.hypervisor.secrets == {}


def test_secret_from_another_host_opens_the_state_here(room):
    room.tpms.bring(UUID, b"from there")
    room.start_guest()
    room.tpms.prepare(UUID, room.folder)
    assert room.tpms.secret(UUID) == b"from there"


@pytest.mark.parametrize("bad", ["../../etc", "x"])
def test_state_of_what_is_no_uuid_is_refused(room, bad):
    with pytest.raises(ValueError):
        room.tpms.state(bad)


def test_secret_is_on_disk_for_libvirt_alone_and_readable_by_its_manager():
    assert 'ephemeral="no" private="no"' in secret_xml(UUID) and f"tpm-{UUID}" in secret_xml(UUID)
