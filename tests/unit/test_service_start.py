"""What a daemon that cannot start says last."""

from __future__ import annotations

import logging
import os
import pwd
import time
from types import SimpleNamespace

import pytest

from nova import errors, service_start
from nova.service_start import Start


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def start(self) -> None:
        raise self.error

    def stop(self, seconds: float) -> None:
        raise AssertionError("it never started")


def last_line(error: Exception, caplog: pytest.LogCaptureFixture) -> str:
    begun = Start(SimpleNamespace(), "nova-compute", lambda index: Failing(error), 0)
    until = time.monotonic() + 5
    while not begun.over and time.monotonic() < until:
        time.sleep(0.001)
    assert begun.over and begun.service is None
    return said(caplog)[-1].getMessage()


def said(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """By the start alone: a thread of another test may say something, too. All are errors."""
    found = [record for record in caplog.records if record.name == "nova.service_start"]
    assert all(record.levelno == logging.ERROR for record in found)
    return found


@pytest.mark.parametrize("error", [errors.service.CannotStart(reason="set "
                                                              "[DEFAULT]x"), errors.Unavailable("set [DEFAULT]x")])
def test_start_when_the_reason_is_known_then_it_is_the_only_line(error, caplog):
    assert last_line(error, caplog) == "nova-compute cannot start: set [DEFAULT]x"
    assert len(said(caplog)) == 1


def test_start_when_a_file_is_another_users_then_it_is_named_with_the_cure(caplog):
    line = last_line(PermissionError(13, "Permission denied", "/var/lib/nova/nova-compute.lock"), caplog)
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert f"The user {user} may not use /var/lib/nova/nova-compute.lock" in line and f"`chown {user} " in line
    assert len(said(caplog)) == 1


def test_start_when_nobody_foresaw_the_failure_then_the_last_line_names_it_and_says_what_to_do(caplog):
    line = last_line(KeyError("odd"), caplog)
    assert line.startswith("nova-compute cannot start: KeyError: 'odd'.") and "report it" in line
    assert said(caplog)[0].exc_info


class Working(Failing):
    def start(self) -> None:
        """Start at once."""


def test_start_when_the_service_works_then_its_memory_is_settled(monkeypatch):
    calls: list[str] = []
    monkeypatch.setattr(service_start.memory, "settle", lambda: calls.append("settled"))
    begun = Start(SimpleNamespace(), "nova-compute", lambda index: Working(ValueError()), 0)
    until = time.monotonic() + 5
    while not begun.over and time.monotonic() < until:
        time.sleep(0.001)
    assert begun.service and calls == ["settled"]
