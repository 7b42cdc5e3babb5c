"""Guests that are found become servers again, as an operator says; what is not proven is refused, and stays."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.upkeep import allocation_audit, continuous_audit
from nova.db.models import api, cell
from nova.db.network import addresses, security_groups
from nova.db.quota import ledger
from nova.db.schema import api_rebuild
from nova.model.guest.orders import BuildOrder
from nova.model.guest.orphans import FoundOrphan, GuestTakeover, OrphanKind, OrphanReport, StoredGuest
from nova.model.server.states import PowerState
from tests.fakes.rows import add_ledger, new_uuid
from tests.fakes.small_cloud import SmallCloud


def other(host: str) -> str:
    return {"a": "b", "b": "a"}[host]


def appears(cloud: SmallCloud, host: str, order: BuildOrder, state: PowerState = PowerState.RUNNING,
            kind: OrphanKind = OrphanKind.GUEST) -> int:
    """The guest is on the host, which reports it; the stranger's id."""
    cloud.computes[host].given(kept_guest=StoredGuest(order=order, power_state=state))
    found = FoundOrphan(kind=kind, server_uuid=order.server_uuid, power_state=state, epoch=9)
    cloud.hosts.report_strangers(host, OrphanReport(host=host, found=(found,)))
    return next(one.id for one in cloud.control.list_strangers(False) if one.server_uuid == order.server_uuid)


def forgotten(cloud: SmallCloud) -> tuple[str, BuildOrder]:
    """A guest whose server no record knows, as after a restore: its host, and the order that it keeps."""
    [uuid] = cloud.active(1)
    host = cloud.server(uuid).host
    order = cloud.computes[host].guests[uuid]
    cloud.cell.transact(lambda tx: (addresses.unbind(tx, [uuid]), security_groups.forget(tx, [uuid])))
    for table, column in ((cell.servers, "uuid"), (cell.operations, "server_uuid")):
        cloud.write("cell", sa.delete(table).where(table.c[column] == uuid))
    for table, column in ((api.ledger, "server_uuid"), (api.allocations, "consumer")):
        cloud.write("api", sa.delete(table).where(table.c[column] == uuid))
    return host, order


def held(cloud: SmallCloud, uuid: str) -> list[str]:
    """Hosts of which the server holds something."""
    with cloud.api.reading() as tx:
        return sorted(set(tx.execute(sa.select(api.providers.c.host).join_from(
            api.allocations, api.providers, api.providers.c.id == api.allocations.c.provider_id)
            .where(api.allocations.c.consumer == uuid)).scalars()))


def refused(cloud: SmallCloud, orphan: int) -> str:
    with pytest.raises(errors.Conflict) as refusal:
        cloud.control.adopt_stranger(orphan, True)
    return refusal.value.message


def test_adopt_when_no_record_knows_the_guest_then_it_is_a_server_with_all_that_it_had(cloud: SmallCloud, caplog: Any
                                                                                      ) -> None:
    host, order = forgotten(cloud)
    orphan = appears(cloud, host, order)
    looked = cloud.control.adopt_stranger(orphan, False)
    assert looked.is_new and looked.name == order.name and cloud.control.list_strangers(False)
    with caplog.at_level(logging.WARNING):
        adopted: GuestTakeover = cloud.control.adopt_stranger(orphan, True)
    row = cloud.server(order.server_uuid)
    assert (row.id, row.name, row.project_id, row.user_id, row.host, row.vm_state) == (
        order.id, order.name, order.project_id, order.user_id, host, "active")
    assert row.epoch > max(9, order.fence.epoch) and row.interfaces == order.interfaces and adopted.notes == ()
    assert held(cloud, order.server_uuid) == [host]
    with cloud.api.reading() as tx:
        assert ledger.usage(tx, "demo", None)["project"] == {"instances": 1, "cores": 1, "ram": order.flavor.memory_mb}
    [ended] = cloud.control.list_strangers(True)
    assert ended.ending == "adopted" and "on operator request" in caplog.text
    with pytest.raises(errors.NotFound):
        cloud.control.adopt_stranger(orphan, True)
    cloud.delete(order.server_uuid)
    assert not held(cloud, order.server_uuid)


def test_adopt_when_its_ledger_row_was_closed_meanwhile_then_it_counts_again(cloud: SmallCloud) -> None:
    """After the restore of an older cell the ledger has the server, but the cell does not: the row is closed."""
    host, order = forgotten(cloud)
    add_ledger(cloud.api, server_uuid=order.server_uuid, closed=True, epoch=3, cell=cloud.deps.cell_uuid)
    cloud.control.adopt_stranger(appears(cloud, host, order), True)
    with cloud.api.reading() as tx:
        assert ledger.usage(tx, "demo", None)["project"]["instances"] == 1
    assert held(cloud, order.server_uuid) == [host]
    cloud.delete(order.server_uuid)
    assert not held(cloud, order.server_uuid)


