"""What ``nova-manage host isolate`` does at the broker, and the line that it gives a host."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.db.host import enrolments, security
from nova.db.schema import migrate
from nova.manage import isolation_commands as commands
from nova.manage.databases import database_of
from nova.model.security.security_modes import SecurityMode
from nova.rpc import host_rights
from tests.unit.manage.test_enrolment_commands import Rabbitmqctl


def options(url: str = "rabbit://nova:s3cret@b1:5672,nova:s3cret@[fd00::2]:5672/hosts") -> Any:
    return SimpleNamespace(hosts_transport_url=url)


class Existing(Rabbitmqctl):
    """Of a broker that has the user."""

    def run(self, argv: list[str], **how: Any) -> None:
        self.ran.append(argv)
        if argv[2] == "add_user":
            raise errors.host.CommandFailed(command=argv[0], where="here", reason="User already exists")


def test_url_of_a_host_then_it_has_its_own_user_at_each_broker_and_nothing_of_the_conductors() -> None:
    assert commands.host_url(options(), "h1", "pw") == "rabbit://host-h1:pw@b1:5672,host-h1:pw@[fd00::2]:5672/hosts"
    assert commands.vhost_of(options()) == "hosts"


@pytest.mark.parametrize(("runner", "words"), [(Rabbitmqctl(), ["add_user"]),
                                               (Existing(), ["add_user", "change_password"])])
def test_user_when_it_is_made_or_there_then_it_has_its_password_and_rights(runner: Any, words: list[str]) -> None:
    commands.make_user(runner, "h1", "pw", "hosts")
    assert [argv[2] for argv in runner.ran] == [*words, "set_permissions", "set_topic_permissions", "set_user_limits"]
    assert [argv[2:] for argv in runner.ran[len(words):]] == host_rights.commands("h1", "hosts")
    assert all("pw" not in argv for argv in runner.ran)  # it goes by standard input: others see the command line


@pytest.mark.parametrize("write", [True, False])
def test_line_for_a_host_when_the_broker_can_be_told_then_the_password_is_in_it_alone(
        tmp_path: Path, write: bool) -> None:
    said: list[str] = []
    commands._prepare(options(), "h1", str(tmp_path / "{host}.conf") if write else None, said.append,
                      Rabbitmqctl())  # type: ignore[arg-type]
    path = tmp_path / "h1.conf"
    text = path.read_text() if write else said[0]
    password = text.split("host-h1:")[1].split("@")[0]
    assert len(password) >= 32 and "s3cret" not in text and "/hosts" in text
    assert not write or (path.stat().st_mode & 0o777 == 0o600 and password not in "".join(said))


def test_line_for_a_host_when_the_broker_cannot_be_told_then_the_commands_are_said() -> None:
    said: list[str] = []
    commands._prepare(options(), "h1", None, said.append, Rabbitmqctl("it is not installed"))  # type: ignore[arg-type]
    assert "rabbitmqctl add_user host-h1" in said[0] and "--vhost hosts" in said[0]
    assert "host-h1:PASSWORD@b1" in said[1]


@pytest.mark.parametrize(("hosts", "everything"), [((), False), (("h1",), True)])
def test_command_when_neither_or_both_of_hosts_and_all_are_given_then_2(hosts: tuple[str, ...],
                                                                        everything: bool) -> None:
    given = SimpleNamespace(host=list(hosts), all=everything, revert=False, write=None)
    assert commands.isolate(options(), given, lambda _line: None, Rabbitmqctl()) == 2  # type: ignore[arg-type]
    assert commands.readmit(options(), given, lambda _line: None) == 2  # type: ignore[arg-type]


def test_command_when_only_other_options_of_bounded_mode_are_set_then_the_hosts_url_is_asked_for(tmp_path: Path
                                                                                                ) -> None:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[], default_config_dirs=[])
    made.set_override("connection", f"sqlite:///{tmp_path}/cell", "database")
    made.set_override("host_secret_key", ["a" * 43 + "="], "conductor")
    cell = database_of(made, "cell")  # type: ignore[arg-type]
    migrate.sync("cell", cell)
    cell.transact(lambda tx: (security.record_first(tx, SecurityMode.UPSTREAM), enrolments.enroll(tx, "h1", (), "")))
    given, runner = SimpleNamespace(host=["h1"], all=False, revert=False, write=None), Rabbitmqctl()
    with pytest.raises(errors.config.Missing, match="hosts_transport_url"):
        commands.isolate(made, given, lambda _line: None, runner)  # type: ignore[arg-type]
    assert not runner.ran
