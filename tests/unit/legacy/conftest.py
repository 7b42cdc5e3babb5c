"""A small cloud with VPN servers for each test that wants it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.legacy.cloudpipe.vpn_servers import Cloudpipes
from tests.fakes.small_cloud import SmallCloud
from tests.unit.conductor.conftest import templates  # noqa: F401 - a fixture


class VpnCloud(SmallCloud):
    cloudpipes = Cloudpipes


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[VpnCloud]:  # noqa: F811 - the fixture
    made = VpnCloud(tmp_path, templates)
    yield made
    made.close()
