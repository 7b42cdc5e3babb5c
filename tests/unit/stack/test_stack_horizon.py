"""A stack with Horizon: what is asked for, what Horizon is told, its static files, which are whole or made again."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stacklib import beside, cli, dashboard, glance, horizon, packages, ports, summary, up, venvs
from stacklib.dashboard import Site
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.stack import Stack
from stacklib.stages import Progress
from stacklib.venvs import Builder

pytestmark = pytest.mark.one_in(2)  # one of two runs has each


def parse(*words: str):
    return cli.parser().parse_args(list(words))


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(venv=tmp_path / "venv", folder=tmp_path / "site", keystone="http://127.0.0.1:5999/v3",
                region="RegionTwo", address="127.0.0.1", port=8001, secret="a secret's word")


# --- what is asked for


def test_up_when_a_dashboard_is_said_then_there_is_one_and_else_none():
    assert cli.choices(parse("up", "--dashboard")).dashboard
    assert cli.choices(parse("up", "--sandbox", "--driver", "fake", "--dashboard")).dashboard
    assert not cli.choices(parse("up")).dashboard


def test_up_when_a_dashboard_is_said_then_neutron_is_there_which_it_cannot_do_without():
    assert cli.choices(parse("up", "--dashboard")).neutron == "api"
    assert cli.choices(parse("up", "--neutron", "--dashboard")) == cli.choices(parse("up", "--dashboard"))


@pytest.mark.parametrize("words", [("--auth", "noauth2"), ("--database", "postgresql")])
def test_up_when_a_dashboard_is_said_beside_what_it_was_not_tried_with_then_refused(words):
    with pytest.raises(StackError, match="--dashboard is tested only with Keystone and MariaDB"):
        cli.choices(parse("up", "--dashboard", *words))


def test_stack_when_it_is_there_then_a_dashboard_may_come_and_may_not_go():
    plain, more = Choices(neutron="api"), Choices(neutron="api", dashboard=True)
    assert plain.differences(more) == [] and more.differences(more) == []
    assert more.differences(plain) == ["dashboard"]
    assert plain.differences(Choices(dashboard=True)) == ["neutron"]


def test_stack_when_it_has_a_dashboard_then_it_is_installed_has_a_port_and_is_told_of(make_layout, secrets, short_path):
    layout, plain = make_layout(dashboard=True), make_layout()
    assert "horizon" in up.parts_of(layout) and "horizon" not in up.parts_of(plain)
    assert "horizon" not in packages.PARTS and cli._parts("horizon") == ("horizon",)
    assert "horizon" in ports.wanted(layout) and "horizon" not in ports.wanted(plain)
    assert summary.endpoints(layout)["dashboard"] == "http://127.0.0.1:8000/"
    assert "dashboard" not in summary.endpoints(plain)
    assert up.describe(layout.choices, layout.state).count("horizon") == 1
    stages = {one.name: one for one in up._stages(Stack(Layout(short_path, layout.choices), secrets, None), False)}
    assert stages["horizon"].after == ("glance", "identity")


def test_summary_when_there_is_a_dashboard_then_it_tells_how_to_log_in_and_no_password(make_layout, secrets):
    layout = make_layout(dashboard=True, demo=False, driver="fake")
    text = summary.text(Stack(layout, secrets, None), Progress(), True)
    assert "  address  http://127.0.0.1:8000/" in text
    assert "exec --as demo printenv OS_PASSWORD" in text
    assert not [name for name in ("admin", "demo", "horizon") if secrets.password(name) in text]


# --- what Horizon is told


def test_settings_then_of_this_cloud_alone_and_without_debugging(site):
    found: dict = {}
    exec(dashboard.settings(site), found)
    assert found["OPENSTACK_KEYSTONE_URL"] == "http://127.0.0.1:5999/v3"
    assert found["AVAILABLE_REGIONS"] == [("http://127.0.0.1:5999/v3", "RegionTwo")]
    assert found["SECRET_KEY"] == "a secret's word" and found["DEBUG"] is False and found["COMPRESS_OFFLINE"] is True
    assert found["ALLOWED_HOSTS"] == ["127.0.0.1", "localhost"]
    assert found["STATIC_ROOT"] == str(site.venv / "static")
    assert found["SESSION_ENGINE"].endswith("signed_cookies") and "locmem" in found["CACHES"]["default"]["BACKEND"]


def test_files_when_they_are_written_then_their_owner_alone_reads_them_and_they_come_before_horizons_own(
        site, tmp_path):
    written = dashboard.write(site)
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    own = tmp_path / "openstack_dashboard" / "local"
    own.mkdir(parents=True)
    (own / "__init__.py").touch()
    (own / "local_settings.py").write_text("OPENSTACK_KEYSTONE_URL = 'of another'\n")
    script = "from local.local_settings import *; print(OPENSTACK_KEYSTONE_URL)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": f"{site.folder}:{own.parent}"}).stdout
    assert said == "http://127.0.0.1:5999/v3\n"


def test_command_then_gunicorn_with_settings_that_keep_it_out_of_home_folders(site):
    dashboard.write(site)
    argv, env = dashboard.command(site)
    assert argv == (f"{site.venv}/bin/gunicorn", "--config", f"{site.folder}/gunicorn.conf.py")
    assert env["DJANGO_SETTINGS_MODULE"] == "openstack_dashboard.settings"
    conf: dict = {}
    exec(Path(argv[2]).read_text(), conf)
    assert (conf["bind"], conf["wsgi_app"]) == ("127.0.0.1:8001", "dashboard:application")
    assert conf["pythonpath"] == str(site.folder) and conf["control_socket_disable"] is True


@pytest.fixture
def stack(short_path, secrets, tmp_path, monkeypatch) -> Stack:
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path / "venvs"))
    for module in (horizon, glance):
        monkeypatch.setattr(module, "SERVICE_USER", None)
    return Stack(Layout(short_path, Choices(sandbox=True, dashboard=True)), secrets, None)


def test_daemon_when_its_settings_or_static_files_change_then_it_is_another(stack):
    first = horizon.daemon(stack)
    assert first.probe.target == "http://10.200.0.1:8000/auth/login/" and first.room == "controller"
    assert horizon.daemon(stack) == first
    venv = stack.layout.venvs / "horizon"
    venv.mkdir(parents=True)
    (venv / ".stamp-static").write_text("made")
    second = horizon.daemon(stack)
    assert second == replace(first, fingerprint=second.fingerprint) and second.fingerprint != first.fingerprint
    settings = stack.layout.etc / "horizon" / "local" / "local_settings.py"
    assert stack.secrets.password("horizon") in settings.read_text()


def test_metadefs_when_they_are_loaded_then_not_again_until_glance_is_another(stack, monkeypatch):
    ran: list[list[str]] = []
    monkeypatch.setattr(Stack, "command", lambda self, name, argv, **more: ran.append(argv))
    assert [glance.load_metadefs(stack) for _ in range(2)] == ["metadefs loaded", "unchanged"]
    (stack.layout.venvs / "nextdoor").mkdir(parents=True)
    (stack.layout.venvs / "nextdoor" / ".stamp").write_text("newer")
    assert glance.load_metadefs(stack) == "metadefs loaded"
    assert [argv[-2:] for argv in ran] == 2 * [
        ["db_load_metadefs", f"{stack.layout.venvs}/nextdoor/etc/glance/metadefs"]]


# --- static files

PYTHON = """\
#!/bin/sh
echo "$3" >> "$(dirname "$0")/ran"
mkdir -p "$(dirname "$0")/../static"
touch "$(dirname "$0")/../static/$3-begun"
[ ! -e "$(dirname "$0")/dies-of-$3" ] || kill -KILL $$
grep -q COMPRESS_OFFLINE "$PYTHONPATH/local/local_settings.py"
"""


class Environment:
    """Horizon's, which an uv that does nothing installs from ``pins``; its Python makes static files, or dies of it."""

    def __init__(self, stack: Stack, log: Path, pins: Path) -> None:
        self.builder, self.venv, self.pins = Builder(stack.layout, log), stack.layout.venvs / "horizon", pins
        uv = stack.layout.venvs / "uv" / "bin" / "uv"
        uv.parent.mkdir(parents=True)
        uv.write_text("#!/bin/sh\n")
        uv.chmod(0o755)
        pins.write_text("horizon==27.0.0\n")
        self.programs = self.venv / "bin"
        self.programs.mkdir(parents=True)
        (self.programs / "python").write_text(PYTHON)
        (self.programs / "python").chmod(0o755)

    def beside(self) -> list[str]:
        """What the folder of all environments has."""
        return sorted(os.listdir(self.venv.parent))

    def steps(self) -> list[str]:
        """Since it was asked last."""
        ran = self.programs / "ran"
        said = ran.read_text().split() if ran.exists() else []
        ran.unlink(missing_ok=True)
        return said


