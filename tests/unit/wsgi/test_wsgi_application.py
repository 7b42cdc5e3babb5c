"""The application that each process of a WSGI server makes for itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest

from nova import errors
from nova.wsgi import application
from nova.wsgi.application import AWAY, PerProcess, arguments


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


def test_application_that_can_not_start_is_503_and_the_next_request_tries_again() -> None:
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
