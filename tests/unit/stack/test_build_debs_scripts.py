"""What scripts of Debian packages do when dpkg runs them, with the machine's programs played."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from deblib.scripts import scripts
from deblib.table import COMMON, PACKAGES, Package

NAMED = {package.name: package for package in PACKAGES}
every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
every_daemon = pytest.mark.parametrize("package", [package for package in PACKAGES if package.unit],
                                       ids=lambda package: package.name)

#: Each says what it was called with, and ends as FAILING (a regular expression) wants.
STUB = """#!/bin/sh
echo "$(basename "$0") $*"
! echo "$(basename "$0") $*" | grep -Eq "${FAILING:-^$}"
"""
STATUS = """#!/bin/sh
printf '| Check: Schemas    |\\n| Result: %s   |\\n| Check: Others |\\n| Result: Failure |\\n' "$SCHEMAS"
exit 2
"""


class Played:
    """A machine's programs, played: scripts of packages run with nothing of this machine changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("systemctl", "systemd-sysusers", "systemd-tmpfiles", "chown", "rm", "rmdir", "install", "find",
                     "dpkg-maintscript-helper"):
            (folder / name).write_text(STUB)
        (folder / "nova-status").write_text(STATUS)
        (folder / "stat").write_text('#!/bin/sh\necho "$OWNER"\n')
        for program in folder.iterdir():
            program.chmod(0o755)

    def run(self, package: str, script: str, *words: str, systemd: bool = True, etc: str = "/etc/nova",
            **env: str) -> list[str]:
        """Its lines. CalledProcessError: it has failed."""
        text = scripts(NAMED[package])[script].replace("/run/systemd/system", str(self.folder if systemd else "/none"))
        text = text.replace("/etc/nova/", f"{etc}/")
        return subprocess.run(["sh", "-c", text, script, *words], check=True, capture_output=True, text=True,
                              env={"PATH": f"{self.folder}:/usr/bin:/bin", **env}).stdout.splitlines()


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path)


@every_daemon
def test_first_install_then_nothing_is_started_and_a_line_says_so(played: Played, package: Package) -> None:
    lines = played.run(package.name, "postinst", "configure", "")
    assert not re.search("systemctl (re|try-re)?(start|enable) ?nova", "\n".join(lines))
    told = f"{package.name}: not started\\. .*: systemctl enable --now {package.name}"
    assert [line for line in lines if re.fullmatch(told, line)]


@every_daemon
def test_upgrade_then_the_unit_is_restarted_if_it_runs_and_owners_stay(played: Played, package: Package) -> None:
    lines = played.run(package.name, "postinst", "configure", "10:0.1.0-1", SCHEMAS="Success")
    verb = "restart" if package.name == "nova-conductor" else "try-restart"
    assert lines[-1] == f"systemctl {verb} {package.name}.service" and "systemctl daemon-reload" in lines
    assert not any(line.startswith("chown") or "not started" in line for line in lines)
    assert lines == played.run(package.name, "postinst", "configure", "10:0.1.0-1", SCHEMAS="Success")


@every_daemon
def test_upgrade_when_the_daemon_does_not_start_then_dpkg_goes_on_and_a_line_says_so(played: Played,
                                                                                     package: Package) -> None:
    lines = played.run(package.name, "postinst", "configure", "10:0.1.0-1", SCHEMAS="Success", FAILING="restart nova")
    assert lines[-1] == f"{package.name}: does not start: journalctl -u {package.name}"


@pytest.mark.parametrize(("owner", "changes"), [("root", True), ("nova", True), ("nova-conductor", False)])
def test_upgrade_when_the_package_was_debians_or_older_then_the_conductors_file_is_its_users(
        played: Played, owner: str, changes: bool) -> None:
    lines = played.run("nova-conductor", "postinst", "configure", "2:26.2.2-1", SCHEMAS="Success", OWNER=owner)
    assert ("chown nova-conductor:root /etc/nova/nova-conductor.conf" in lines) == changes
    assert lines[-1] == "systemctl restart nova-conductor.service"


