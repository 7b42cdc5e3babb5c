"""Daemons that need nothing of Keystone: what they are made of does not even import its libraries, or a database's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nova.manage.secret_files import readers

#: Daemon -> the modules of its parts, which it imports when it starts.
PARTS = {
    "nova-scheduler": ("nova.cmd.scheduler", "nova.scheduler.service", "nova.rpc.contracts.conductor_scheduler"),
    "nova-consoleauth": ("nova.cmd.consoleauth", "nova.console.service", "nova.rpc.contracts.console_check"),
    "nova-cert": ("nova.cmd.cert", "nova.legacy.cert.service", "nova.rpc.contracts.cert"),
    **dict.fromkeys(readers.CONSOLE_PROXIES, (
        "nova.cmd.console_proxy", "nova.console.app", "nova.console.access", "nova.legacy.xvp", "nova.http_server",
        "nova.rpc.contracts.console_check"))}
LIBRARIES = ("keystoneauth1", "keystonemiddleware", "sqlalchemy", "pymysql", "psycopg")
LOOK = "import importlib, sys\nfor name in sys.argv[2:]:\n    importlib.import_module(name)\n" \
       "print(*sorted(set(sys.argv[1].split(',')) & {name.partition('.')[0] for name in sys.modules}))"


def imported(*modules: str) -> list[str]:
    """The libraries that a process has which imports these modules."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LOOK, ",".join(LIBRARIES), *modules],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("daemon", ["nova-scheduler", "nova-consoleauth", "nova-cert", "nova-novncproxy"])
def test_daemon_when_it_needs_no_keystone_then_its_parts_import_none_of_its_libraries(daemon: str) -> None:
    assert imported("nova.rpc.transport", "nova.rpc.buses", "nova.rpc.narrow", *PARTS[daemon]) == []


def test_daemon_that_needs_keystone_then_the_look_finds_it() -> None:
    assert imported("nova.cmd.imageproxy", "nova.clients.session") == ["keystoneauth1"]


def test_daemons_that_need_no_keystone_then_they_are_those_whose_files_have_no_password_of_it() -> None:
    has_none = {daemon for daemon in readers.CONTROL if ("keystone_authtoken", "password") not in readers.secrets_of(
        daemon)}
    assert has_none == set(PARTS)
