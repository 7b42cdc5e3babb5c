"""How the cloud as a whole stands, for Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from nova import errors
from nova.conductor.queries.cloud_figures import CACHED_S, CloudFigures
from nova.db.models.cell import cleanups, services
from nova.db.sql.statements import insert_all
from nova.db.sql.types import later, utc_now
from nova.db.upkeep import cloud_figures
from nova.db.upkeep.cloud_figures import MOST_HOSTS
from tests.fakes.rows import add_servers, new_uuid, server_row


def figures(collector: CloudFigures) -> dict[tuple[str, tuple[str, ...]], float]:
    registry = CollectorRegistry()
    registry.register(collector)
    return {(sample.name, tuple(sample.labels.values())): sample.value
            for family in registry.collect() for sample in family.samples}


def service(host: str, binary: str = "nova-compute", **fields: object) -> dict[str, object]:
    return {"uuid": new_uuid(), "host": host, "binary": binary, "host_id": "", "secret": "", "disabled": False,
            "forced_down": False, "version": 1, "release": "", "created_at": utc_now(), "last_seen_at": utc_now(),
            "deleted": 0, **fields}


@pytest.fixture
def deps(cloud):
    return cloud.deps


@pytest.fixture
def collector(deps) -> CloudFigures:
    now = [0.0]
    made = CloudFigures(deps, lambda: now[0])
    made.now = now
    return made


def test_figures_when_the_cloud_is_empty_then_they_are_there_and_nothing_is_divided(collector) -> None:
    found = figures(collector)
    assert found["nova_cloud_known", ()] == 1 and found["nova_strangers", ("guest",)] == 0


def test_figures_then_daemons_hosts_servers_and_cleanups_are_counted(collector, deps) -> None:
    add_servers(deps.cell, server_row(vm_state="active"), server_row(vm_state="active"), server_row(vm_state="error"))
    deps.cell.transact(lambda tx: [tx.execute(services.insert().values(**row)) for row in (
        service("cn1"), service("cn2", last_seen_at=later(-500)), service("cn3", disabled=True),
        service("cn4", forced_down=True), service("old", deleted=9))])
    deps.cell.transact(lambda tx: insert_all(tx, cleanups, [
        {"host": "cn2", "server_uuid": new_uuid(), "epoch": 1, "step": "BuildGuests", "arguments": {},
         "created_at": utc_now()} for _ in range(3)]))
    found = figures(collector)
    assert (found["nova_servers", ("active",)], found["nova_servers", ("error",)]) == (2, 1)
    states = [found["nova_services", ("nova-compute", state)] for state in ("up", "down", "disabled")]
    assert states == [3, 2, 1], "the cloud has two that are up; one that is disabled is not among them"
    assert 490 < found["nova_host_heartbeat_age_seconds", ("cn2", "enabled")] < 600
    assert not [labels for (_name, labels) in found if "old" in labels]
    assert found["nova_cleanups_pending", ("cn2",)] == 3


def test_figures_when_there_are_many_hosts_then_those_that_need_a_look_are_named_and_no_more(collector, deps) -> None:
    rows = [service(f"cn{number}", last_seen_at=later(-number)) for number in range(MOST_HOSTS + 50)]
    deps.cell.transact(lambda tx: [tx.execute(services.insert().values(**row)) for row in rows])
    named = {labels[0] for (name, labels) in figures(collector) if name == "nova_host_heartbeat_age_seconds"}
    assert len(named) == MOST_HOSTS and f"cn{MOST_HOSTS + 49}" in named and "cn0" not in named


def test_figures_when_many_ask_then_the_databases_are_read_once_in_a_while(collector, monkeypatch) -> None:
    reads = []
    monkeypatch.setattr(cloud_figures, "cell", lambda tx, down, real=cloud_figures.cell: reads.append(1)
                        or real(tx, down))
    for _ in range(5):
        figures(collector)
    assert len(reads) == 1
    collector.now[0] += CACHED_S
    figures(collector)
    assert len(reads) == 2


def test_figures_when_the_database_is_away_then_only_that_is_said_and_later_they_are_there_again(collector, monkeypatch
                                                                                               ) -> None:
    def away(*_: object) -> None:
        raise errors.Unavailable("away")
    with monkeypatch.context() as patch:
        patch.setattr(cloud_figures, "cell", away)
        assert figures(collector) == {("nova_cloud_known", ()): 0}
    collector.now[0] += CACHED_S
    assert figures(collector)["nova_cloud_known", ()] == 1
