"""Users, folders, rotation of logs: what systemd and logrotate are told is what units and doc/install.rst say."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from nova import migrationproxy
from nova.manage.secret_files import readers

TOP = Path(__file__).resolve().parents[2]
SYSUSERS, TMPFILES = (sorted((TOP / "etc" / name).glob("*.conf")) for name in ("sysusers.d", "tmpfiles.d"))
LOGROTATE = TOP / "etc" / "logrotate.d" / "nova"
UNITS = sorted((TOP / "etc" / "systemd").glob("*.service"))
INSTALL = (TOP / "doc" / "install.rst").read_text()
LOGROTATE_PROGRAM = shutil.which("logrotate", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

#: A process that logs as a daemon does, before and after a command.
LOGGING = """
import logging, subprocess, sys
from oslo_config import cfg
from nova import conf, logs
folder, *command = sys.argv[1:]
options = conf.register(cfg.ConfigOpts())
options([], default_config_files=[])
options.set_override("log_dir", folder)
logs.set_up(options, "nova-api")
logging.info("before")
subprocess.run(command, check=True)
logging.info("after")
"""


class Folder(NamedTuple):
    mode: str
    owner: str
    group: str


def rows(paths: list[Path]) -> list[list[str]]:
    """The words of each line that is no comment."""
    return [line.split() for path in paths for line in path.read_text().splitlines()
            if line.strip() and not line.startswith("#")]


def users() -> dict[str, str]:
    """Name -> home."""
    return {words[1]: words[-1] for words in rows(SYSUSERS) if words[0] == "u"}


def folders() -> dict[str, Folder]:
    return {path: Folder(mode, owner, group) for kind, path, mode, owner, group, _age in rows(TMPFILES) if kind == "d"}


def values(unit: Path, *keys: str) -> list[str]:
    """The words that a unit gives to these keys."""
    lines = (line.partition("=") for line in unit.read_text().splitlines())
    return [word for key, _sign, text in lines if key in keys for word in text.split()]


def run(*command: str) -> str:
    result = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


# -- what the files say

@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_then_its_users_and_groups_are_made(unit: Path) -> None:
    named = set(values(unit, "User", "Group", "SupplementaryGroups"))
    others = {words[1] for words in rows(SYSUSERS) if words[0] == "g"}  # libvirt's, which a unit alone is in
    assert named <= {*users(), *others}
    pairs = {(words[1], words[2]) for words in rows(SYSUSERS) if words[0] == "m"}
    assert ("nova", "libvirt") in pairs  # polkit looks at the user's groups
    for user in values(unit, "User"):
        asked = set(values(unit, "SupplementaryGroups")) - others
        assert {(user, group) for group in asked} <= pairs


def test_users_then_each_is_the_user_of_a_unit_and_of_the_install_page() -> None:
    assert set(users()) == {name for unit in UNITS for name in values(unit, "User")}
    assert {path.stem for path in SYSUSERS} == {*users(), "nova-compute"}  # its user's groups
    for program, folder in (("systemd-sysusers", "sysusers.d"), ("systemd-tmpfiles --create", "tmpfiles.d")):
        for files in ("nova.conf", "nova-*.conf"):
            assert f"\n    {program} $PWD/etc/{folder}/{files}\n" in INSTALL


def test_units_then_each_has_a_user_of_its_own_but_for_those_that_speak_for_their_host() -> None:
    """A daemon that is broken into has its own files, and no other's."""
    found = {unit.stem: values(unit, "User") for unit in UNITS}
    assert found.pop("nova-privileged") == []  # root
    assert {name: user for name, user in found.items() if name not in readers.HOST_DAEMONS} == {
        name: [name] for name in readers.DAEMONS if name not in readers.HOST_DAEMONS}
    assert {tuple(found[name]) for name in readers.HOST_DAEMONS} == {("nova",)}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_when_it_takes_the_place_of_another_then_it_starts_after_the_others_end(unit: Path) -> None:
    """systemd ends the one before it starts the other if there is an order between them, whichever it is."""
    for other in values(unit, "Conflicts"):
        assert other in values(unit, "After") or unit.name in values(unit.with_name(other), "After")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_then_the_folders_that_it_writes_to_are_made(unit: Path) -> None:
    written = {word.lstrip("-+") for word in values(unit, "ReadWritePaths")}
    written |= {f"/var/lib/{word}" for word in values(unit, "StateDirectory")}
    assert written <= set(folders())
    for name in values(unit, "StateDirectory"):
        assert folders()[f"/var/lib/{name}"] == Folder(
            *values(unit, "StateDirectoryMode"), *values(unit, "User"), *values(unit, "Group"))


def test_folders_then_owners_are_root_or_made_users() -> None:
    assert {name for folder in folders().values() for name in folder[1:]} <= {"root", *users()}


def test_folder_of_migrations_then_it_is_the_one_that_the_code_uses() -> None:
    assert str(migrationproxy.DIRECTORY) in folders()


def test_homes_then_they_are_folders_that_are_made() -> None:
    assert set(users().values()) <= set(folders())


def test_logs_then_they_rotate_where_the_install_page_has_their_folder() -> None:
    text = LOGROTATE.read_text()
    (pattern,) = re.findall(r"^(/\S+) \{$", text, re.M)
    folder = folders()[str(Path(pattern).parent)]
    assert f"su {folder.owner} {folder.group}\n" in text  # else logrotate refuses a folder that a group may write to
    assert not re.search(r"^ +(create|copytruncate|postrotate)\b", text, re.M)


