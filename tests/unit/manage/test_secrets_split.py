"""``nova-manage secrets split``: each secret goes to the daemons that read it, and to nobody else, whenever it ends."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nova import configuration, errors
from nova.manage.secret_files import broker, commands, lines, readers
from nova.manage.secret_files.split import Account, CannotSplit, Split, SplitRequest, own_commands, write
from nova.privileged.runner import Completed

NOVA_CONF = """\
# the controller, by hand
[DEFAULT]
transport_url = rabbit://nova:Old%2Fpass@mq1:5672,nova:Old%2Fpass@mq2:5672/nova?ssl=1
hosts_transport_url: rabbit://host-controller:hostpass@mq1:5672/nova-hosts
my_ip = 192.0.2.10  ; not a comment

#transport_url = of another day
[keystone_authtoken]
auth_url = http://services:5000
auth_type = password
username = nova
password = Key$tone
[vnc]
novncproxy_base_url = http://controller:6080/vnc_auto.html
[DEFAULT]
debug = false
"""
CONDUCTOR_CONF = """\
[DEFAULT]
hosts_transport_url = rabbit://nova:Old%2Fpass@mq1:5672/nova-hosts

[database]
connection = mysql+pymysql://nova:dbpass@localhost/nova

[image_proxy]
key = new-key,
  old-key
