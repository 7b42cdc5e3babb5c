"""Where the disks of guests are that move: on their hosts, or in a directory that all hosts share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import sampling

if TYPE_CHECKING:
    from tests.machine.stack import Sandbox

#: Fixtures of conftest.py. A run tries one kind, the next run the other; with --long each tries both.
STORAGES = {"block": "sandbox", "shared": "wide_sandbox"}


@pytest.fixture(scope="module", params=sampling.drawn(list(STORAGES), 1, every=5))
def mobile(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox in which guests move."""
    return request.getfixturevalue(STORAGES[request.param])
