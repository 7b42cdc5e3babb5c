"""What each daemon imports: its own rooms, and no library of megabytes that it does not need.

Each daemon starts as on the command line, in a process of its own, up to the point where its workers are forked, and
its service is made. The layers of ``pyproject.toml`` say what may be imported; this says what it costs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]

#: Libraries of a megabyte and more beyond the floor of all daemons (eventlet, oslo.config, oslo.messaging, msgspec).
LIBRARIES = frozenset({
    "alembic", "boto3", "cryptography", "jinja2", "jsonschema_rs", "keystoneauth1", "keystoneclient",
    "keystonemiddleware", "libvirt", "lxml", "mako", "numpy", "opentelemetry", "oslo_middleware", "oslo_policy",
    "psycopg", "pygments", "pymysql", "requests", "sqlalchemy", "sqlalchemy.orm", "webob"})
#: Rooms of daemons, and those that only some of them need.
ROOMS = frozenset({
    "nova.api", "nova.clients", "nova.compute", "nova.conductor", "nova.console", "nova.db", "nova.devel",
    "nova.imageproxy", "nova.legacy", "nova.manage", "nova.metadata", "nova.network", "nova.notifications",
    "nova.placement", "nova.policies", "nova.privileged", "nova.scheduler", "nova.virt", "nova.virt.libvirt",
    "nova.virt.vmware", "nova.virt.xenapi", "nova.web"})

HTTP_CLIENT = frozenset({"keystoneauth1", "nova.clients", "requests"})
WEB = frozenset({"jsonschema_rs", "nova.policies", "nova.web", "oslo_policy", "webob"})
#: keystonemiddleware needs the clients; oslo.middleware imports all that it has.
AUTHENTICATED = WEB | {"cryptography", "jinja2", "keystoneauth1", "keystoneclient", "keystonemiddleware",
                       "opentelemetry", "oslo_middleware", "requests"}
MAY = {
    "api": AUTHENTICATED | {"nova.api", "nova.clients", "nova.legacy", "nova.metadata"},
    "api_metadata": WEB | {"nova.clients", "nova.metadata"},
    "placement_api": AUTHENTICATED | {"nova.placement"},
    "scheduler": frozenset({"nova.scheduler"}),
    "conductor": HTTP_CLIENT | {"cryptography", "nova.conductor", "nova.console", "nova.db", "nova.legacy",
                                "nova.notifications", "pymysql", "sqlalchemy"},
    "compute": HTTP_CLIENT | {"nova.compute", "nova.devel", "nova.metadata", "nova.privileged", "nova.virt"},
    "network": frozenset({"nova.network", "nova.privileged"}),
    "consoleauth": frozenset({"nova.console"}),
    "novncproxy": frozenset({"nova.console", "nova.legacy"}),
    "imageproxy": HTTP_CLIENT | {"cryptography", "nova.imageproxy", "nova.web"},
}
#: The service of a conductor needs databases as soon as it is made.
NOT_MADE = ("conductor",)

START = """
import importlib, os, sys
from nova import service

def run(options, binary, make, workers=1, at_end=bool):
    if {made!r}:
        make(0)
    print("imported:", *sys.modules, flush=True)
    os._exit(0)

service.run = run
sys.argv = ["nova", "--config-file", {file!r}]
importlib.import_module("nova.cmd.{name}").main()
"""
CONF = """
[DEFAULT]
host = host1
my_ip = 127.0.0.1
state_path = {folder}
compute_driver = fake.FakeDriver
fake_network = true
transport_url = rabbit://nova:word@127.0.0.1:1/
hosts_transport_url = rabbit://host-host1:word@127.0.0.1:1/nova-hosts
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = 0
metadata_listen = 127.0.0.1
metadata_listen_port = 0
[api]
auth_strategy = noauth2
[placement_api]
listen = 127.0.0.1
listen_port = 0
[monitoring]
enabled = false
[conductor]
host_secret_key = {key}
[image_proxy]
key = {key}
listen = 127.0.0.1
listen_port = 0
[glance]
endpoint_override = http://127.0.0.1:1
[database]
connection = mysql://nova:word@127.0.0.1:1/nova
[api_database]
connection = mysql://nova:word@127.0.0.1:1/nova_api
[vnc]
novncproxy_host = 127.0.0.1
novncproxy_port = 0
"""


def imported(name: str, folder: Path) -> set[str]:
    """Start a daemon; return what it imports of the tables above."""
    file = folder / "nova.conf"
    file.write_text(CONF.format(folder=folder, key="A" * 43 + "="))
    done = subprocess.run(
        [sys.executable, "-c", START.format(name=name, file=str(file), made=name not in NOT_MADE)], cwd=TOP, text=True,
        capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("imported:")]
    return {*line.split()} & (LIBRARIES | ROOMS)


@pytest.mark.parametrize("name", MAY)
def test_daemon_when_it_starts_then_it_imports_what_it_may_and_no_more(name: str, tmp_path: Path) -> None:
    assert imported(name, tmp_path) - MAY[name] == set()


def test_nova_manage_when_its_command_needs_no_database_then_no_library_of_databases_is_imported() -> None:
    code = ("import sys; from nova.manage import main; "
            "main.parser_for(['--config-file', 'x', 'host', 'enroll', 'h1']); print(*sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, text=True, capture_output=True, timeout=120,
                          check=True)
    assert {*done.stdout.split()} & (LIBRARIES | ROOMS) <= {"nova.manage", "nova.privileged"}
