"""What each daemon's user can read, tried as these users: its own secrets, and no other daemon's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.manage.secret_files import readers
from nova.manage.secret_files.split import Account, Split, SplitRequest

TOP = Path(__file__).resolve().parents[3]
NOVA_CONF = """\
[DEFAULT]
transport_url = rabbit://nova:brokerpass@mq/nova
hosts_transport_url = rabbit://host-controller:hostpass@mq/nova-hosts
[keystone_authtoken]
auth_type = password
password = keystonepass
[image_proxy]
key = ticketkey
[conductor]
host_secret_key = hostkey
[database]
connection = mysql+pymysql://nova:databasepass@db/nova
"""
CONFIDENTIAL = ("brokerpass", "hostpass", "keystonepass", "ticketkey", "hostkey", "databasepass")



class Controller:
    """A folder of configuration, split for the users that sysusers.d makes."""

    def __init__(self, root: Path) -> None:
        self.etc = root / "etc" / "nova"
        (root / "etc").mkdir()
        subprocess.run(["systemd-sysusers", f"--root={root}", *map(str, sorted((TOP / "etc/sysusers.d").glob("*")))],
                       check=True, capture_output=True)
        self.ids = {line.split(":")[0]: int(line.split(":")[2])
                    for line in (root / "etc" / "passwd").read_text().splitlines()}
        self.etc.mkdir(0o750)
        os.chown(self.etc, 0, self.ids["nova"])
        (self.etc / "nova.conf").write_text(NOVA_CONF)
        (self.etc / "nova.conf").chmod(0o640)
        os.chown(self.etc / "nova.conf", 0, self.ids["nova"])
        accounts = {daemon: Account(self.ids[readers.user_of(daemon)], 0) for daemon in readers.DAEMONS}
        for step in Split(SplitRequest(self.etc, accounts), None, lambda user: None).steps():
            step.run()

    def read(self, user: str, path: Path) -> str:
        """What the user reads there; empty: nothing."""
        number = str(self.ids[user])
        done = subprocess.run(
            ["setpriv", "--reuid", number, "--regid", number, "--groups", str(self.ids["nova"]), "cat", str(path)],
            capture_output=True, text=True, check=False)
        return done.stdout


@pytest.fixture(scope="module")
def controller() -> Iterator[Controller]:
    if os.geteuid() or not shutil.which("systemd-sysusers"):
        pytest.skip("it takes root and systemd-sysusers")
    root = Path(tempfile.mkdtemp(prefix="nova-users-"))
    root.chmod(0o755)
    yield Controller(root)
    shutil.rmtree(root)


@pytest.mark.parametrize("daemon", readers.DAEMONS)
def test_user_when_it_reads_all_files_then_it_gets_its_own_and_nova_conf_alone(controller: Controller, daemon: str
                                                                               ) -> None:
    user = readers.user_of(daemon)
    readable = {path.name for path in controller.etc.iterdir() if controller.read(user, path)}
    own = {f"{other}.conf" for other in readers.DAEMONS if readers.user_of(other) == user}
    assert readable == {"nova.conf", *own}


def test_nova_conf_when_a_user_reads_it_then_there_is_no_secret_in_it(controller: Controller) -> None:
    text = controller.read("nova-scheduler", controller.etc / "nova.conf")
    assert "auth_type = password" in text and not [word for word in CONFIDENTIAL if word in text]


@pytest.mark.parametrize("daemon", [*readers.CONSOLE_PROXIES, "nova-scheduler", "nova-consoleauth", "nova-cert"])
def test_proxy_when_it_reads_all_that_it_can_then_it_has_no_secret_but_its_broker_user(controller: Controller,
                                                                                       daemon: str) -> None:
    text = "".join(controller.read(daemon, path) for path in controller.etc.iterdir())
    assert not [word for word in CONFIDENTIAL if word in text]
    assert f"transport_url = rabbit://{daemon}:" in text


def test_user_of_a_daemon_when_it_writes_then_it_can_change_no_file(controller: Controller) -> None:
    folder = controller.etc.stat()
    assert (folder.st_uid, folder.st_mode & 0o022) == (0, 0)
    assert (controller.etc / "nova.conf").stat().st_uid == 0


# -- what the page says

def told() -> dict[str, list[str]]:
    """The rows of the page's table of control daemons: name -> user, whether it logs in to Keystone, secrets."""
    text = (TOP / "doc" / "security.rst").read_text().partition("\nControl daemons\n---")[2]
    table = text.partition("\n* ``nova.conf``")[0].splitlines()
    rows = [re.split(r"  +", line.strip()) for line in table if line.startswith(("nova-", "console proxies"))]
    return {name: cells for name, *cells in rows}


def test_page_then_users_and_keystone_are_those_of_the_table_of_readers() -> None:
    found = told()
    assert set(found) == {*(daemon for daemon in readers.DAEMONS if daemon not in readers.CONSOLE_PROXIES),
                          "console proxies"} - {"nova-compute", "nova-network"}
    for name, (user, keystone, *_secrets) in found.items():
        daemons = readers.CONSOLE_PROXIES if name == "console proxies" else (name,)
        logs_in = {("keystone_authtoken", "password") in readers.secrets_of(daemon) for daemon in daemons}
        assert logs_in == {keystone == "yes"}, name
        assert {readers.user_of(daemon) for daemon in daemons} == {user} or name == "console proxies"