@pytest.fixture
def environment(stack, tmp_path, monkeypatch) -> Environment:
    monkeypatch.setattr(venvs, "PINS", tmp_path)
    return Environment(stack, tmp_path / "log", tmp_path / "horizon.txt")


def test_static_files_when_they_are_whole_then_not_made_again(environment):
    assert environment.builder.horizon() == "built; static files made"
    assert environment.steps() == ["collectstatic", "compress"]
    assert environment.builder.horizon() == "unchanged" and environment.steps() == []


def test_static_files_when_the_settings_or_the_environment_change_then_made_again(environment, monkeypatch):
    environment.builder.horizon()
    monkeypatch.setattr(dashboard, "static_digest", lambda: "another")
    assert environment.builder.horizon() == "unchanged; static files made"
    environment.pins.write_text("horizon==27.0.1\n")
    assert environment.builder.horizon() == "built; static files made"
    assert environment.steps() == 3 * ["collectstatic", "compress"]


@pytest.mark.parametrize("step", ["collectstatic", "compress"])
def test_static_files_when_their_making_is_killed_then_refused_and_all_are_made_again(environment, step):
    (environment.programs / f"dies-of-{step}").touch()
    with pytest.raises(StackError, match=f"django {step}"):
        environment.builder.horizon()
    assert venvs.static_stamp(environment.builder.layout) == "" and environment.beside() == ["horizon", "uv"]
    (environment.programs / f"dies-of-{step}").unlink()
    (environment.venv / "static" / "of-the-killed-one").touch()
    environment.steps()
    assert environment.builder.horizon().endswith("made") and environment.steps() == ["collectstatic", "compress"]
    assert sorted(os.listdir(environment.venv / "static")) == ["collectstatic-begun", "compress-begun"]


