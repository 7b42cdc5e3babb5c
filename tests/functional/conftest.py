"""Backends once a session, a cloud a module. Where a Debian package is missing, tests skip and name it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nova.db.models import cell as tables
from nova.db.sql.engine import Database
from tests import sampling
from tests.functional.backends import KINDS, Absent, Backends
from tests.functional.cell_cloud import CellCloud
from tests.functional.clients import User, Worker, at_terminals
from tests.functional.cloud import Cloud, Plan
from tests.functional.ec2_cloud import amazon, judged  # noqa: F401
from tests.functional.whole import WholeCloud

Make = Callable[[Plan], Cloud]


@pytest.fixture(scope="session")
def backends() -> Iterator[Backends]:
    root = Path(tempfile.mkdtemp(prefix="nova-functional-"))
    started = Backends(root)
    yield started
    started.close()
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module", params=list(KINDS))
def cell(backends: Backends, request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty database of a cell, of each kind in turn."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    database = Database(server.create(f"{request.module.__name__.rpartition('.')[2].removeprefix('test_')}_cell"))
    tables.metadata.create_all(database.engine)
    yield database
    database.dispose()


@pytest.fixture(scope="module")
def make_cloud(backends: Backends, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes clouds that are not started yet; ends them with the module, and keeps their logs when a test failed or
    there is a secret in one."""
    made: list[Cloud] = []

    def make(plan: Plan) -> Cloud:
        root = Path(tempfile.mkdtemp(prefix=f"nova-{request.module.__name__.removeprefix('test_')}-"))
        try:
            kind = WholeCloud if plan.whole else CellCloud if plan.cells else Cloud
            cloud = kind(backends, root, plan)
        except Absent as absent:
            pytest.skip(f"needs the Debian package {absent}")
        made.append(cloud)
        return cloud

    failed_before = request.session.testsfailed
    yield make
    seen: list[str] = []
    for cloud in made:
        cloud.stop()
        found = cloud.secrets_in_logs()
        if request.session.testsfailed == failed_before and not found:
            cloud.remove_files()
        seen += found
    assert seen == [], "secrets in logs"


@pytest.fixture(scope="module")
def worker(cloud: Cloud) -> Iterator[Worker]:
    """The unmodified clients, before the module's cloud."""
    with at_terminals(cloud) as found:
        yield found


@pytest.fixture
def admin(worker: Worker) -> User:
    return User(worker, "admin")


@pytest.fixture
def demo(worker: Worker) -> User:
    return User(worker, "demo")


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """What chooses samples: given, or the same for a day."""
    return sampling.SEED
