"""``nova-manage cleanup``, and doctor's line about them."""

from __future__ import annotations

import argparse
import datetime

import pytest

from nova import errors
from nova.manage import doctor, main
from nova.model.host.services import PendingCleanup
from nova.rpc import transport
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.local import LocalBus
from tests.fakes.conductor import FakeConductor
from tests.unit.manage.test_doctor import options

SINCE = datetime.datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture
def conductor(monkeypatch: pytest.MonkeyPatch) -> FakeConductor:
    """Stands where the bus would be."""
    fake = FakeConductor()
    fake.debts = [PendingCleanup(id=number, host=host, server_uuid=f"u-{number}", epoch=2, step="destroy_guests",
                                 created_at=SINCE) for number, host in ((1, "gone"), (2, "away"))]
    bus = LocalBus()
    bus.serve(ConductorRPC, fake)
    monkeypatch.setattr(transport, "Bus", lambda _options, _host: bus)
    return fake


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    given = main.parser().parse_args(["cleanup", *words])
    return given.command.run(argparse.Namespace(host="ctl"), given), capsys.readouterr().out


def test_list_shows_cleanups_of_all_hosts_or_of_one(conductor: FakeConductor, capsys) -> None:
    code, text = run(capsys, "list")
    assert code == 0 and all(word in text for word in ("gone", "away", "u-1", "destroy_guests", "2026-01-02 03:04:05"))
    for words in (("--host", "gone"), ("gone",)):
        one = run(capsys, "list", *words)[1]
        assert "u-1" in one and "u-2" not in one
    assert run(capsys, "list", "--host", "here") == (0, "No cleanup is pending on here.\n")


def test_drop_without_confirmation_drops_nothing(conductor: FakeConductor, capsys) -> None:
    code, text = run(capsys, "drop", "gone")
    assert code == 1 and "u-1" in text and "--yes" in text and len(conductor.debts) == 2


def test_drop_with_confirmation_drops_that_hosts(conductor: FakeConductor, capsys) -> None:
    assert run(capsys, "drop", "gone", "--yes")[0] == 0
    assert [one.host for one in conductor.debts] == ["away"]
    assert run(capsys, "drop", "gone", "--yes")[0] == 3 == run(capsys, "drop", "gone")[0]


class Bus:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __call__(self, *args: object) -> Bus:
        return self

    def client(self, contract: type) -> Bus:
        return self

    def list_debts(self, host: str | None) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(("answer", "state", "reported"), [
    ((), doctor.OK, "no cleanup is pending"), (errors.Unavailable("away"), doctor.WARN, "no conductor answers"),
    (tuple(PendingCleanup(id=one, host=f"h{one % 7}", server_uuid="u", epoch=1, step="s") for one in range(14)),
     doctor.WARN, "14 cleanups wait for hosts that could not be reached: h0 (2), h1 (2), h2 (2), h3 (2), h4 (2) and 2"
     )])
def test_doctor_says_where_cleanups_are_pending(monkeypatch: pytest.MonkeyPatch, answer: object, state: str,
                                                reported: str) -> None:
    monkeypatch.setattr(transport, "Bus", Bus(answer))  # the broker's client
    finding = doctor.cleanups(options())
    assert finding.state == state and reported in finding.what


def test_doctor_on_a_compute_host_asks_nobody() -> None:
    assert doctor.cleanups(options(compute_driver="libvirt.LibvirtDriver")).state == doctor.OK


@pytest.mark.parametrize(("old", "new"), [(("debts", "list"), ("cleanup", "list")),
                                          (("debts", "forgive", "h"), ("cleanup", "drop", "h")),
                                          (("host", "expel", "h"), ("host", "revoke", "h")),
                                          (("stranger", "list"), ("orphan", "list")),
                                          (("stranger", "adopt", "7"), ("orphan", "adopt", "7")),
                                          (("stranger", "remove", "7"), ("orphan", "remove", "7"))])
def test_command_when_it_has_its_old_name_then_it_is_the_same(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    parser = main.parser()
    assert parser.parse_args(old).command is parser.parse_args(new).command
