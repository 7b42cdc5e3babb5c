"""Limits that a real Keystone keeps, by the client and the options that nova-conductor has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova import errors
from nova.cmd import conductor
from nova.db.quota import quotas
from nova.db.sql.engine import Database
from tests.fakes.databases import as_if_synced
from tests.functional.backends import Process, free_port, listening, wait_until
from tests.functional.daemons import TOP, environment

pytestmark = pytest.mark.in_turn(8, 10)

#: Where bin/stack installs what runs next door.
PROGRAMS = Path(os.environ.get("NOVA_STACK_VENVS", "/opt/nova-stack")) / "nextdoor" / "bin"
PASSWORD = "secret"
CONF = """\
[database]
connection = sqlite:///{folder}/keystone.sqlite
[token]
provider = fernet
[fernet_tokens]
key_repository = {folder}/fernet
[fernet_receipts]
key_repository = {folder}/receipts
[credential]
key_repository = {folder}/credentials
[identity]
password_hash_rounds = 4
"""


class Keystone(NamedTuple):
    """A running one, as its administrator (of everything) calls it."""

    url: str
    token: str

    def call(self, path: str, body: Any = None) -> Any:
        return _call(f"{self.url}/v3{path}", body, {"X-Auth-Token": self.token})[0]

    def one(self, kind: str, **fields: Any) -> str:
        """The id of what is made."""
        return str(self.call(f"/{kind}s", {kind: fields})[kind]["id"])


def _call(url: str, body: Any, headers: dict[str, str]) -> tuple[Any, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer), answer.headers


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    if not (PROGRAMS / "keystone-manage").exists():
        pytest.skip("needs Keystone: bin/stack installs it")
    folder, port = tmp_path_factory.mktemp("keystone"), free_port()
    url, file = f"http://127.0.0.1:{port}", folder / "keystone.conf"
    file.write_text(CONF.format(folder=folder))
    user = "root" if os.geteuid() == 0 else str(os.getlogin())

    def manage(*words: str) -> None:
        subprocess.run([PROGRAMS / "keystone-manage", "--config-file", file, *words], check=True, timeout=180,
                       capture_output=True, env={**os.environ, "OS_BOOTSTRAP_PASSWORD": PASSWORD})
    manage("db_sync")
    for command in ("fernet_setup", "credential_setup"):
        manage(command, "--keystone-user", user, "--keystone-group", user)
    manage("bootstrap", "--bootstrap-region-id", "RegionOne", *[word for interface in ("admin", "public", "internal")
                                                                for word in (f"--bootstrap-{interface}-url", url)])
    # no words on the command line: Keystone would take them for its own
    (folder / "gunicorn.conf.py").write_text(f'wsgi_app = "keystone.wsgi.api:application"\nthreads = 2\n'
                                             f'bind = "127.0.0.1:{port}"\ncontrol_socket_disable = True\n')
    served = Process([str(PROGRAMS / "gunicorn")], folder / "log", {
        **os.environ, "OS_KEYSTONE_CONFIG_FILES": str(file), "PYTHONWARNINGS": "ignore",
        "GUNICORN_CMD_ARGS": f"--config {folder}/gunicorn.conf.py"}, cwd=folder)
    try:
        wait_until("Keystone listens", lambda: listening(port), 90)
        yield Keystone(url, _admin(url))
    finally:
        served.end()


def _admin(url: str) -> str:
    identity = {"methods": ["password"], "password": {"user": {"name": "admin", "domain": {"id": "default"},
                                                               "password": PASSWORD}}}
    body = {"auth": {"identity": identity, "scope": {"system": {"all": True}}}}
    return str(_call(f"{url}/v3/auth/tokens", body, {})[1]["X-Subject-Token"])


NOVA_CONF = """\
[quota]
driver = nova.quota.UnifiedLimitsDriver
[oslo_limit]
auth_type = password
auth_url = {url}/v3
username = admin
password = secret
user_domain_id = default
system_scope = all
"""


def limits_of(url: str, folder: Path, more: str = "") -> Any:
    """Where the conductor finds limits, by a nova.conf like an operator's."""
    (folder / "nova.conf").write_text(NOVA_CONF.format(url=url) + more)
    options = nova_conf.register(cfg.ConfigOpts())
    options(["--config-file", str(folder / "nova.conf")], project="nova")
    return conductor.quotas(options)


def test_limits_when_a_real_keystone_keeps_them_then_the_conductor_reads_and_follows_them(
        keystone: Keystone, tmp_path: Path) -> None:
    service = keystone.one("service", type="compute", name="nova")
    keystone.one("endpoint", service_id=service, interface="public", url="http://nova", region_id="RegionOne")
    project = keystone.one("project", name="demo", domain_id="default")
    registered = [{"service_id": service, "region_id": "RegionOne", "resource_name": name, "default_limit": limit}
                  for name, limit in (("servers", 10), ("class:VCPU", 20), ("server_key_pairs", 5))]
    keystone.call("/registered_limits", {"registered_limits": registered})
    keystone.call("/limits", {"limits": [{"service_id": service, "region_id": "RegionOne", "project_id": project,
                                          "resource_name": "class:VCPU", "resource_limit": 4}]})
    limits = limits_of(keystone.url, tmp_path)
    found = limits.known(project).limits(["class:CUSTOM_GPU"])
    assert {name: found[name] for name in ("instances", "cores", "key_pairs", "ram", "class:CUSTOM_GPU")} == {
        "instances": 10, "cores": 4, "key_pairs": 5, "ram": -1, "class:CUSTOM_GPU": -1}
    assert limits.known("another").limits()["cores"] == 20


def test_limits_when_keystone_does_not_answer_then_unavailable(tmp_path: Path) -> None:
    with pytest.raises(errors.Unavailable, match=r"\[quota\]driver"):
        limits_of(f"http://127.0.0.1:{free_port()}", tmp_path).known("demo")


def test_migration_when_a_real_keystone_is_empty_then_what_nova_manage_wrote_counts(keystone: Keystone, tmp_path: Path
                                                                                   ) -> None:
    service = keystone.one("service", type="compute", name="nova-two")
    keystone.one("endpoint", service_id=service, interface="public", url="http://nova", region_id="RegionOne")
    project = keystone.one("project", name="moved", domain_id="default")
    (tmp_path / "nova-conductor.conf").write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/api\n"
                                                     f"[database]\nconnection = sqlite:///{tmp_path}/cell\n")
    made = as_if_synced("api", Database(f"sqlite:///{tmp_path}/api"))
    made.transact(lambda tx: quotas.write(tx, project, None, {"cores": 4}))
    made.transact(lambda tx: quotas.write(tx, "not-in-keystone", None, {"cores": 4}))
    made.dispose()
    limits = limits_of(keystone.url, tmp_path, "endpoint_service_name = nova-two\n")

    def migrate(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "nova.manage.main", "--config-file", str(tmp_path / "nova.conf"),
                               "--config-file", str(tmp_path / "nova-conductor.conf"), "limits",
                               "migrate_to_unified_limits", *words], capture_output=True, text=True, timeout=120,
                              cwd=TOP, env=environment(), check=False)
    dry = migrate("--dry-run")
    assert dry.returncode == 0 and f"project {project}: class:VCPU = 4" in dry.stdout, dry
    done = migrate("--verbose")
    assert done.returncode == 1 and "project not-in-keystone: " in done.stdout, done
    assert migrate("--project-id", project).returncode == 0
    found = limits.known(project).limits()
    assert (found["instances"], found["cores"], found["ram"]) == (10, 4, 51200)
    assert limits.known("another").limits()["cores"] == 20
