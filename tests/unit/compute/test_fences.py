"""Epoch files: what is older is refused, over restarts too, until a day after the guest is gone."""

from __future__ import annotations

import datetime
import tracemalloc

import pytest

from nova import errors
from nova.compute.orders.fences import Fences
from tests.fakes.compute import new_uuid


@pytest.fixture
def fences(tmp_path, clock):
    return Fences(tmp_path, clock)


def test_check_when_the_epoch_is_older_then_it_is_refused_after_a_restart_too(fences, tmp_path, clock):
    server = new_uuid()
    fences.note(server, 7)
    for each in (fences, Fences(tmp_path, clock)):
        each.check(server, 7)
        with pytest.raises(errors.host.OrderOvertaken):
            each.check(server, 6)


def test_note_when_an_older_epoch_comes_later_then_the_newest_stays(fences):
    server = new_uuid()
    fences.note(server, 7, built=True)
    fences.note(server, 5, destroyed=True)
    known = fences.known(server)
    assert (known.epoch, known.built, known.destroyed) == (7, 7, 5)


@pytest.mark.parametrize("bad", ["../../etc/passwd", "", "x", "A" * 40, "6F1C2D0A58C44C559F0E1D0F7D1F9A11"])
def test_note_when_the_uuid_is_none_then_no_file_is_touched(fences, tmp_path, bad):
    with pytest.raises(errors.Invalid):
        fences.note(bad, 1)
    assert not list(tmp_path.iterdir())


def test_known_when_asked_of_strangers_then_they_are_not_remembered(fences):
    for _ in range(10):
        fences.known(new_uuid())
    assert not fences._known


def test_fences_when_more_servers_come_than_memory_is_for_then_their_files_are_read_again(fences, tmp_path, clock,
                                                                                          monkeypatch):
    monkeypatch.setattr("nova.compute.orders.fences.KEPT_IN_MEMORY", 3)
    servers = [new_uuid() for _ in range(5)]
    for epoch, server in enumerate(servers):
        fences.note(server, epoch)
    assert len(fences._known) == 3
    assert [fences.known(server).epoch for server in servers] == [0, 1, 2, 3, 4]
    clock.advance(days=2)
    assert fences.expire(()) == 5 and not fences._known


def test_expire_when_there_are_thousands_then_they_are_not_all_in_memory(fences):
    for _ in range(2000):
        fences.note(new_uuid(), 1)
    tracemalloc.start()
    try:
        fences.expire(())
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_expire_when_files_are_kept_for_an_hour_then_they_go_after_it(tmp_path, clock):
    fences = Fences(tmp_path, clock, datetime.timedelta(hours=1))
    fences.note(new_uuid(), 1, destroyed=True)
    clock.advance(minutes=59)
    assert fences.expire(()) == 0
    clock.advance(minutes=2)
    assert fences.expire(()) == 1


def test_known_when_the_file_is_damaged_then_it_counts_as_absent(tmp_path, clock, caplog):
    server = new_uuid()
    (tmp_path / server).write_bytes(b"\0\0\0")
    fences = Fences(tmp_path, clock)
    fences.check(server, 0)
    assert "damaged" in caplog.text


def test_expire_when_a_day_has_passed_then_only_fences_of_absent_guests_go(fences, tmp_path, clock):
    here, gone, fresh = new_uuid(), new_uuid(), new_uuid()
    fences.note(here, 1, built=True)
    fences.note(gone, 2, destroyed=True)
    clock.advance(hours=23)
    assert fences.expire({here}) == 0
    fences.note(fresh, 3, destroyed=True)
    clock.advance(hours=2)
    (tmp_path / "README").write_text("not ours")
    assert fences.expire({here}) == 1
    assert {path.name for path in tmp_path.iterdir()} == {here, fresh, "README"}
    fences.check(gone, 0)


def test_expire_when_a_destroy_is_repeated_then_the_day_begins_again(fences, clock):
    server = new_uuid()
    fences.note(server, 1, destroyed=True)
    clock.advance(hours=20)
    fences.note(server, 1, destroyed=True)
    clock.advance(hours=20)
    assert fences.expire(()) == 0
