"""Quota on each database for real: fifty creates at once, with deletes and resizes between; given back exactly once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.actions.create import CreateAdmission
from nova.conductor.actions.move_requests import count_resize
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.quota import quota
from nova.conductor.quota.limits import Unified
from nova.db import flavors
from nova.db.models import api as api_models
from nova.db.models import cell as cell_models
from nova.db.quota import ledger, quotas
from nova.db.sql.engine import Database
from nova.model.flavor.flavors import Flavor, NewFlavor
from nova.model.quota.quotas import NETWORK_RESOURCES, RESOURCES
from nova.model.server.servers import NewServer
from tests.fakes.racing import together
from tests.functional.backends import KINDS, Absent

CREATES, LIMIT, POOL = 50, 20, 12
PROJECTS = itertools.count()


@pytest.fixture(scope="module", params=list(KINDS))
def deps(backends, request: pytest.FixtureRequest) -> Iterator[Deps]:
    """A conductor's databases with a flavor, and nothing that runs."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = []
    for name, models in (("api", api_models), ("cell", cell_models)):
        made.append(Database(server.create(f"quota_races_{name}"), pool_size=POOL))
        models.metadata.create_all(made[-1].engine)
    made[0].transact(lambda tx: flavors.insert(tx, NewFlavor(name="tiny", flavorid="1", memory_mb=64, vcpus=1,
                                                             root_gb=1)))
    limits = {**dict.fromkeys((*RESOURCES, *NETWORK_RESOURCES), -1), "instances": LIMIT}
    nothing: Any = SimpleNamespace(start=lambda entries, servers, secrets: None)
    found = Deps(api=made[0], cell=made[1], settings=ConductorSettings(quota_defaults=limits), host="ctl",
                 scheduler=None, certs=None, compute=None, network=None, images=None)
    found.journal, found.runner = SimpleNamespace(runner_id=1), nothing
    found.networking = NovaNetwork(found)
    yield found
    for database in made:
        database.dispose()


@pytest.fixture
def project(deps: Deps) -> str:
    """One of the test's own, in a deps whose limits are written."""
    deps.quotas = Deps.__dataclass_fields__["quotas"].default_factory()
    return f"project-{next(PROJECTS)}"


ADMISSIONS: dict[int, CreateAdmission] = {}


def admission(deps: Deps) -> CreateAdmission:
    """The one of all requests, which share its transactions."""
    return ADMISSIONS.setdefault(id(deps), CreateAdmission(deps))


def create(deps: Deps, project: str, count: int = 1) -> tuple[str, ...]:
    with context.entered(context.RequestContext(request_id="req-x", user_id="joe", project_id=project)):
        return admission(deps).create_servers(NewServer(name="vm", flavor_id="1", min_count=count,
                                                              max_count=count,
                                                         networks=())).uuids


def delete(deps: Deps, uuid: str, epoch: int = 2) -> None:
    deps.api.transact(lambda tx: ledger.close(tx, {uuid: epoch}))


def resize(deps: Deps, uuid: str, project: str, vcpus: int) -> None:
    """What its admission does under the project's lock."""
    small = Flavor(flavorid="1", name="tiny", memory_mb=64, vcpus=1, root_gb=1)
    big = Flavor(flavorid="2", name="big", memory_mb=64, vcpus=vcpus, root_gb=1)
    row = SimpleNamespace(uuid=uuid, project_id=project, user_id="joe", flavor=small, image=None, volumes=None)
    count_resize(deps, SimpleNamespace(epoch=2), row, big, quota.owner(deps, project, "joe"))


def used(deps: Deps, project: str, user: str | None = None) -> dict[str, int]:
    with deps.api.reading() as tx:
        return ledger.usage(tx, project, user)["user" if user else "project"]


def outcomes(results: list[Any]) -> tuple[list[Any], list[Any]]:
    """(what was done, what quota refused); anything else fails."""
    refused = [one for one in results if isinstance(one, Exception)]
    assert all(isinstance(one, errors.OverQuota) for one in refused), refused
    return [one for one in results if not isinstance(one, Exception)], refused


