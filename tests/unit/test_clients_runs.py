"""What a run of `bin/test clients` says and how it ends, whatever the judges do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import __main__ as clients
from tests.clients import judges
from tests.clients.judges import Heard
from tests.clients.verdict import Verdict

GOOD = Verdict(("a", "b"), {}, {"c": "no Cinder"}, {"d": "no Swift"}, ("e",))
BAD = Verdict(("a",), {"f": "1 != 2"})


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for module in (clients, judges):
        monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    return tmp_path


def hears(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Verdict]) -> list[str]:
    """Judges that say this; one that is not named breaks down. Who was heard."""
    heard: list[str] = []

    def hear(name: str, venvs: Path, speed: float) -> Heard:
        heard.append(name)
        if name not in answers:
            raise AssertionError("nova-all is not ready")
        return Heard(name, answers[name], 1.0)
    monkeypatch.setattr(clients, "hear", hear)
    return heard


def test_run_when_nothing_fails_then_what_is_known_counts_as_skipped(
        monkeypatch: pytest.MonkeyPatch, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hears(monkeypatch, {"ansible": GOOD})
    assert clients.main(["ansible", "--counts", str(logs / "counts")]) == 0
    assert (logs / "counts").read_text() == "2 0 3"
    said = capsys.readouterr().out
    assert "KNOWN ansible: c\n       no Cinder" in said
    assert "ansible: 2 passed, 1 failed (1 known), 1 skipped, 1 not tried in 1 s" in said


def test_run_when_a_test_fails_then_it_is_told_and_the_run_fails(
        monkeypatch: pytest.MonkeyPatch, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hears(monkeypatch, {"ansible": GOOD, "libcloud": BAD})
    assert clients.main(["--quick"]) == 1
    said = capsys.readouterr().out
    assert "FAILED libcloud: f\n       1 != 2" in said and "3 passed, 1 failed, 3 skipped" in said


def test_run_when_a_judge_breaks_down_then_the_others_are_heard_and_the_run_fails(
        monkeypatch: pytest.MonkeyPatch, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard = hears(monkeypatch, {"ansible": GOOD})
    assert clients.main(["ansible", "libcloud"]) == 1
    assert sorted(heard) == ["ansible", "libcloud"] and "nova-all is not ready" in capsys.readouterr().out


def test_run_when_no_judge_is_named_then_all_are_heard(monkeypatch: pytest.MonkeyPatch, logs: Path) -> None:
    heard = hears(monkeypatch, dict.fromkeys(judges.JUDGES, GOOD))
    assert clients.main([]) == 0 and sorted(heard) == sorted(judges.JUDGES)


def test_run_when_a_judge_is_unknown_then_those_there_are_are_named(
        logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        clients.main(["terraform"])
    assert "gophercloud" in capsys.readouterr().err


def test_judge_when_it_cannot_run_here_then_it_is_skipped_with_the_reason(
        monkeypatch: pytest.MonkeyPatch, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(judges.JUDGES, "gophercloud", judges.JUDGES["gophercloud"]._replace(unable=lambda: "no go"))
    assert clients.main(["gophercloud"]) == 1  # a run that heard nobody is no success
    assert "gophercloud: skipped: no go" in capsys.readouterr().out
    assert judges.hear("gophercloud", logs, 1.0).verdict.counts == (0, 0, 1)
