"""Programs whose configuration is wrong: status 2 at once, one sentence, nothing of a value, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.configuration.rejected import CANARY, REFERENCE

pytestmark = pytest.mark.one_in(4)  # one of four runs has each

TOP = Path(__file__).parents[3]
CONTROL = ("api", "conductor", "scheduler", "cert", "consoleauth", "network", "compute", "imageproxy", "objectstore",
           "placement_api", "novncproxy", "api_metadata")
KEY = "A" * 43 + "="
DATABASES = "[database]\nconnection = sqlite://\n[api_database]\nconnection = sqlite://\n"
HOSTS = "[DEFAULT]\nhosts_transport_url = rabbit://h/\n"
SECRETS = f"[conductor]\nhost_secret_key = {KEY}\nworkers = 3\n"


def run(module: str, folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "nova.conf").write_text(f"{text}\n[monitoring]\nenabled = false\n")
    return subprocess.run([sys.executable, "-m", module, "--config-file", str(folder / "nova.conf"), *words], cwd=TOP,
                          capture_output=True, text=True, timeout=120, check=False)


def refusal(done: subprocess.CompletedProcess[str], status: int = 2) -> str:
    """The sentence of a program that ended as it should."""
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    assert "Traceback" not in said and CANARY not in said and "report it" not in said, said
    lines = [line for line in said.splitlines() if line]
    assert len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize("program", CONTROL)
def test_daemon_when_a_password_has_a_dollar_then_it_ends_with_2_and_names_option_and_file(
        tmp_path: Path, program: str) -> None:
    said = refusal(run(f"nova.cmd.{program}", tmp_path, f"[DEFAULT]\ntransport_url = rabbit://nova:{REFERENCE}@h/\n"))
    assert f"[DEFAULT]transport_url in {tmp_path}/nova.conf cannot be used: a $ in it" in said and "Write $$" in said


@pytest.mark.parametrize(("module", "words"), [
    ("nova.manage.main", ("doctor",)), ("nova.manage.main", ("db", "version")),
    ("nova.manage.status", ("upgrade", "check")), ("nova.cmd.policy", ("policy", "check"))])
def test_tool_when_a_password_has_a_dollar_then_the_same_holds(
        tmp_path: Path, module: str, words: tuple[str, ...]) -> None:
    said = refusal(run(module, tmp_path, f"[keystone_authtoken]\npassword = {REFERENCE}\n", *words))
    assert f"[keystone_authtoken]password in {tmp_path}/nova.conf" in said and "Write $$" in said


@pytest.mark.parametrize(("program", "text", "said"), [
    ("conductor", "", "[database]connection is not set"),
    ("conductor", DATABASES, "[DEFAULT]hosts_transport_url is not set"),
    ("conductor", DATABASES + HOSTS, "host_secret_key is not set"),
    ("conductor", DATABASES + f"[conductor]\nhost_secret_key = {CANARY}\n", "[conductor]host_secret_key has"),
    ("conductor", DATABASES + SECRETS, "[image_proxy]key is not set"),
    ("conductor", DATABASES + SECRETS + f"[image_proxy]\nkey = {CANARY}\n", "[image_proxy]key has"),
    ("conductor", DATABASES + SECRETS + f"[image_proxy]\nkey = {KEY}\n", "[DEFAULT]hosts_transport_url is not set"),
    ("imageproxy", "", "[image_proxy]key is not set"), ("network", "", "[DEFAULT]hosts_transport_url is not set"),
    ("compute", "", "[DEFAULT]compute_driver is not set"),
    ("compute", f"[DEFAULT]\ncompute_driver = {CANARY}\n", "[DEFAULT]compute_driver cannot be used: it must be"),
    ("compute", "[DEFAULT]\ncompute_driver = fake.FakeDriver\n", "[DEFAULT]hosts_transport_url is not set"),
    ("compute", "[DEFAULT]\ncompute_driver = fake.FakeDriverWithoutFakeNodes\n", "[DEFAULT]hosts_transport_url is not"),
    ("compute", "[DEFAULT]\ncompute_driver = ironic.IronicDriver\n", "this release has no bare metal. Keep the nova-"
                                                                     "compute of Ironic in a cloud of OpenStack Nova: "
                                                                     "see 'Bare metal' in doc/migrating.rst"),
    ("scheduler", f"[filter_scheduler]\navailable_filters = {CANARY}.Filter\n",
     "[filter_scheduler]available_filters, entry 1, cannot be imported. Install its package for the Python that runs"),
    ("api_metadata", "", "[DEFAULT]hosts_transport_url is not set"),
    ("api", f"[DEFAULT]\nenabled_apis = {CANARY}\n", "[DEFAULT]enabled_apis cannot be used: it must be one of"),
    ("api", f"[oslo_policy]\npolicy_file = /nosuch/{CANARY}\n", "[oslo_policy]policy_file names a policy file"),
    ("placement_api", f"[oslo_policy]\npolicy_file = {CANARY}\n", "[oslo_policy]policy_file names a policy file"),
    ("scheduler", f"[scheduler]\nworkers = {CANARY}\n", "[scheduler]workers in"),
    ("scheduler", f"[DEFAULT]\n{CANARY}\n", "line 2"),
    ("scheduler", f"[DEFAULT]\nhost = ${CANARY}\n", "[DEFAULT]host in")])
def test_daemon_when_an_option_is_missing_or_wrong_then_it_ends_with_2_and_names_it(
        tmp_path: Path, program: str, text: str, said: str) -> None:
    assert said in refusal(run(f"nova.cmd.{program}", tmp_path, text))


WORKERS = f"[filter_scheduler]\nenabled_filters = RamFilter,{CANARY}\n[scheduler]\nworkers = 3\n"


def test_workers_when_only_they_find_the_error_then_the_daemon_ends_with_2_and_none_is_born_again(
        tmp_path: Path) -> None:
    done = run("nova.cmd.scheduler", tmp_path, WORKERS)
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and CANARY not in done.stderr and "starting a replacement" not in done.stderr
    assert 1 <= len([line for line in lines if "enabled_filters, entry 2, is not a filter; available" in line]) <= 3
    assert f"(\x5bfilter_scheduler]enabled_filters is set in {tmp_path}/nova.conf)" in done.stderr


@pytest.mark.parametrize(("name", "module"), [("osapi_compute", "nova.wsgi.osapi_compute"),
                                              ("placement", "nova.wsgi.placement")])
@pytest.mark.parametrize(("text", "said"), [
    (f"[oslo_policy]\npolicy_file = {CANARY}\n", "[oslo_policy]policy_file names a policy file"),
    (f"[DEFAULT]\ntransport_url = {CANARY}://h\n", "[DEFAULT]transport_url in"),
    (f"[api]\nmax_limit = {CANARY}\n", "[api]max_limit in")])
def test_wsgi_application_when_its_configuration_is_wrong_then_its_import_says_so_and_goes_on(
        tmp_path: Path, name: str, module: str, text: str, said: str) -> None:
    (tmp_path / "nova.conf").write_text(text)
    done = subprocess.run([sys.executable, "-c", f"import {module}"], cwd=TOP, capture_output=True, text=True,
                          timeout=120, check=False,
                          env={**os.environ, "OS_NOVA_CONFIG_DIR": str(tmp_path), "OS_NOVA_CONFIG_FILES": "nova.conf"})
    assert said in refusal(done, 0)


@pytest.mark.parametrize(("words", "status", "said"), [
    (("api_db", "sync", "99"), 2, "the api database has no such revision in this release: omit it for the"),
    (("db", "sync", CANARY), 2, "the cell database has no such revision in this release"),
    (("db", "sync", "base"), 2, "has no such revision"), (("db", "sync", "a:b"), 2, "has no such revision"),
    (("db", "sync", "+1"), 2, "has no such revision"), (("db", "sync", "@"), 2, "has no such revision"),
    (("db", "online_data_migrations"), 2, "run 'nova-manage api_db sync'"), (("db", "purge", "--all"), 1, "sync'"),
    (("placement", "audit"), 1, "sync'"), (("placement", "heal_allocations"), 1, "sync'")])
def test_database_command_when_it_is_too_early_or_the_revision_is_none_then_one_sentence(
        tmp_path: Path, words: tuple[str, ...], status: int, said: str) -> None:
    text = "".join(f"[{section}]\nconnection = sqlite:///{tmp_path}/{section}.db\n"
                   for section in ("database", "api_database"))
    done = run("nova.manage.main", tmp_path, text, *words)
    shown = done.stdout + done.stderr
    assert done.returncode == status and said in shown and len(shown.splitlines()) == 1 and CANARY not in shown
