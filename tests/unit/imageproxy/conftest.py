"""An image service in small, and an image proxy in front of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.glance import FakeGlance
from tests.fakes.image_proxies import RunningProxy, glance_at


@pytest.fixture
def glance() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def proxy(glance: FakeGlance) -> Iterator[RunningProxy]:
    with RunningProxy(glance_at(glance.url)) as running:
        yield running