"""
SECRETS = ("Old%2Fpass", "hostpass", "Key$tone", "dbpass", "new-key", "old-key")
DAEMONS = ("nova-conductor", "nova-api", "nova-scheduler", "nova-consoleauth", "nova-novncproxy", "nova-imageproxy",
           "nova-network")


class FakeBroker:
    """rabbitmqctl: users and their passwords, and every command line."""

    def __init__(self, *users: str, away: bool = False) -> None:
        self.passwords = dict.fromkeys(users, "?")
        self.calls: list[list[str]] = []
        self.away = away

    def run(self, argv: Sequence[str], *, stdin: str | None = None, **_more: Any) -> Completed:
        if self.away:
            raise errors.host.CommandFailed(command="rabbitmqctl", where="here", reason="not found")
        self.calls.append(list(argv))
        verb, *words = list(argv)[2:]
        if verb == "list_users":
            return Completed(0, "".join(f"{user}\t[]\n" for user in self.passwords))
        if verb in ("add_user", "change_password"):
            assert (words[0] in self.passwords) == (verb == "change_password") and stdin
            self.passwords[words[0]] = stdin.strip()
        return Completed(0)


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    folder.mkdir()
    for name, text in (("nova.conf", NOVA_CONF), ("nova-conductor.conf", CONDUCTOR_CONF),
                       ("nova-imageproxy.conf", "[image_proxy]\nkey = new-key\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o640)
    return folder


def plan(etc: Path, rabbit: FakeBroker, daemons: Sequence[str] = DAEMONS, **request: Any) -> Split:
    known = broker.existing(rabbit)
    me = Account(os.getuid(), os.getgid())
    return Split(SplitRequest(etc, dict.fromkeys(daemons, me), **request), known,
                 lambda user: broker.make(user, known or frozenset(), rabbit))


def run(etc: Path, rabbit: FakeBroker, most: int | None = None, **request: Any) -> list[str]:
    done = []
    for step in list(plan(etc, rabbit, **request).steps())[:most]:
        step.run()
        done.append(step.words)
    return done


def read(etc: Path, *daemons: str) -> Any:
    """The configuration as a daemon reads it."""
    files = [etc / "nova.conf", *(path for daemon in daemons if (path := etc / f"{daemon}.conf").exists())]
    return lambda name: next((found for path in reversed(files) if (found := lines.value(path.read_text(), name))), "")


def files(etc: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in etc.rglob("*") if path.is_file()}


# -- where secrets go

def test_split_when_done_then_nova_conf_has_no_secret_and_each_other_line_is_as_it_was(etc: Path) -> None:
    run(etc, FakeBroker("nova"))
    left = (etc / "nova.conf").read_text()
    assert left.splitlines() == [line for line in NOVA_CONF.splitlines()
                                 if not line.startswith(("transport_url", "hosts_transport_url", "password"))]
    assert (etc / "nova.conf").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("daemon", "has", "has_not"), [
    ("nova-conductor", ("Key$tone", "dbpass", "new-key", "old-key"), ("hostpass",)),
    ("nova-api", ("Key$tone", "hostpass"), ("dbpass", "new-key")),
    ("nova-imageproxy", ("Key$tone", "new-key"), ("dbpass", "hostpass")),
    ("nova-network", ("hostpass",), ("Key$tone", "dbpass", "new-key")),
    ("nova-scheduler", (), ("Key$tone", "dbpass", "hostpass", "new-key")),
    ("nova-consoleauth", (), ("Key$tone", "dbpass", "hostpass", "new-key")),
    ("nova-novncproxy", (), ("Key$tone", "dbpass", "hostpass", "new-key"))])
def test_split_when_done_then_a_daemon_has_what_it_reads_and_nothing_else(etc: Path, daemon: str, has: tuple[str, ...],
                                                                          has_not: tuple[str, ...]) -> None:
    run(etc, FakeBroker("nova"))
    path = etc / f"{daemon}.conf"
    text = path.read_text()
    assert [word for word in has if word not in text] == [word for word in has_not if word in text] == []
    assert "Old%2Fpass" not in text and path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("daemon", ["nova-conductor", "nova-api", "nova-scheduler", "nova-novncproxy"])
def test_split_when_done_then_a_daemon_has_a_broker_user_of_its_name_at_each_place(etc: Path, daemon: str) -> None:
    rabbit = FakeBroker("nova")
    run(etc, rabbit)
    url = lines.value((etc / f"{daemon}.conf").read_text(), ("DEFAULT", "transport_url"))
    word = rabbit.passwords[daemon]
    assert url == f"rabbit://{daemon}:{word}@mq1:5672,{daemon}:{word}@mq2:5672/nova?ssl=1" and len(word) > 30
    assert len(set(rabbit.passwords.values())) == len(rabbit.passwords)


def test_split_when_done_then_conductors_have_their_user_in_the_hosts_vhost_too(etc: Path) -> None:
    rabbit = FakeBroker("nova")
    run(etc, rabbit)
    found = read(etc, "nova-conductor")
    assert found(("DEFAULT", "hosts_transport_url")).startswith("rabbit://nova-conductor:")
    given = [words[4:6] for words in rabbit.calls if words[2] == "set_permissions" and "nova-conductor" in words]
    assert given == [["nova", "nova-conductor"], ["nova-hosts", "nova-conductor"]]


def test_split_when_a_user_gets_rights_then_what_it_may_not_hear_is_said_first(etc: Path) -> None:
    rabbit = FakeBroker("nova")
    run(etc, rabbit)
    verbs = [words[2] for words in rabbit.calls if "nova-scheduler" in words]
    assert verbs == ["add_user", "set_topic_permissions", "set_permissions", "set_user_limits"]


def test_split_when_done_then_daemons_read_the_same_as_before_but_for_broker_users(etc: Path) -> None:
    before = {daemon: read(etc, daemon) for daemon in DAEMONS}
    old = {(daemon, name): before[daemon](name) for daemon in DAEMONS for name in readers.secrets_of(daemon)
           if not name[1].endswith("transport_url")}
    run(etc, FakeBroker("nova"))
    assert {(daemon, name): read(etc, daemon)(name) for daemon, name in old} == old


def test_split_when_broker_users_are_kept_then_urls_are_moved_as_they_are(etc: Path) -> None:
    rabbit = FakeBroker("nova")
    run(etc, rabbit, new_users=False)
    found = lines.value((etc / "nova-scheduler.conf").read_text(), ("DEFAULT", "transport_url"))
    assert found == lines.value(NOVA_CONF, ("DEFAULT", "transport_url"))
    assert list(rabbit.passwords) == ["nova"]


# -- cut off, and again

def count(etc: Path) -> int:
    return len(list(plan(etc, FakeBroker("nova")).steps()))


def test_split_when_cut_off_after_each_step_then_daemons_find_everything_and_the_next_run_ends_it(
        etc: Path, tmp_path: Path) -> None:
    for most in range(count(etc) + 1):
        copy, rabbit = tmp_path / f"etc{most}", FakeBroker("nova")
        copy.mkdir()
        for name, text in files(etc).items():
            write(copy / name, text, 0o640, None)
        run(copy, rabbit, most)
        for daemon in set(DAEMONS) - {readers.IMAGE_PROXY}:
            found = read(copy, daemon)
            user, password = broker.user_in(found(("DEFAULT", "transport_url")) or found(
                ("DEFAULT", "hosts_transport_url")))
            assert user, f"{daemon} has no URL after {most} steps"
            assert user in ("nova", "host-controller") or rabbit.passwords[user] == password
        first = dict(rabbit.passwords)
        run(copy, rabbit)
        ended = files(copy)
        run(copy, rabbit)
        assert files(copy) == ended
        assert [word for word in SECRETS if word in (copy / "nova.conf").read_text()] == []
        assert {user: word for user, word in rabbit.passwords.items() if user in first} == first
        assert not list(copy.glob(".*"))


def test_write_when_cut_off_before_the_name_is_there_then_the_old_text_is_whole(etc: Path) -> None:
    path = etc / "nova.conf"
    (etc / ".nova.conf.new").write_text("half")
    assert path.read_text() == NOVA_CONF
    write(path, "whole", 0o600, None)
    assert path.read_text() == "whole" and not (etc / ".nova.conf.new").exists()


def test_split_when_run_twice_then_the_second_run_writes_no_file(etc: Path) -> None:
    rabbit = FakeBroker("nova")
    run(etc, rabbit)
    before, times = files(etc), {path: path.stat().st_mtime_ns for path in etc.iterdir()}
    assert not [words for words in run(etc, rabbit) if not words.startswith("broker:")]
    assert files(etc) == before and {path: path.stat().st_mtime_ns for path in etc.iterdir()} == times


def test_split_when_a_file_is_open_to_others_then_its_mode_is_mended(etc: Path) -> None:
    rabbit = FakeBroker("nova")
    run(etc, rabbit)
    (etc / "nova-scheduler.conf").chmod(0o644)
    run(etc, rabbit)
    assert (etc / "nova-scheduler.conf").stat().st_mode & 0o777 == 0o600


# -- several controllers

def test_split_when_another_controller_has_made_the_users_then_it_refuses_and_changes_nothing(etc: Path) -> None:
    before = files(etc)
    with pytest.raises(CannotSplit, match="already has the users nova-scheduler.*--passwords"):
        plan(etc, FakeBroker("nova", "nova-scheduler"))
    assert files(etc) == before


def test_split_when_the_passwords_are_brought_then_both_controllers_have_the_same(etc: Path, tmp_path: Path) -> None:
    rabbit, kept, other = FakeBroker("nova"), tmp_path / "passwords", tmp_path / "other"
    other.mkdir()
    for name, text in files(etc).items():
        (other / name).write_text(text)
    run(etc, rabbit, passwords=kept)
    assert kept.stat().st_mode & 0o777 == 0o600
    first = dict(rabbit.passwords)
    run(other, rabbit, passwords=kept)
    assert rabbit.passwords == first and kept.exists()
    assert (other / "nova-scheduler.conf").read_text() == (etc / "nova-scheduler.conf").read_text()


# -- unusual files

def test_split_when_nova_conf_d_has_secrets_then_they_are_moved_and_the_last_one_counts(etc: Path) -> None:
    (etc / "nova.conf.d").mkdir()
    (etc / "nova.conf.d" / "10-late.conf").write_text("[keystone_authtoken]\npassword = Later\nusername = late\n")
    run(etc, FakeBroker("nova"))
    assert lines.value((etc / "nova-api.conf").read_text(), ("keystone_authtoken", "password")) == "Later"
    assert (etc / "nova.conf.d" / "10-late.conf").read_text() == "[keystone_authtoken]\nusername = late\n"


def test_split_when_a_daemons_file_has_a_value_already_then_it_stays(etc: Path) -> None:
    (etc / "nova-api.conf").write_text("[keystone_authtoken]\npassword = its own\n")
    run(etc, FakeBroker("nova"))
    assert lines.taken((etc / "nova-api.conf").read_text(), ("keystone_authtoken", "password")) == [
        "password = its own\n"]


def test_split_when_a_url_refers_to_another_option_then_it_is_moved_as_it_is(etc: Path) -> None:
    (etc / "nova.conf").write_text("[DEFAULT]\nmy_ip = 192.0.2.1\ntransport_url = rabbit://nova:w0rd@$my_ip/nova\n")
    rabbit = FakeBroker("nova")
    run(etc, rabbit)
    assert "rabbit://nova:w0rd@$my_ip/nova" in (etc / "nova-scheduler.conf").read_text()
    assert "nova-scheduler" not in rabbit.passwords


def test_split_when_no_daemon_here_reads_a_secret_then_it_stays_and_is_named(etc: Path) -> None:
    (etc / "nova.conf").write_text(NOVA_CONF + "[neutron]\nmetadata_proxy_shared_secret = shared\n")
    daemons = ("nova-conductor", "nova-scheduler")
    made = plan(etc, FakeBroker("nova"), daemons)
    for step in made.steps():
        step.run()
    assert made.unread() == [("neutron", "metadata_proxy_shared_secret")]
    assert "shared" in (etc / "nova.conf").read_text()


@pytest.mark.parametrize(("text", "left"), [
    ("[a]\npassword=1\n", "[a]\n"), ("[a]\npassword : 1\n\n[b]\npassword = 2\n", "[a]\n\n[b]\npassword = 2\n"),
    ("[a]\npassword = 1\n  2\n\t3\nx = 4\n", "[a]\nx = 4\n"), ("[a]\npassword = 1\n\n  x\n", "[a]\n\n  x\n"),
    ("[A]\nPassword = 1\npassword = 2", "[A]\nPassword = 1\n"), ("[a]\n#password = 1\n;password=2\n", None),
    ("password = 1\n", None), ("", None), ("[a]\nuser-name = 1\npassword = 1\n", "[a]\nuser-name = 1\n")])
def test_lines_when_an_option_goes_then_no_other_line_changes(text: str, left: str | None) -> None:
    assert lines.without(text, {("a", "password")}) == (text if left is None else left)


@pytest.mark.parametrize(("text", "new"), [
    ("", "[a]\nx = 1\n"), ("[a]\ny = 2\n\n[b]\n", "[a]\ny = 2\nx = 1\n\n[b]\n"),
    ("[b]\nz = 1", "[b]\nz = 1\n\n[a]\nx = 1\n"),
    ("[a]\n[b]\n[a]\n# end\n", "[a]\n[b]\n[a]\n# end\nx = 1\n"), ("[A]\n", "[A]\nx = 1\n")])
def test_lines_when_an_option_comes_then_it_is_at_the_end_of_its_section(text: str, new: str) -> None:
    assert lines.added(text, ("a", "x"), ["x = 1\n"]) == new


@pytest.mark.parametrize(("url", "user", "vhost"), [
    ("rabbit://nova:p@mq/nova", ("nova", "p"), "nova"), ("rabbit://mq:5672/", ("", ""), "/"),
    ("rabbit://a%40b:c%2Fd@mq:1,e:f@mq2:2//x", ("a@b", "c/d"), "/x"), ("rabbit://u:p@[::1]:5672/%2Fv?ssl=1", ("u", "p"),
                                                                       "/v")])
def test_url_then_user_and_vhost_are_those_of_its_first_place(url: str, user: tuple[str, str], vhost: str) -> None:
    assert broker.user_in(url) == user and broker.vhost_in(url) == vhost
    assert broker.vhost_in(broker.with_user(url, "x", "y")) == vhost
    assert broker.user_in(broker.with_user(url, "x", "y")) == ("x", "y")


# -- the command

def command(etc: Path, rabbit: FakeBroker, **more: Any) -> tuple[int, list[str]]:
    said: list[str] = []
    given = argparse.Namespace(etc=str(etc), dry_run=False, passwords=None, keep_broker_users=False, **more)
    me = Account(os.getuid(), os.getgid())
    return commands.split(given, said.append, rabbit, dict.fromkeys(DAEMONS, me)), said


def test_command_when_it_is_a_dry_run_then_it_shows_all_steps_and_changes_nothing(etc: Path) -> None:
    before, rabbit = files(etc), FakeBroker("nova")
    given = argparse.Namespace(etc=str(etc), dry_run=True, passwords=None, keep_broker_users=False)
    said: list[str] = []
    assert commands.split(given, said.append, rabbit, dict.fromkeys(DAEMONS)) == 0
    assert files(etc) == before and list(rabbit.passwords) == ["nova"]
    assert any("nova-scheduler.conf: [DEFAULT]transport_url" in line for line in said)
    assert any("nova.conf: [DEFAULT]hosts_transport_url" in line and "removed" in line for line in said)


def test_command_when_done_then_no_secret_is_printed(etc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rabbit = FakeBroker("nova")
    code, said = command(etc, rabbit)
    printed = "\n".join([*said, *capsys.readouterr()])
    assert code == 0 and [word for word in (*SECRETS, *rabbit.passwords.values()) if len(word) > 3 and word in printed
                          ] == []


def test_command_when_rabbitmqctl_cannot_be_run_then_it_prints_commands_that_read_passwords_from_files(etc: Path
                                                                                                         ) -> None:
    code, said = command(etc, FakeBroker(away=True))
    printed = "\n".join(said)
    assert code == 0 and "rabbitmqctl add_user nova-scheduler" in printed and "set_topic_permissions" in printed
    text = (etc / "nova-scheduler.conf").read_text()
    user, password = broker.user_in(lines.value(text, ("DEFAULT", "transport_url")))
    assert user == "nova-scheduler" and password not in printed


def test_printed_command_when_it_is_run_then_it_finds_the_password_of_the_file(etc: Path) -> None:
    made = plan(etc, FakeBroker("nova"))
    for step in made.steps():
        step.run()
    line = next(line for line in own_commands(made.users, made.path_of) if "add_user nova-scheduler" in line)
    with os.popen(line.replace("rabbitmqctl add_user nova-scheduler", "cat")) as output:
        found = output.read().strip()
    assert found == next(user.password for user in made.users if user.name == "nova-scheduler")


def test_command_when_the_broker_refuses_then_it_says_at_which_step_and_nova_conf_is_whole(
        etc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(FakeBroker):
        def run(self, argv: Sequence[str], **more: Any) -> Completed:
            if "set_permissions" in argv:
                raise errors.host.CommandFailed(command="rabbitmqctl", where="here", reason="no such vhost")
            return super().run(argv, **more)
    code, _said = command(etc, Failing("nova"))
    assert code == 1 and "broker: the user nova-conductor" in capsys.readouterr().err
    assert (etc / "nova.conf").read_text() == NOVA_CONF


def test_command_when_it_is_a_compute_host_then_nothing_is_split(etc: Path) -> None:
    (etc / "nova-conductor.conf").unlink()
    text = "[DEFAULT]\nhosts_transport_url = rabbit://host-a:b@mq/nova-hosts\n"
    (etc / "nova.conf").write_text(text)
    code, said = command(etc, FakeBroker("nova"))
    assert code == 0 and "only services of a compute host" in said[0] and (etc / "nova.conf").read_text() == text


def test_split_when_the_cloud_is_in_upstream_mode_then_it_refuses(etc: Path) -> None:
    (etc / "nova-conductor.conf").unlink()
    (etc / "nova.conf").write_text("[DEFAULT]\ntransport_url = rabbit://nova:word@mq/nova\n")
    with pytest.raises(CannotSplit, match="upstream mode.*Security modes"):
        plan(etc, FakeBroker("nova"))


def test_command_when_there_is_no_nova_conf_then_one_line_names_the_option(tmp_path: Path,
                                                                           capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, FakeBroker())[0] == 2
    assert "--etc" in capsys.readouterr().err


def test_rights_then_they_are_commands_as_those_of_a_host() -> None:
    said: list[str] = []
    assert commands.rights(argparse.Namespace(daemon="nova-novncproxy", vhost="nova"), said.append) == 0
    assert said == [
        "rabbitmqctl set_permissions -p nova nova-novncproxy '^(reply_nova-novncproxy_[0-9a-f]+)$' "
        "'^(nova-conductor-proxy|nova-consoleauth-check)$' '^(reply_nova-novncproxy_[0-9a-f]+)$'",
        "rabbitmqctl set_user_limits nova-novncproxy '{\"max-connections\": 200, \"max-channels\": 800}'"]


# -- the table of readers

def test_readers_then_every_secret_of_our_options_is_in_the_table() -> None:
    from nova import conf

    secret = {(group or "DEFAULT", option.dest) for group, options in conf.list_opts() for option in options
              if option.secret}
    assert secret and secret <= set(readers.READERS)


@pytest.mark.parametrize("daemon", [*readers.CONSOLE_PROXIES, "nova-scheduler", "nova-consoleauth", "nova-cert"])
def test_readers_then_who_needs_no_keystone_has_its_broker_url_and_nothing_else(daemon: str) -> None:
    assert readers.secrets_of(daemon) == (("DEFAULT", "transport_url"),)


def test_configuration_when_a_daemon_reads_its_files_then_its_own_counts(etc: Path) -> None:
    run(etc, FakeBroker("nova"))
    words = configuration.beside(["--config-file", str(etc / "nova.conf")], "nova-scheduler")
    assert words[-1] == str(etc / "nova-scheduler.conf")


def test_command_then_it_says_first_for_which_daemons_it_writes(etc: Path) -> None:
    _code, said = command(etc, FakeBroker("nova"))
    assert said[0].startswith(f"Services: {', '.join(DAEMONS)}. ") and "--daemon" in said[0]
