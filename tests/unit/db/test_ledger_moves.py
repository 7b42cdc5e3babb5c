"""Claims of both ends of a move: exact on one host and on two, repeated, overtaken, and kept where a host owes."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import hosts
from nova.db.models import api as tables
from nova.db.placement import claims
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.sql.engine import Database
from nova.model.scheduling.decisions import Resources
from tests.fakes.rows import SMALL, add_ledger, add_provider, new_uuid

BIG = Resources(vcpus=2, memory_mb=1024, disk_gb=2)


class Server:
    """One that holds what it needs of host1, and a move of its; epochs count up with each call."""

    def __init__(self, api: Database) -> None:
        self.api, self.move, self.epoch = api, new_uuid(), 0
        [self.uuid] = add_ledger(api)
        self.providers = {name: add_provider(api, name) for name in ("host1", "host2")}
        assert self.claim("host1") is None

    def _next(self) -> int:
        self.epoch += 1
        return self.epoch

    def claim(self, host: str, resources: Resources = SMALL, epoch: int | None = None) -> Any:
        wanted = claims.Claim(self.uuid, epoch or self._next(), self.providers[host], resources)
        return self.api.transact(lambda tx: claims.claim(tx, [wanted]))[0][self.uuid]

    def begin(self, epoch: int | None = None) -> None:
        self.api.transact(lambda tx: ledger.begin_move(tx, self.uuid, epoch or self._next(), self.move))

    def end(self, kept: tuple[str, ...] = (), epoch: int | None = None) -> list[int]:
        return self.api.transact(lambda tx: ledger.end_move(tx, self.uuid, epoch or self._next(), self.move, kept))

    def undo(self, kept: tuple[str, ...] = (), epoch: int | None = None) -> list[int]:
        return self.api.transact(lambda tx: ledger.undo_move(tx, self.uuid, epoch or self._next(), self.move, kept))

    def end_overtaken_moves(self, host: str, kept: tuple[str, ...] = ()) -> list[int]:
        return self.api.transact(lambda tx: ledger.end_overtaken_moves(tx, self.uuid, self._next(), host, kept))

    def held(self) -> set[tuple[str, bool, int]]:
        """(host, whether it is a move's, vcpus)."""
        held, given = tables.allocations, tables.providers
        with self.api.reading() as tx:
            rows = tx.execute(sa.select(given.c.host, held.c.consumer, held.c.moving, held.c.used).join_from(
                held, given, given.c.id == held.c.provider_id).where(held.c.resource_class == "VCPU")).all()
        assert all(row.moving == (None if row.consumer == self.uuid else self.uuid) for row in rows)
        return {(row.host, row.moving is not None, row.used) for row in rows}


@pytest.fixture
def server(api: Database) -> Server:
    return Server(api)


@pytest.mark.parametrize("target", ["host1", "host2"])
def test_move_when_it_begins_and_ends_then_just_the_new_place_is_held(server, target):
    for _ in range(2):
        server.begin()
        assert server.claim(target, BIG) is None
        assert server.held() == {("host1", True, 1), (target, False, 2)}
    assert server.end() == [server.providers["host1"]]
    assert server.held() == {(target, False, 2)}
    assert server.end() == []


@pytest.mark.parametrize("target", ["host1", "host2"])
def test_move_when_it_is_undone_then_just_the_old_place_is_held(server, target):
    server.begin()
    server.claim(target, BIG)
    for changed in ([server.providers[target]], []):
        assert server.undo() == changed
        assert server.held() == {("host1", False, 1)}


def test_move_when_it_never_began_then_its_undo_changes_nothing(server):
    assert server.undo() == [] and server.held() == {("host1", False, 1)}


def test_move_when_its_claim_is_refused_then_the_old_place_stays_the_moves_until_it_is_undone(server):
    server.begin()
    assert isinstance(server.claim("host2", Resources(vcpus=99, memory_mb=1, disk_gb=1)), errors.ClaimConflict)
    assert server.held() == {("host1", True, 1)}
    server.undo()
    assert server.held() == {("host1", False, 1)}


def test_same_host_when_both_ends_do_not_fit_then_the_claim_is_refused(server):
    server.begin()
    wanted = Resources(vcpus=4, memory_mb=1, disk_gb=1)  # of four, one is held
    assert isinstance(server.claim("host1", wanted), errors.ClaimConflict)


@pytest.mark.parametrize("call", ["begin", "end", "undo"])
def test_move_when_a_newer_epoch_owns_the_server_then_it_is_overtaken(server, call):
    server.begin()
    server.claim("host2", BIG)
    before = server.held()
    with pytest.raises(errors.Overtaken):
        getattr(server, call)(epoch=1)
    assert server.held() == before and isinstance(server.claim("host2", BIG, epoch=1), errors.Overtaken)


def test_move_when_the_row_is_closed_then_it_is_overtaken(server):
    server.api.transact(lambda tx: ledger.close(tx, {server.uuid: 9}))
    with pytest.raises(errors.Overtaken):
        server.begin(epoch=10)


def test_move_when_a_host_has_cleanups_then_what_is_held_there_stays_until_it_did_its_cleanup(server):
    server.begin()
    server.claim("host2", BIG)
    assert server.end(kept=("host1",)) == []
    assert server.held() == {("host1", True, 1), ("host2", False, 2)}
    server.api.transact(lambda tx: ledger.release_on(tx, server.uuid, "host1"))
    assert server.held() == {("host2", False, 2)}


def test_cleanup_when_the_server_is_back_on_that_host_then_only_its_moves_claim_is_released(server):
    server.begin()
    server.claim("host1", BIG)
    server.api.transact(lambda tx: ledger.release_on(tx, server.uuid, "host1", server.move))
    assert server.held() == {("host1", False, 2)}


def test_undo_when_the_destination_has_cleanups_then_a_next_move_takes_both_and_ends_both(server):
    server.begin()
    server.claim("host2", BIG)
    assert server.undo(kept=("host2",)) == []
    assert server.held() == {("host1", False, 1), ("host2", False, 2)}
    server.move = new_uuid()
    server.begin()
    assert server.held() == {("host1", True, 1), ("host2", True, 2)}
    server.providers["host3"] = add_provider(server.api, "host3")
    assert server.claim("host3", BIG) is None
    server.end(kept=("host2",))
    assert server.held() == {("host2", True, 2), ("host3", False, 2)}


@pytest.mark.parametrize("target, host, left", [
    ("host2", "host1", {("host1", False, 1)}), ("host2", "host2", {("host2", False, 2)}),
    ("host1", "host1", {("host1", False, 2)})])
def test_end_overtaken_moves_when_there_was_one_then_the_server_holds_just_where_it_is(server, target, host, left):
    server.begin()
    server.claim(target, BIG)
    server.end_overtaken_moves(host)
    assert server.held() == left
    assert server.end_overtaken_moves(host) == [] and server.held() == left


def test_end_overtaken_moves_when_a_host_has_cleanups_then_that_is_kept(server):
    server.begin()
    server.claim("host2", BIG)
    server.end_overtaken_moves("host2", kept=("host1",))
    assert server.held() == {("host1", True, 1), ("host2", False, 2)}


def test_release_when_the_server_is_deleted_in_a_move_then_both_ends_go(server):
    server.begin()
    server.claim("host2", BIG)
    server.api.transact(lambda tx: ledger.release(tx, {server.uuid: server._next()}, {}))
    assert server.held() == set()


def test_held_by_when_a_move_is_open_then_both_ends_are_told(server):
    server.begin()
    server.claim("host2", BIG)
    with server.api.reading() as tx:
        assert ledger.held_by(tx, server.uuid) == [ledger.HoldingHost("host1", server.move),
                                                   ledger.HoldingHost("host2", None)]


def test_count_as_when_repeated_or_overtaken_then_quota_is_exact(server):
    def counted() -> int:
        with server.api.reading() as tx:
            return ledger.usage(tx, "demo", None)["project"]["cores"]
    for _ in range(2):
        server.api.transact(lambda tx: ledger.count_as(tx, server.uuid, 5, {"vcpus": 3, "memory_mb": 9}))
        assert counted() == 3
    with pytest.raises(errors.Overtaken):
        server.api.transact(lambda tx: ledger.count_as(tx, server.uuid, 4, {"vcpus": 1, "memory_mb": 9}))
    assert counted() == 3


def test_usage_of_hosts_when_a_move_is_open_then_both_ends_count(server):
    server.begin()
    server.claim("host2", BIG)
    with server.api.reading() as tx:
        used = {row.host: row.classes["VCPU"].used for row in hosts.provider_rows(tx).values()}
        claimants = hosts.claimants(tx, [server.providers["host1"]])
    assert used == {"host1": 1, "host2": 2} and claimants == {server.uuid}


def test_group_when_a_member_moves_then_both_ends_count_for_others_and_none_for_itself(server):
    other = add_ledger(server.api)[0]
    groups = tables.server_groups
    server.api.transact(lambda tx: (
        tx.execute(sa.insert(groups).values(id=1, uuid=new_uuid(), name="g", policy="anti-affinity", rules={},
                                            project_id="demo", user_id="joe", created_at=sa.func.now())),
        server_groups.join(tx, 1, [server.uuid, other], "joe")))
    server.begin()
    server.claim("host2", BIG)
    with server.api.reading() as tx:
        assert server_groups.placement(tx, [server.uuid]).hosts == {}
        assert server_groups.placement(tx, [other]).hosts == {"host1": 1, "host2": 1}
    wanted = claims.Claim(other, 1, server.providers["host1"], SMALL, grouped=True)
    assert isinstance(server.api.transact(lambda tx: claims.claim(tx, [wanted]))[0][other], errors.host.ClaimGroup)
