"""Guests that move between hosts whose nova-compute is not root and has the helper: off and running, as for root."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.machine.test_moves import (  # noqa: F401 - fixtures and tests of this file, too
    guest,
    hosts,
    mobile,
    test_cold_move_when_the_flavor_grows_then_the_disk_grows_and_keeps_its_content,
    test_live_migration_when_blocks_are_copied_then_uptime_connection_and_disk_go_on,
)

pytestmark = pytest.mark.in_turn(7, 10)


@pytest.fixture(scope="module", autouse=True)
def helped() -> Iterator[None]:
    """What the hosts' processes look at when they begin (``move_host``)."""
    os.environ["NOVA_TEST_HELPED"] = "1"
    yield
    del os.environ["NOVA_TEST_HELPED"]