@pytest.mark.parametrize("script", ["preinst", "postinst", "postrm"])
def test_upgrade_when_the_package_was_debians_then_its_files_that_do_harm_go(played: Played, script: str) -> None:
    told = [line for line in played.run(COMMON, script, "upgrade", "2:26.2.2-1") if line.startswith("dpkg-")]
    assert told == [f"dpkg-maintscript-helper rm_conffile {path} 10:0~ nova-common -- upgrade 2:26.2.2-1"
                    for path in ("/etc/logrotate.d/nova-common", "/etc/sudoers.d/nova-common")]


def test_upgrade_when_tables_are_behind_then_the_conductor_that_runs_goes_on(played: Played) -> None:
    lines = played.run("nova-conductor", "postinst", "configure", "10:0.1.0-1", SCHEMAS="Failure")
    assert not any(line.startswith("systemctl restart") for line in lines)
    assert lines[-1].strip() == "nova-manage api_db sync && nova-manage db sync && systemctl restart nova-conductor"


def test_upgrade_when_the_conductor_does_not_run_then_it_stays_so(played: Played) -> None:
    lines = played.run("nova-conductor", "postinst", "configure", "10:0.1.0-1", FAILING="is-active")
    assert lines[-1] == "systemctl --quiet is-active nova-conductor.service"


@every_package
def test_scripts_when_systemd_does_not_run_then_they_do_not_speak_to_it(played: Played, package: Package) -> None:
    calls = {"preinst": [("install",)], "postinst": [("configure", ""), ("configure", "10:0.1.0-1")],
             "prerm": [("remove",)], "postrm": [("remove",), ("purge",)]}
    lines = [line for script in scripts(package) for words in calls[script]
             for line in played.run(package.name, script, *words, systemd=False)]
    assert not any(line.startswith("systemctl") for line in lines)


def test_users_when_they_cannot_be_made_then_dpkg_is_told(played: Played) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        played.run(COMMON, "postinst", "configure", "", FAILING="^systemd-sysusers nova.conf")


@every_daemon
def test_remove_then_the_daemon_ends_and_is_not_started_at_boot(played: Played, package: Package) -> None:
    lines = played.run(package.name, "prerm", "remove")
    assert lines == [f"systemctl --quiet disable --now {package.name}.service"]
    assert played.run(package.name, "prerm", "upgrade", "10:0.3.0-1") == []
    assert played.run(package.name, "postrm", "remove") == ["systemctl daemon-reload"]


@pytest.mark.parametrize("package", [package for package in NAMED.values() if package.config],
                         ids=lambda package: package.name)
def test_install_when_the_file_to_edit_is_missing_then_it_is_its_owners_alone_and_one_that_is_there_stays(
        played: Played, tmp_path: Path, package: Package) -> None:
    config, path = package.config, tmp_path / package.config.name
    made = f"install -o {config.owner} -g {config.group} -m {config.mode:04o} /usr/share/nova/{config.name} {path}"
    for former in ("", "2:26.2.2-1"):
        assert made in played.run(package.name, "postinst", "configure", former, etc=str(tmp_path))
    assert config.mode in (0o600, 0o640)
    path.write_text("of a deployment tool")
    for former in ("", "10:0.1.0-1"):
        lines = played.run(package.name, "postinst", "configure", former, etc=str(tmp_path))
        assert not any(line.startswith("install") for line in lines)


def test_purge_then_options_and_logs_go_and_data_stays(played: Played) -> None:
    lines = [line for package in PACKAGES if "postrm" in scripts(package)
             for line in played.run(package.name, "postrm", "purge")]
    edited = {f"rm -f /etc/nova/{package.config.name}" for package in PACKAGES if package.config}
    assert {line for line in lines if line.startswith("rm")} == {
        *edited, "rmdir /etc/nova", "rm -rf /var/log/nova /run/nova /run/nova-migrations"}
    assert not any("/var/lib" in text for package in PACKAGES for text in scripts(package).values())
