"""A cloud in upstream security mode: one nova.conf for all daemons, as deployment tools render it."""

from __future__ import annotations

import pytest

from tests.functional.backends import Backends
from tests.functional.cloud import Cloud, Plan


@pytest.fixture(scope="module")
def cloud(backends: Backends, tmp_path_factory: pytest.TempPathFactory):
    made = Cloud(backends, tmp_path_factory.mktemp("upstream"), Plan(computes=2, upstream=True))
    try:
        yield made.start()
    finally:
        made.stop()


def test_server_when_nobody_enrolled_a_host_then_it_boots_all_the_same(cloud: Cloud) -> None:
    server = cloud.api().boot("vm1")
    cloud.api().delete(server)