# -- what the programs make of them

def make_users(root: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Run systemd-sysusers on an empty tree: its lines of /etc/passwd, and of /etc/group, by name."""
    if not shutil.which("systemd-sysusers"):
        pytest.skip("systemd-sysusers is not installed here")
    (root / "etc").mkdir()
    run("systemd-sysusers", f"--root={root}", *map(str, SYSUSERS))
    passwd, group = ({line.split(":")[0]: line.split(":") for line in (root / "etc" / name).read_text().splitlines()}
                     for name in ("passwd", "group"))
    return passwd, group


def test_sysusers_when_run_on_an_empty_root_then_users_have_their_groups(tmp_path: Path) -> None:
    made, groups = make_users(tmp_path)
    for name, home in users().items():
        assert made[name][5] == home and made[name][6].endswith("nologin")
        assert made[name][3] == groups[name][2]
    assert set(groups["nova"][3].split(",")) == set(users()) - {"nova"}


def test_tmpfiles_when_run_on_an_empty_root_then_folders_have_owners_and_modes(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("systemd-tmpfiles"):
        pytest.skip("it takes root and systemd-tmpfiles")
    made, groups = make_users(tmp_path)
    run("systemd-tmpfiles", "--create", f"--root={tmp_path}", *map(str, TMPFILES))
    owners = {"root": 0, **{name: int(fields[2]) for name, fields in made.items()}}
    owning = {"root": 0, **{name: int(fields[2]) for name, fields in groups.items()}}
    for path, folder in folders().items():
        status = (tmp_path / path.lstrip("/")).stat()
        assert f"{status.st_mode & 0o7777:04o}" == folder.mode, path
        assert (status.st_uid, status.st_gid) == (owners[folder.owner], owning[folder.group]), path


def rotation(tmp_path: Path) -> Path:
    """The file for logrotate, with a folder and a user of this test's."""
    if not LOGROTATE_PROGRAM:
        pytest.skip("logrotate is not installed here")
    folder = tmp_path / "log"
    folder.mkdir()
    me = f"{pwd.getpwuid(os.geteuid()).pw_name} {os.getegid()}"
    text = LOGROTATE.read_text().replace("/var/log/nova", str(folder)).replace("su root nova", f"su {me}")
    changed = tmp_path / "nova"
    changed.write_text(text)
    changed.chmod(0o644)
    return changed


def test_logrotate_when_asked_then_it_takes_the_file_without_a_complaint(tmp_path: Path) -> None:
    changed = rotation(tmp_path)
    (tmp_path / "log" / "nova-api.log").write_text("a line\n")
    said = run(str(LOGROTATE_PROGRAM), "-d", "-s", str(tmp_path / "state"), str(changed))
    assert "nova-api.log" in said and not re.search("error|unknown|ignoring", said, re.I), said


def test_logrotate_when_it_renamed_a_log_then_the_daemon_writes_to_a_new_one(tmp_path: Path) -> None:
    changed, path = rotation(tmp_path), tmp_path / "log" / "nova-api.log"
    run(sys.executable, "-W", "ignore", "-c", LOGGING, str(path.parent), str(LOGROTATE_PROGRAM), "-f", "-s",
        str(tmp_path / "state"), str(changed))
    assert path.read_text().endswith("after\n") and "before" not in path.read_text()
    assert path.with_name("nova-api.log.1").read_text().endswith("before\n")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-tmpfiles"), reason="it takes root, systemd-tmpfiles")
@pytest.mark.parametrize(("path", "daemon"), [
    ("var/lib/nova/CA/private/cakey.pem", "nova-cert"), ("var/lib/nova/buckets/b/object", "nova-objectstore"),
    ("var/log/nova/nova-scheduler.log", "nova-scheduler"), ("var/log/nova/nova-conductor.log", "nova-conductor"),
    ("var/log/nova/nova-novncproxy.log.1", "nova-novncproxy")])
def test_tmpfiles_when_a_daemon_of_an_older_release_ran_as_nova_then_what_it_wrote_is_given_to_its_user(
        tmp_path: Path, path: str, daemon: str) -> None:
    made, _groups = make_users(tmp_path)
    old = tmp_path / path
    old.parent.mkdir(parents=True)
    old.write_text("x")
    os.chown(old, int(made["nova"][2]), int(made["nova"][3]))
    run("systemd-tmpfiles", "--create", f"--root={tmp_path}", *map(str, TMPFILES))
    assert old.stat().st_uid == int(made[daemon][2])


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-tmpfiles"), reason="it takes root, systemd-tmpfiles")
@pytest.mark.parametrize("daemon", ["nova-api-os-compute", "nova-placement-api"])
def test_tmpfiles_when_a_wsgi_server_writes_the_log_as_nova_then_it_may_go_on(tmp_path: Path, daemon: str) -> None:
    made, _groups = make_users(tmp_path)
    log = tmp_path / f"var/log/nova/{daemon}.log"
    log.parent.mkdir(parents=True)
    log.touch()
    os.chown(log, int(made["nova"][2]), int(made["nova"][3]))
    run("systemd-tmpfiles", "--create", f"--root={tmp_path}", *map(str, TMPFILES))
    assert (log.stat().st_gid, stat.S_IMODE(log.stat().st_mode)) == (int(made["nova"][3]), 0o660)
