"""What hosts owe, shown to operators, and forgiven when the host is gone for good."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.queries import usage
from nova.db.host import host_cleanups as table
from nova.db.models.cell import services
from nova.model.host.services import PendingCleanup, ServiceQuery, ServiceUpdate
from tests.fakes.compute_hosts import silent
from tests.fakes.small_cloud import SmallCloud


def lost(cloud: SmallCloud) -> tuple[str, PendingCleanup]:
    """A server that went on to host b, and what a owes for it."""
    cloud.computes["a"].answers |= {"build": silent, "destroy": silent}
    uuid, = cloud.active()
    cleanup, = cloud.control.list_debts(None)
    return uuid, cleanup


def take_out(cloud: SmallCloud, host: str) -> None:
    of_host = sa.and_(services.c.host == host, services.c.binary == "nova-compute")
    cloud.write("cell", sa.update(services).where(of_host).values(deleted=services.c.id))


def test_cleanups_are_listed_by_host(cloud: SmallCloud) -> None:
    assert cloud.control.list_debts(None) == ()
    uuid, cleanup = lost(cloud)
    assert (cleanup.host, cleanup.server_uuid, cleanup.step) == ("a", uuid,
                                                                 "destroy_guests") and cleanup.created_at is not None
    assert cloud.control.list_debts("a") == (cleanup,) and cloud.control.list_debts("b") == ()


def test_deleting_the_service_when_its_host_has_cleanups_then_it_is_refused_until_the_host_is_said_to_be_gone(
        cloud: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    uuid, cleanup = lost(cloud)
    named = ServiceQuery(host="a", binary="nova-compute")
    with pytest.raises(errors.Conflict, match=f"(?s)Host a .*{uuid}.*--down a.*cleanup drop a"):
        cloud.control.delete_service(named)
    assert cloud.control.list_services(named) and cloud.control.list_debts("a") == (cleanup,)
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=True))
    cloud.control.delete_service(named)
    assert not cloud.control.list_services(named) and uuid in caplog.text
    assert cloud.control.forgive_debts("a") == (cleanup,)


def test_deleting_the_service_when_its_host_has_paid_then_nothing_is_in_the_way(cloud: SmallCloud) -> None:
    _uuid, cleanup = lost(cloud)
    cloud.hosts.debt_paid("a", cleanup.id)
    cloud.control.delete_service(ServiceQuery(host="a", binary="nova-compute"))


def test_cleanup_when_a_newer_one_stands_in_its_place_then_doing_the_older_does_not_do_it(cloud: SmallCloud) -> None:
    """The host did the older, could not say so, and is told of the newer: it must do that, too."""
    uuid, old = lost(cloud)
    again = {"host": "a", "server_uuid": uuid, "step": old.step, "arguments": {"keep_disks": "1"}}
    both = [{**again, "epoch": old.epoch - 1}, {**again, "epoch": old.epoch}]
    cloud.cell.transact(lambda tx: table.add(tx, both))
    assert cloud.control.list_debts("a") == (old,)
    cloud.cell.transact(lambda tx: table.add(tx, [{**again, "epoch": old.epoch + 1}]))
    new, = cloud.control.list_debts("a")
    assert new.id != old.id and new.epoch == old.epoch + 1 and new.arguments == {"keep_disks": "1"}
    cloud.hosts.debt_paid("a", old.id)
    assert cloud.control.list_debts("a") == (new,) and ("a", uuid) in cloud.claims()
    cloud.hosts.debt_paid("a", new.id)
    assert cloud.control.list_debts("a") == () and ("a", uuid) not in cloud.claims()


def test_dropping_when_the_host_is_registered_then_conflict_and_the_cleanup_stands(cloud: SmallCloud) -> None:
    uuid, cleanup = lost(cloud)
    with pytest.raises(errors.Conflict, match="registered"):
        cloud.control.forgive_debts("a")
    assert cloud.control.list_debts(None) == (cleanup,) and ("a", uuid) in cloud.claims()


def test_dropping_when_the_host_was_removed_then_its_claims_are_free_and_the_servers_stay(cloud: SmallCloud) -> None:
    uuid, cleanup = lost(cloud)
    take_out(cloud, "a")
    assert cloud.control.forgive_debts("a") == (cleanup,)
    assert cloud.control.list_debts(None) == () and cloud.claims() == {("b", uuid)}
    assert cloud.server(uuid).vm_state == "active" and cloud.open_ledger() == {uuid}
    assert cloud.control.forgive_debts("a") == () == cloud.control.forgive_debts("nobody")


def test_dropping_when_it_dies_half_way_then_the_next_one_ends_it(cloud: SmallCloud, monkeypatch) -> None:
    uuid, cleanup = lost(cloud)
    take_out(cloud, "a")

    def killed(*args: object) -> None:
        raise SystemExit
    with monkeypatch.context() as patch:
        patch.setattr(usage.host_cleanups, "drop", killed)
        with pytest.raises(SystemExit):
            usage.UsageQueries(cloud.deps).forgive_debts("a")  # type: ignore[arg-type]
    assert cloud.claims() == {("b", uuid)} and cloud.control.list_debts("a") == (cleanup,)
    assert cloud.control.forgive_debts("a") == (cleanup,)
    assert not cloud.debts()


def test_dropping_when_the_host_comes_back_meanwhile_then_conflict_and_it_pays_itself(cloud: SmallCloud) -> None:
    _uuid, cleanup = lost(cloud)
    take_out(cloud, "a")
    release = cloud.deps.feed.after_release

    def come_back(providers: object) -> None:
        of_host = sa.and_(services.c.host == "a", services.c.binary == "nova-compute")
        cloud.write("cell", sa.update(services).where(of_host).values(deleted=0))
        release(providers)  # type: ignore[arg-type]
    cloud.deps.feed.after_release = come_back  # type: ignore[method-assign]
    with pytest.raises(errors.Conflict):
        usage.UsageQueries(cloud.deps).forgive_debts("a")  # type: ignore[arg-type]
    assert cloud.control.list_debts("a") == (cleanup,)
