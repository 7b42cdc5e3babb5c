"""nova-status health: what a daemon says of itself, as an exit status and a line."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from nova import conf, configuration
from nova.conf.monitoring import PORTS
from nova.manage import health, status

SCHEDULER = "nova-scheduler"
WELL = {"status": "ok", "daemon": SCHEDULER, "workers": [{"worker": 0, "state": "serving"}],
        "checks": {"bus": {"ok": True, "ms": 1}}}


@contextlib.contextmanager
def answering(code: int, said: dict[str, Any] | bytes) -> Iterator[tuple[int, list[str]]]:
    """A daemon's address for monitoring; its port, and the pages that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            """Tell nobody."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], asked
        server.shutdown()
        thread.join()


def options(**group: object) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    for name, value in group.items():
        made.set_override(name, value, "monitoring")
    return made


def cmdline(folder: Path, *words: str) -> Path:
    path = folder / "cmdline"
    path.write_bytes(b"".join(word.encode() + b"\0" for word in words))
    return path


# -- the daemon of a container

@pytest.mark.parametrize("words", [
    ("/opt/nova/bin/python3", "/opt/nova/bin/nova-api", "--config-file", "/x/nova.conf", "--config-dir=/x/d"),
    ("/run/podman-init", "--", "nova-api", "--config-file", "/x/nova.conf", "--debug", "--config-dir=/x/d")])
def test_of_container_when_its_first_process_starts_a_daemon_then_its_name_and_its_files(
        tmp_path: Path, words: tuple[str, ...]) -> None:
    found = health.of_container(cmdline(tmp_path, *words))
    assert found == health.Daemon("nova-api", ["--config-file", "/x/nova.conf", "--config-dir=/x/d"])


@pytest.mark.parametrize("words", [("/bin/sh", "-c", "sleep 1"), ("/opt/nova/bin/nova-manage", "version"), ("",)])
def test_of_container_when_its_first_process_is_no_daemon_then_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert health.of_container(cmdline(tmp_path, *words)) is None


# -- what it says

@pytest.mark.parametrize("page", [health.READY, health.LIVE])
def test_fault_when_the_daemon_is_well_then_empty_and_the_page_was_asked(page: str) -> None:
    with answering(200, WELL) as (port, asked):
        assert health.fault(options(port=port), SCHEDULER, page) == ""
    assert asked == [page]


@pytest.mark.parametrize("listen", health.EVERYWHERE)
def test_fault_when_it_listens_everywhere_then_this_machine_is_asked(listen: str) -> None:
    assert health.EVERYWHERE[listen] in health.fault(options(listen=listen, port=1), SCHEDULER, health.READY)


@pytest.mark.parametrize(("detail", "words"), [
    ({"checks": {"bus": {"ok": False, "error": "No answer."}, "x": {"ok": True}}}, "bus: No answer."),
    ({"workers": [{"worker": 1, "state": "starting"}], "checks": {}}, "worker 1 is starting"),
    ({"checks": {}}, "it has not started yet")])
def test_fault_when_a_check_or_a_worker_fails_then_its_name(detail: dict[str, Any], words: str) -> None:
    with answering(503, {**WELL, **detail}) as (port, _):
        assert health.fault(options(port=port), SCHEDULER, health.READY) == words


def test_fault_when_another_daemon_has_the_port_then_both_are_named() -> None:
    with answering(200, {**WELL, "daemon": "nova-cert"}) as (port, _):
        said = health.fault(options(port=port), SCHEDULER, health.READY)
    assert said.startswith(f"nova-cert answers at 127.0.0.1:{port} ") and "another port" in said


def test_fault_when_no_json_comes_then_it_does_not_answer() -> None:
    with answering(200, b"hello") as (port, _):
        assert f"127.0.0.1:{port} " in health.fault(options(port=port), SCHEDULER, health.READY)


def test_fault_when_it_is_not_served_then_the_option() -> None:
    assert "[monitoring]enabled" in health.fault(options(enabled=False), SCHEDULER, health.READY)


# -- the program

@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What is read of a configuration: program and words."""
    found: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(configuration, "read", lambda binary, words: found.append((binary, words)))
    return found


def test_program_when_no_daemon_is_named_then_that_of_the_container_with_its_files(
        monkeypatch: pytest.MonkeyPatch, read: list[tuple[str, list[str]]]) -> None:
    monkeypatch.setattr(health, "of_container", lambda: health.Daemon("nova-cert", ["--config-file", "/x"]))
    monkeypatch.setattr(health, "fault", lambda *_: "")
    assert status.main(["health"]) == 0 and status.main(["--config-file", "/y", "health"]) == 0
    assert read == [("nova-cert", ["--config-file", "/x"]), ("nova-cert", ["--config-file", "/y"])]


@pytest.mark.parametrize(("words", "page", "said"), [
    (["health", SCHEDULER], health.READY, "ready"), (["health", "--live", SCHEDULER], health.LIVE, "alive")])
@pytest.mark.usefixtures("read")
def test_program_when_the_daemon_fails_then_1_and_one_line(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], page: str,
        said: str) -> None:
    monkeypatch.setattr(health, "fault", lambda _options, binary, asked: f"{binary} {asked}")
    assert status.main(words) == 1
    assert capsys.readouterr() == ("", f"nova-status: {SCHEDULER} is not {said}: {SCHEDULER} {page}\n")


def test_program_when_the_container_has_no_daemon_then_1_and_what_to_do(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(health, "of_container", lambda: None)
    assert status.main(["health"]) == 1 and "name a service" in capsys.readouterr().err


def test_program_when_the_daemon_is_unknown_then_2() -> None:
    assert "nova-all" not in PORTS
    with pytest.raises(SystemExit, match="2"):
        status.main(["health", "nova-all"])
