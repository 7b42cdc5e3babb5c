"""The records of all cells: encrypted by nova-manage, and read by conductors."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.cells.records import cell_records
from nova.db.host import cell_mappings
from nova.db.models import api as tables
from nova.model.host.cell_urls import NO_TRANSPORT, CellUrls
from nova.model.host.cells import CELL, CELL0, CellMapping
from nova.model.host.sealed_cells import opened, resealed, sealed
from nova.model.security.secret_wrap import MARK, SecretWrap, new_key
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud

URLS = CellUrls("rabbit://nova:broker-word@h1/nova", "mysql://nova:db-word@db/nova")
TEMPLATE = "{scheme}://{username}:{password}@{hostname}/{path}"


@pytest.fixture
def wrap() -> SecretWrap:
    return SecretWrap((new_key(),))


def record(cloud: SmallCloud, wrap: SecretWrap, cell: CellMapping) -> CellMapping:
    """The record of a cell whose URLs are encrypted."""
    kept = resealed(wrap, cell)
    cloud.api.transact(lambda tx: cell_mappings.put(tx, kept))
    return kept


def test_records_when_urls_are_encrypted_then_they_are_read_by_name_and_no_password_is_in_the_file(
        cloud: SmallCloud, wrap: SecretWrap) -> None:
    east = CellMapping(new_uuid(), "east", "rabbit://u:own-word@h9/v", "mysql://u:own{secret}-word@d9/east", True)
    first = CellMapping(CELL, "west", *URLS)
    for cell in (first, east):
        assert all(url and url.startswith(MARK) for url in record(cloud, wrap, cell)[2:4])
    assert cell_records(cloud.api, wrap, CellUrls("", "")) == (east, first._replace(is_entry=True))
    assert b"-word" not in Path(cloud.api.engine.url.database or "").read_bytes()


def test_records_of_older_releases_when_they_are_read_then_they_mean_what_they_meant(
        cloud: SmallCloud, wrap: SecretWrap) -> None:
    rows = [CellMapping(CELL, "a"), CellMapping(CELL0, "cell0", NO_TRANSPORT, "mysql://nova:{password}@db/nova_cell0"),
            CellMapping(new_uuid(), "z", "rabbit://plain:word@h2/v", TEMPLATE)]
    for row in rows:
        cloud.api.transact(lambda tx, row=row: cell_mappings.put(tx, row))
    first, cell0, other = cell_records(cloud.api, wrap, URLS)
    assert first[2:4] == URLS
    assert cell0[2:4] == (NO_TRANSPORT, "mysql://nova:db-word@db/nova_cell0")
    assert other[2:4] == ("rabbit://plain:word@h2/v", URLS.database_connection)


def test_records_when_nothing_is_recorded_then_the_first_cell_is_there_once_a_host_reports(
        cloud: SmallCloud, wrap: SecretWrap) -> None:
    cloud.api.transact(lambda tx: tx.execute(sa.delete(tables.providers)))
    assert cell_records(cloud.api, wrap, URLS) == ()
    with cloud.api.engine.begin() as tx:
        tx.execute(sa.insert(tables.providers).values(uuid=new_uuid(), name="n", host="h", host_id=new_uuid()))
    assert cell_records(cloud.api, wrap, URLS) == (CellMapping(CELL, "cell1", *URLS, is_entry=True),)


def test_entry_when_another_cell_is_made_it_then_it_is_the_only_one(cloud: SmallCloud, wrap: SecretWrap) -> None:
    for cell in (CellMapping(CELL, "cell1", *URLS), CellMapping(CELL0, "cell0", NO_TRANSPORT, "mysql://h/nova_cell0")):
        record(cloud, wrap, cell)
    for entry in (CELL0, CELL, CELL0):
        cloud.api.transact(lambda tx, entry=entry: cell_mappings.make_entry(tx, entry))
        assert [one.uuid for one in cell_records(cloud.api, wrap, URLS) if one.is_entry] == [entry]


def test_records_when_the_key_is_wrong_then_the_error_names_the_option_and_no_password(
        cloud: SmallCloud, wrap: SecretWrap) -> None:
    record(cloud, wrap, CellMapping(CELL, "cell1", *URLS))
    with pytest.raises(errors.config.CellUrlSealed) as refused:
        cell_records(cloud.api, SecretWrap((new_key(),)), URLS)
    assert "[conductor]host_secret_key" in refused.value.message and "transport_url" in refused.value.message
    assert "word" not in refused.value.message.replace("password", "") and errors.config.exit_status(
        refused.value) == 2


def test_url_when_it_is_moved_to_another_column_or_cell_then_it_does_not_decrypt(wrap: SecretWrap) -> None:
    kept = sealed(wrap, CELL, "transport_url", URLS.transport_url)
    moved = [CellMapping(new_uuid(), "a", transport_url=kept), CellMapping(CELL, "a", database_connection=kept)]
    for cell in moved:
        with pytest.raises(errors.config.CellUrlSealed):
            opened(wrap, cell, URLS)


def test_rewrap_when_the_first_key_is_new_then_it_alone_decrypts_and_templates_stay(
        cloud: SmallCloud, wrap: SecretWrap) -> None:
    old, new = new_key(), new_key()
    cell = CellMapping(CELL, "cell1", "rabbit://plain:word@h2/v", TEMPLATE, True, True)
    record(cloud, SecretWrap((old,)), cell)
    cloud.api.transact(lambda tx: cell_mappings.rewrap(tx, CELL, SecretWrap((new, old))))
    assert cell_records(cloud.api, SecretWrap((new,)), URLS) == (cell._replace(
        database_connection=URLS.database_connection),)
    with cloud.api.reading() as tx:
        assert cell_mappings.by_uuid(tx)[CELL].database_connection == TEMPLATE
    with pytest.raises(errors.config.CellUrlSealed):
        cloud.api.transact(lambda tx: cell_mappings.rewrap(tx, CELL, SecretWrap((old,))))
    cloud.api.transact(lambda tx: cell_mappings.rewrap(tx, new_uuid(), wrap))
