"""The application that each process of a WSGI server makes for itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.wsgi import application
from nova.wsgi.application import AWAY, PerProcess, arguments

TOP = Path(__file__).resolve().parents[3]


class FakeApi:
    made = 0

    def __init__(self) -> None:
        FakeApi.made += 1
        self.introduced = False
        self.applications = {"osapi_compute": self.answer}
        self.bus = self

    def introduce(self) -> None:
        self.introduced = True

    def close(self) -> None:
        pass

    def answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [b"introduced" if self.introduced else b""]


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    FakeApi.made = 0


def ask(made: PerProcess) -> tuple[str, bytes]:
    statuses: list[str] = []
    content = made({}, lambda status, headers: statuses.append(status))
    return statuses[0], b"".join(content)


def test_application_is_made_at_the_first_request_and_once() -> None:
    made = PerProcess("osapi_compute", FakeApi)
    assert FakeApi.made == 0
    assert [ask(made) for _ in range(3)] == [("200 OK", b"introduced")] * 3
    assert FakeApi.made == 1


def test_application_when_many_ask_first_then_it_is_made_once() -> None:
    made = PerProcess("osapi_compute", FakeApi)
    threads = [threading.Thread(target=ask, args=(made,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert FakeApi.made == 1


def test_application_in_a_forked_process_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    made = PerProcess("osapi_compute", FakeApi)
    ask(made)
    monkeypatch.setattr(application.os, "getpid", lambda: 1)  # as after a fork
    ask(made)
    assert FakeApi.made == 2


def test_application_that_cannot_start_is_503_and_the_next_request_tries_again() -> None:
    wrong = [errors.Unavailable("the broker is away"), ValueError("secret internals")]

    def make() -> FakeApi:
        if wrong:
            raise wrong.pop(0)
        return FakeApi()

    made = PerProcess("osapi_compute", make)  # type: ignore[arg-type]
    assert ask(made) == ("503 Service Unavailable", AWAY)
    assert ask(made) == ("503 Service Unavailable", AWAY)
    assert ask(made) == ("200 OK", b"introduced")


@pytest.mark.parametrize(("environ", "words"), [
    ({}, []),
    ({"OS_NOVA_CONFIG_DIR": "/srv"}, []),  # the defaults, which look into that folder
    ({"OS_NOVA_CONFIG_FILES": "nova.conf"}, ["--config-file", "/etc/nova/nova.conf"]),
    ({"OS_NOVA_CONFIG_DIR": "/srv", "OS_NOVA_CONFIG_FILES": "api-paste.ini;nova.conf; extra.conf"},
     ["--config-file", "/srv/nova.conf", "--config-file", "/srv/extra.conf"]),
    ({"OS_NOVA_CONFIG_DIR": "/srv", "OS_NOVA_CONFIG_FILES": "/etc/x.conf"}, ["--config-file", "/etc/x.conf"]),
    ({"OS_NOVA_CONFIG_DIR": "/srv", "OS_NOVA_CONFIG_FILES": "api-paste.ini"}, ["--config-file", "/srv/nova.conf"]),
])
def test_files_of_the_environment_are_those_of_the_command_line(environ: dict[str, str], words: list[str]) -> None:
    assert arguments(environ) == words


#: Imports the application as a server does; prints a request's status, where the log goes, and an option.
SERVER = """
import os, sys, types
import webob
if len(sys.argv) > 1:
    sys.modules["uwsgi"] = types.SimpleNamespace(opt={b"enable-threads": b"true"})
from nova.wsgi.osapi_compute import application
print(webob.Request.blank("/").get_response(application).status)
from oslo_config import cfg
print(cfg.CONF.log_file, cfg.CONF.my_ip, flush=True)
os._exit(0)  # its threads would look for a broker
"""


#: Makes what the application makes at its first request; prints the bus's option.
METADATA = """
import os
from nova.wsgi.metadata import application
from nova.cmd.api import METADATA, Api
from oslo_config import cfg
print(*(bus.option for bus in Api(cfg.CONF, {METADATA: None}).buses.values()), flush=True)
os._exit(0)
"""


def imported(folder: Path, conf: str, *words: str, server: str = SERVER,
             **environ: str) -> subprocess.CompletedProcess[str]:
    (folder / "nova.conf").write_text(conf)
    return subprocess.run([sys.executable, "-W", "ignore", "-c", server, *words], capture_output=True, text=True,
                          timeout=60, check=False, cwd=folder, env={"PYTHONPATH": ":".join(sys.path), **environ})


@pytest.mark.parametrize("conf", ["[DEFAULT]\ntransport_url = nova:secret@db/nova\n",
                                  "[DEFAULT]\ngraceful_shutdown_timeout = soon\n",
                                  "[wsgi]\napi_paste_config = none.ini\n"])
def test_import_when_the_configuration_is_wrong_then_the_log_says_why_and_requests_are_503(
        tmp_path: Path, conf: str) -> None:
    """An exit would end the server's process, and health checks would see no server at all."""
    done = imported(tmp_path, conf, OS_NOVA_CONFIG_DIR=str(tmp_path), OS_NOVA_CONFIG_FILES="nova.conf")
    assert done.returncode == 0 and done.stdout.startswith("503 Service Unavailable"), done.stderr
    [line] = done.stderr.strip().splitlines()
    assert conf.partition("]")[0].removeprefix("[") in line and "secret" not in done.stdout + line


def test_metadata_when_in_upstream_mode_then_it_is_made_though_nobody_has_read_transport_url_before(
        tmp_path: Path) -> None:
    """The library registers its options when it is used first."""
    conf = f"[DEFAULT]\nstate_path = {tmp_path}\ntransport_url = rabbit://nova:secret@127.0.0.1:1/nova\n"
    done = imported(tmp_path, conf, server=METADATA, OS_NOVA_CONFIG_DIR=str(tmp_path), OS_NOVA_CONFIG_FILES="nova.conf")
    assert done.stdout == "transport_url\n", done.stderr


def test_words_when_uwsgi_has_some_for_the_program_then_they_are_read_as_its_command_line(tmp_path: Path) -> None:
    """As Debian's packages have them: ``pyargv``."""
    log = tmp_path / "api.log"
    done = imported(tmp_path, "[DEFAULT]\nmy_ip = 192.0.2.7\n", f"--config-file={tmp_path / 'nova.conf'}",
                    f"--log-file={log}")
    assert done.stdout.splitlines()[-1] == f"{log} 192.0.2.7", done.stderr


@pytest.mark.parametrize("api", ["api", "metadata", "placement"])
def test_script_when_the_systems_python_runs_it_then_it_takes_the_libraries_of_its_own_environment(
        tmp_path: Path, api: str) -> None:
    """As mod_wsgi does by a link in /usr/bin."""
    module = {"api": "osapi_compute"}.get(api, api)
    environment = tmp_path / "environment"
    package = environment / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages/nova/wsgi"
    package.mkdir(parents=True)
    (package / f"{module}.py").write_text("application = 'of the environment'\n")
    (environment / "bin").mkdir()
    script = shutil.copy(TOP / f"nova/wsgi/nova-{api}-wsgi", environment / "bin")
    (tmp_path / "link").symlink_to(script)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", "import runpy, sys; print(runpy.run_path(sys.argv[1])"
                           "['application'])", tmp_path / "link"], capture_output=True, text=True, check=False)
    assert done.stdout == "of the environment\n", done.stderr