def test_adopt_when_its_server_is_elsewhere_by_its_record_then_it_is_where_it_is_found(cloud: SmallCloud) -> None:
    [uuid] = cloud.active(1)
    was = cloud.server(uuid)
    order, there = cloud.computes[was.host].guests[uuid], other(was.host)
    orphan = appears(cloud, there, order, PowerState.SHUTDOWN)
    assert f"{was.host}, the host of its record, also has this guest" in refused(cloud, orphan)
    cloud.computes[was.host].given(device_places=errors.Unavailable("away"))
    assert "does not answer" in refused(cloud, orphan)
    assert cloud.server(uuid) == was and held(cloud, uuid) == [was.host]
    cloud.computes[was.host].given(device_places=errors.guest.NotFound(uuid=uuid, host=was.host))
    assert cloud.control.adopt_stranger(orphan, True).former_host == was.host
    now = cloud.server(uuid)
    assert (now.host, now.node, now.vm_state, now.power_state) == (there, there, "stopped", PowerState.SHUTDOWN.value)
    assert now.epoch > was.epoch and held(cloud, uuid) == [there]
    assert not cloud.control.list_strangers(False)


@pytest.mark.parametrize(("harm", "words"), [
    ("number", "another server has its number"), ("state", "its power state is crashed"),
    ("silent", "did not return its order"), ("lie", "reports it as another server's guest"),
    ("copy", "it is not a guest"), ("node", "has reported no node")])
def test_adopt_when_something_is_not_proven_then_it_is_refused_and_nothing_is_written(cloud: SmallCloud, harm: str,
                                                                                     words: str) -> None:
    host, order = forgotten(cloud)
    state, kind = PowerState.RUNNING, OrphanKind.GUEST
    if harm == "number":
        [uuid] = cloud.active(1)
        cloud.write("cell", sa.update(cell.servers).where(cell.servers.c.uuid == uuid).values(id=order.id))
    elif harm == "state":
        state = PowerState.CRASHED
    elif harm == "copy":
        kind = OrphanKind.SOURCE_COPY
    elif harm == "node":
        cloud.write("cell", sa.delete(cell.nodes))
    orphan = appears(cloud, host, order, state, kind)
    if harm == "silent":
        cloud.computes[host].given(kept_guest=errors.Unavailable("away"))
    elif harm == "lie":
        lie = StoredGuest(order=msgspec.structs.replace(order, server_uuid=new_uuid()), power_state=state)
        cloud.computes[host].given(kept_guest=lie)
    assert words in refused(cloud, orphan)
    with cloud.cell.reading() as tx:
        assert tx.execute(sa.select(cell.servers).where(cell.servers.c.uuid == order.server_uuid)).first() is None
    assert [one.id for one in cloud.control.list_strangers(False)] == [orphan]


def test_adopt_when_its_address_was_given_to_another_then_it_is_refused_and_nothing_is_written(cloud: SmallCloud
                                                                                             ) -> None:
    host, order = forgotten(cloud)
    orphan = appears(cloud, host, order)
    [taker] = cloud.active(1)
    [mine] = [one.address for one in order.interfaces[0].addresses if one.version == 4]
    assert mine in [one.address for one in cloud.server(taker).interfaces[0].addresses]
    with pytest.raises(errors.Invalid, match=mine):
        cloud.control.adopt_stranger(orphan, True)
    with cloud.cell.reading() as tx:
        assert tx.execute(sa.select(cell.servers).where(cell.servers.c.uuid == order.server_uuid)).first() is None


def test_adopt_when_its_server_was_deleted_then_it_is_refused(cloud: SmallCloud) -> None:
    [uuid] = cloud.active(1)
    host = cloud.server(uuid).host
    order = cloud.computes[host].guests[uuid]
    cloud.delete(uuid)
    assert "its server was deleted" in refused(cloud, appears(cloud, host, order))


@pytest.mark.parametrize("lost", ["ledger", "allocations"])
def test_adopt_when_it_died_between_the_databases_then_the_audits_find_what_is_missing(cloud: SmallCloud, lost: str,
                                                                                      monkeypatch: Any) -> None:
    """The record is there: quota follows from it (the continuous audit), and claims do (the audit of allocations)."""
    host, order = forgotten(cloud)
    orphan = appears(cloud, host, order)
    where, name = {"ledger": (api_rebuild, "open_rows"), "allocations": (allocation_audit, "audit")}[lost]
    with monkeypatch.context() as patch:
        patch.setattr(where, name, lambda *args, **kwargs: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            cloud.control.adopt_stranger(orphan, True)
    assert cloud.server(order.server_uuid).host == host and not cloud.control.list_strangers(False)
    continuous_audit.run(cloud.deps)
    with cloud.api.reading() as tx:
        assert ledger.usage(tx, "demo", None)["project"]["instances"] == 1
    stores = allocation_audit.Stores(cloud.api, cloud.cell)
    allocation_audit.audit(stores, order.server_uuid, allocation_audit.ALL)
    assert held(cloud, order.server_uuid) == [host]
