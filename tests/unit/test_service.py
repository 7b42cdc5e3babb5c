"""What is called again and again."""

from __future__ import annotations

import logging
import time

import pytest

from nova import errors
from nova.service import PeriodicTask


@pytest.mark.parametrize(("again_s", "warnings", "calls"), [(0.001, 1, 4), (None, 1, 1)])
def test_every_when_its_peer_is_unavailable_then_it_calls_again_soon_and_says_so_once(
        caplog: pytest.LogCaptureFixture, again_s: float | None, warnings: int, calls: int) -> None:
    called: list[int] = []

    def call() -> None:
        called.append(1)
        if len(called) < 4:
            raise errors.Unavailable("the broker is away")
        every.stop()

    every = PeriodicTask(0.2, call, "heartbeat", at_once=True, again_s=again_s)
    with caplog.at_level(logging.WARNING):
        every.start()
        until = time.monotonic() + 0.1
        while time.monotonic() < until and len(called) < 4:
            time.sleep(0.002)
    every.stop()
    said = [record for record in caplog.records if record.name == "nova.service"]  # not threads of tests before this
    assert (len(called), len(said)) == (calls, warnings)