def test_static_files_when_a_killed_up_left_its_settings_then_they_are_no_hindrance_and_go(environment):
    left = environment.builder.layout.venvs / ".site-horizon" / "local"
    left.mkdir(parents=True)
    (left / "local_settings.py").write_text("not whole")
    environment.builder.horizon()
    assert environment.beside() == ["horizon", "uv"]


def test_dashboard_when_it_is_beside_a_cloud_then_it_is_installed_and_served_by_nobody_of_the_cloud(
        tmp_path, monkeypatch):
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path / "venvs"))
    ran: list = []
    monkeypatch.setattr(beside, "FOLDERS", tmp_path)
    monkeypatch.setattr(beside, "install", lambda layout, parts, progress: ran.append(parts))
    monkeypatch.setattr(beside.shutil, "chown", lambda path, user, group=None: ran.append((path, user)))
    monkeypatch.setattr(beside.os, "execvpe", lambda program, words, env: ran.append((words, env)))
    arguments = cli.parser().parse_args(["dashboard", "--cloud", "http://127.0.0.1:8774/identity/v3", "--port", "8001"])
    assert cli.run(arguments, []) == 0
    folder = tmp_path / "nova-dashboard-8001"
    assert ran[0] == ("horizon",) and (folder, "nova") in ran and (folder / "local", "nova") in ran
    words, env = ran[-1]
    assert words[0] == "setpriv" and words[-3:] == (f"{tmp_path}/venvs/horizon/bin/gunicorn", "--config",
                                                    f"{folder}/gunicorn.conf.py")
    assert env["DJANGO_SETTINGS_MODULE"] == "openstack_dashboard.settings"
    settings = (folder / "local" / "local_settings.py").read_text()
    assert "OPENSTACK_KEYSTONE_URL = 'http://127.0.0.1:8774/identity/v3'" in settings
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("words", [(), ("--cloud", "http://x", "--port", "0"), ("--cloud", "http://x", "--port", "a")])
def test_dashboard_when_it_is_not_said_of_what_or_where_then_it_is_refused(words):
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["dashboard", *words])
