"""``nova-manage host``: what is said of hosts that claim too much, or whose secret is closed; and keys."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.manage import enrolment_commands, main
from nova.model.base import utcnow
from nova.model.host.services import EnrolledHost
from nova.model.security.secret_wrap import SecretWrap


class Conductor:
    def __init__(self, *hosts: EnrolledHost) -> None:
        self.hosts = hosts
        self.accepted: list[tuple[str, Mapping[str, int]]] = []

    def list_services(self, query: object) -> tuple[Any, ...]:
        return ()

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        return self.hosts

    def accept_host(self, host: str, room: Mapping[str, int]) -> None:
        self.accepted.append((host, room))


def given(**words: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"zone": None, "host": "h1", "json": False, **words})


@pytest.mark.parametrize(("fields", "state"), [
    ({"claimed_room": {"VCPU": 9}}, "reports 9 VCPU (accepted: 4): nova-manage host accept h1"),
    ({"claimed_room": {"VCPU": 8}}, "registered its secret"),
    ({"readable": False}, "no key of [conductor]host_secret_key decrypts its secret")])
def test_list_when_a_host_waits_for_something_then_its_state_says_so(fields: dict[str, Any], state: str) -> None:
    host = EnrolledHost(host="h1", joined_at=utcnow(), accepted_room={"VCPU": 4}, **fields)
    rows: list[Sequence[Any]] = []
    enrolment_commands.listed(Conductor(host), given(), lambda heads, lines: rows.extend(lines))  # type: ignore[arg-type]
    assert rows[0][0] == "h1" and rows[0][-1].startswith(state)


def test_accept_then_what_is_printed_is_what_is_accepted() -> None:
    conductor, said = Conductor(EnrolledHost(host="h1", claimed_room={"VCPU": 9, "DISK_GB": 7})), []
    assert enrolment_commands.accept(conductor, given(), said.append) == 0  # type: ignore[arg-type]
    assert conductor.accepted == [("h1", {"VCPU": 9, "DISK_GB": 7})] and "7 DISK_GB, 9 VCPU" in said[0]


def test_accept_when_the_host_said_nothing_yet_then_that_is_said() -> None:
    said: list[str] = []
    assert enrolment_commands.accept(Conductor(), given(), said.append) == 0  # type: ignore[arg-type]
    assert "has not reported" in said[0]


def test_new_key_then_it_can_be_used_and_no_two_are_alike() -> None:
    said: list[str] = []
    for _ in range(2):
        assert enrolment_commands.new_key(said.append) == 0
    assert len(set(said)) == 2 and SecretWrap(said).wrapped("a", "b")


# -- enrolling

class Enrolling:
    """``enrolled``: who may run what; ``cells``: the named cell of each; ``asked``: hosts in the order of the calls.
    ``refused``: the errors for some hosts."""

    def __init__(self, refused: Mapping[str, errors.NovaError] | None = None) -> None:
        self.enrolled: dict[str, tuple[str, ...]] = {}
        self.cells: dict[str, str] = {}
        self.asked: list[str] = []
        self.refused = refused or {}

    def enroll_host(self, host: str, runs: tuple[str, ...], _addresses: tuple[str, ...], cell: str) -> str:
        self.asked.append(host)
        if host in self.refused:
            raise self.refused[host]
        self.enrolled[host], self.cells[host] = runs, cell
        return f"token-of-{host}"


def enrolling(*words: str, refused: Mapping[str, errors.NovaError] | None = None
              ) -> tuple[int, list[str], Enrolling]:
    conductor, said = Enrolling(refused), []
    parsed = main.parser().parse_args(["host", "enroll", *words])
    return enrolment_commands.enroll(conductor, parsed, said.append), said, conductor  # type: ignore[arg-type]


def test_enroll_when_it_is_one_host_then_its_token_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert enrolling("h1")[:2] == (0, ["token-of-h1"])
    assert "nova-manage host rights h1" in capsys.readouterr().err


def test_enroll_when_there_are_several_then_each_token_stands_behind_its_host(capsys: pytest.CaptureFixture[str]
                                                                             ) -> None:
    code, said, conductor = enrolling("h1", "h2", "--runs", "nova-compute,nova-api-metadata")
    assert (code, said) == (0, ["h1 token-of-h1", "h2 token-of-h2"])
    assert conductor.enrolled == dict.fromkeys(("h1", "h2"), ("nova-compute", "nova-metadata"))
    assert "nova-manage host rights h2" in capsys.readouterr().err


def test_enroll_when_a_cell_is_named_then_each_host_is_enrolled_there() -> None:
    assert enrolling("h1", "h2", "--cell", "cell2")[2].cells == {"h1": "cell2", "h2": "cell2"}
    assert enrolling("h1")[2].cells == {"h1": ""}


@pytest.mark.parametrize("names", [("h1",), ("h1", "h2", "h3")])
def test_enroll_when_tokens_are_written_then_each_is_in_a_file_of_its_own_and_nowhere_else(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]) -> None:
    (tmp_path / "t-h1").write_text("an old one")
    code, said, _conductor = enrolling(*names, "--write", str(tmp_path / "t-{host}"))
    assert code == 0 and said == [] and "token-of" not in capsys.readouterr().err
    for name in names:
        file = tmp_path / f"t-{name}"
        assert file.read_text() == f"token-of-{name}\n" and file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("words", [("--write", "/nowhere/t"), ("--console-address", "192.0.2.1")])
def test_enroll_when_an_option_cannot_be_for_several_then_nobody_is_enrolled(words: tuple[str, str]) -> None:
    code, said, conductor = enrolling("h1", "h2", *words)
    assert code == 2 and len(said) == 1 and not conductor.enrolled
    assert words[0] == "--write" or enrolling("h1", *words)[0] == 0


BAD_NAME = {"h2": errors.host.BadName(host="h2", longest=200)}


def test_enroll_when_one_of_several_is_refused_then_it_is_named_and_the_others_are_enrolled(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, conductor = enrolling("h1", "h2", "h3", refused=BAD_NAME)
    told = capsys.readouterr().err
    assert (code, said, set(conductor.enrolled)) == (1, ["h1 token-of-h1", "h3 token-of-h3"], {"h1", "h3"})
    assert f"Not enrolled: h2. {BAD_NAME['h2'].message} Then run this command again" in told
    assert "rights h3" in told and "rights h2" not in told


def test_enroll_when_a_host_is_refused_then_its_former_token_file_stays_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "t-h2").write_text("a former one")
    assert enrolling("h1", "h2", "--write", str(tmp_path / "t-{host}"), refused=BAD_NAME)[0] == 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "t-h1": "token-of-h1\n", "t-h2": "a former one"}


def test_enroll_when_its_only_host_is_refused_then_the_error_is_raised(tmp_path: Path) -> None:
    with pytest.raises(errors.NovaError, match="h2"):
        enrolling("h2", "--write", str(tmp_path / "t"), refused=BAD_NAME)
    assert not list(tmp_path.iterdir())


def test_enroll_when_a_token_file_cannot_be_written_then_its_host_is_not_enrolled(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h1").mkdir()
    code, _said, conductor = enrolling("h1", "h2", "--write", str(tmp_path / "{host}" / "token"))
    assert code == 1 and conductor.asked == ["h1"]
    assert "Not enrolled: h2. " in (told := capsys.readouterr().err) and str(tmp_path / "h2") in told
    assert (tmp_path / "h1" / "token").read_text() == "token-of-h1\n"


def test_enroll_when_no_conductor_answers_then_the_rest_is_named_and_not_tried(
        capsys: pytest.CaptureFixture[str]) -> None:
    code, said, conductor = enrolling("h1", "h2", "h3", refused={"h2": errors.Unavailable("No conductor answers.")})
    assert (code, said, conductor.asked) == (1, ["h1 token-of-h1"], ["h1", "h2"])
    assert "Not enrolled: h2, h3. No conductor answers." in capsys.readouterr().err


def test_enroll_when_a_host_is_named_twice_then_it_gets_one_token() -> None:
    assert enrolling("h1", "h1")[1] == ["token-of-h1"]
    assert enrolling("h1", "h2", "h1")[2].asked == ["h1", "h2"]


# -- shutting out

class Expelling:
    def expel_host(self, host: str) -> None:
        assert host == "h1"


class Rabbitmqctl:
    """Stands for what runs it; ``problem``: why it cannot."""

    def __init__(self, problem: str = "") -> None:
        self.problem, self.ran = problem, []  # type: str, list[list[str]]

    def run(self, argv: list[str], **_how: object) -> None:
        self.ran.append(argv)
        if self.problem:
            raise errors.host.CommandFailed(command=argv[0], where="here", reason=self.problem)


def expelling(runner: Rabbitmqctl) -> list[str]:
    said: list[str] = []
    parsed = main.parser().parse_args(["host", "revoke", "h1"])
    assert enrolment_commands.expel(Expelling(), parsed, said.append, runner) == 0  # type: ignore[arg-type]
    return said


def test_expel_when_rabbitmqctl_can_be_run_then_the_broker_user_is_deleted() -> None:
    runner = Rabbitmqctl()
    assert "The broker user host-h1 is deleted, and its connections are closed." in expelling(runner)
    assert runner.ran == [["rabbitmqctl", "--quiet", "delete_user", "host-h1"]]


@pytest.mark.parametrize("problem", ["it is not installed", "User host-h1 does not exist", "Only root can run it"])
def test_expel_when_rabbitmqctl_fails_then_the_reason_and_the_command_are_said(problem: str) -> None:
    last = expelling(Rabbitmqctl(problem))[-1]
    assert problem in last and "rabbitmqctl delete_user host-h1" in last


def test_rights_then_they_bound_what_the_user_sends_and_to_which_queue() -> None:
    said: list[str] = []
    enrolment_commands.rights(main.parser().parse_args(["host", "rights", "h1.example"]), said.append)
    assert [line.split()[1] for line in said] == ["set_permissions", "set_topic_permissions", "set_user_limits"]
    assert said[1] == (r"rabbitmqctl set_topic_permissions -p nova-hosts host-h1.example nova-conductor-host "
                       r"'^calls\.h1\.example$' '^$'")
    assert '"max-connections": 100' in said[2]
