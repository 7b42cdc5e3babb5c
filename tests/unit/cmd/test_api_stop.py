"""The end of nova-api."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from nova.cmd.api import Api


def test_stop_when_several_apis_are_busy_then_they_have_the_seconds_together() -> None:
    both = threading.Barrier(2)  # whoever waits alone waits for ever
    api = Api.__new__(Api)
    api.reporting, api.buses = [], {}
    api.serving = [SimpleNamespace(stop=lambda seconds: both.wait(10)) for _ in range(2)]
    api.stop(5)
    assert not both.broken