def test_quota_when_fifty_creates_race_then_exactly_the_limit_gets_through(deps: Deps, project: str) -> None:
    done, refused = outcomes(together([lambda: create(deps, project)] * CREATES))
    assert (len(done), len(refused)) == (LIMIT, CREATES - LIMIT)
    assert used(deps, project)["instances"] == LIMIT
    with deps.cell.reading() as tx:
        table = cell_models.servers
        rows = set(tx.execute(sa.select(table.c.uuid).where(table.c.project_id == project)).scalars())
    assert rows == {uuid for uuids in done for uuid in uuids}


def test_create_when_more_of_new_projects_race_than_the_pool_has_connections_then_all_are_made(deps: Deps) -> None:
    """Each makes its project's default security group, too."""
    names = [f"new-{number}" for number in range(CREATES)]
    assert len(outcomes(together([lambda name=name: create(deps, name) for name in names]))[0]) == CREATES


@pytest.mark.parametrize("level", ["class", "project", "user"])
def test_quota_when_requests_of_several_race_then_no_level_is_exceeded(deps: Deps, project: str, level: str) -> None:
    limit = {"cores": 7}

    def write(tx: Any) -> None:
        if level == "class":
            quotas.write_class(tx, "default", limit)
        else:
            quotas.write(tx, project, "joe" if level == "user" else None, limit)
    deps.api.transact(write)
    try:
        done, _refused = outcomes(together([lambda: create(deps, project, 3)] * 10))
    finally:
        deps.api.transact(lambda tx: quotas.write_class(tx, "default", {"cores": -1}))
    assert len(done) == 2 and used(deps, project, "joe")["cores"] == 6


def test_quota_when_creates_deletes_and_resizes_race_then_usage_is_the_sum_of_what_is_left(deps: Deps,
                                                                                           project: str) -> None:
    deps.api.transact(lambda tx: quotas.write(tx, project, None, {"cores": 30}))
    first = [create(deps, project)[0] for _ in range(15)]
    acts: list[Any] = []
    for at, uuid in enumerate(first):
        if at % 3 == 0:
            acts += [lambda uuid=uuid: delete(deps, uuid)] * 2  # its message came twice
        elif at % 3 == 1:
            acts.append(lambda uuid=uuid: resize(deps, uuid, project, 4))
    done, _refused = outcomes(together(acts + [lambda: create(deps, project)] * (CREATES - len(acts))))
    made = sum(isinstance(one, tuple) for one in done)
    grown = [uuid for uuid in first if _vcpus(deps, uuid) == 4]
    assert used(deps, project) == {"instances": 10 + made, "cores": 10 + made + 3 * len(grown),
                                    "ram": 64 * (10 + made)}
    assert used(deps, project)["instances"] <= LIMIT and used(deps, project)["cores"] <= 30
    assert made == LIMIT - 10 or used(deps, project)["cores"] > 27


def _vcpus(deps: Deps, uuid: str) -> int:
    with deps.api.reading() as tx:
        table = api_models.ledger
        return int(tx.execute(sa.select(table.c.vcpus).where(table.c.server_uuid == uuid)).scalar_one())


def test_quota_when_deletes_come_twice_late_or_overtaken_then_it_is_given_back_once(deps: Deps,
                                                                                    project: str) -> None:
    one, two = create(deps, project, 2)
    deps.api.transact(lambda tx: ledger.release(tx, {one: 2}, {}))  # and its conductor dies here
    assert used(deps, project)["instances"] == 2
    together([lambda: delete(deps, one)] * 8)
    assert used(deps, project)["instances"] == 1
    deps.api.transact(lambda tx: ledger.raise_epochs(tx, {two: 5}))  # a newer operation owns it
    delete(deps, two, epoch=4)
    assert used(deps, project)["instances"] == 1
    delete(deps, two, epoch=5)
    assert used(deps, project) == {"instances": 0, "cores": 0, "ram": 0}


def test_unified_limits_when_fifty_creates_race_then_no_class_is_exceeded(deps: Deps, project: str) -> None:
    keystone = SimpleNamespace(limits=lambda project_id: SimpleNamespace(
        registered={"servers": 100, "class:DISK_GB": LIMIT}, own={}))
    deps.quotas = Unified(keystone)
    done, refused = outcomes(together([lambda: create(deps, project)] * CREATES))
    assert (len(done), len(refused)) == (LIMIT, CREATES - LIMIT)
    with deps.api.reading() as tx:
        assert deps.quotas.usage(tx, project, None)["project"]["class:DISK_GB"] == LIMIT
