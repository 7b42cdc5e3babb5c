"""nova-manage host wrap-secrets: a new first key encrypts hosts' secrets and cells' URLs, and older keys can go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nova.cmd.conductor_hosts import cells_wrap, configured_urls
from nova.conductor.cells.records import cell_records
from nova.conf._options import Options
from nova.db.host import cell_mappings, enrolments, security
from nova.db.host.generated_keys import CELLS
from nova.manage import isolation_commands as commands
from nova.manage.cell_store import CellStore
from nova.manage.databases import database_of
from nova.model.host.cell_urls import CellUrls
from nova.model.security.secret_wrap import SecretWrap, new_key
from nova.model.security.security_modes import SecurityMode
from nova.rpc import transport
from tests.fakes.databases import as_if_synced
from tests.unit.manage.test_doctor import options

URLS = CellUrls("rabbit://nova:own-word@h1/nova", "mysql://nova:own-word@db/nova")


@pytest.fixture
def cloud(tmp_path: Path) -> Options:
    made: Options = options(database__connection=f"sqlite:///{tmp_path}/cell",
                            api_database__connection=f"sqlite:///{tmp_path}/api")
    transport.has_broker(made)  # it declares transport_url
    for schema in ("api", "cell"):
        as_if_synced(schema, database_of(made, schema)).dispose()
    return made


def with_keys(cloud: Options, keys: Sequence[str]) -> None:
    cloud.set_override("host_secret_key", list(keys), "conductor")  # type: ignore[attr-defined]


def record(cloud: Options) -> None:
    """A cell, and a host with a secret."""
    api, cell = database_of(cloud, "api"), database_of(cloud, "cell")
    store = CellStore.of(cloud, api)
    store.create(store.writer(), "cell1", URLS)
    cell.transact(lambda tx: security.record_first(tx, SecurityMode.BOUNDED))
    keys = cloud.conductor.host_secret_key
    if keys:
        cell.transact(lambda tx: enrolments.enroll(tx, "h1", (), SecretWrap(keys).wrapped("h1", "token")))


def urls(cloud: Options) -> list[tuple[str | None, str | None]]:
    """What conductors with this configuration read."""
    api = database_of(cloud, "api")
    found = cell_records(api, cells_wrap(cloud, api), configured_urls(cloud))
    return [(one.transport_url, one.database_connection) for one in found]


def wrapped(cloud: Options, code: int = 0) -> str:
    said: list[str] = []
    assert commands.wrap_secrets(cloud, said.append) == code
    return "\n".join(said)


def test_wrap_when_a_new_key_is_first_then_it_alone_decrypts_cells_and_hosts(cloud: Options) -> None:
    old, new = new_key(), new_key()
    with_keys(cloud, [old])
    record(cloud)
    with_keys(cloud, [new, old])
    assert "1 hosts and the URLs of 1 cells" in (said := wrapped(cloud)) and "can be removed" in said
    with_keys(cloud, [new])
    assert urls(cloud) == [URLS] and "can be removed" in wrapped(cloud)


def test_wrap_when_no_key_decrypts_a_cell_then_1_and_the_options_name_and_the_key_stays(cloud: Options) -> None:
    with_keys(cloud, [new_key()])
    record(cloud)
    with_keys(cloud, [new_key()])
    said = wrapped(cloud, code=1)
    assert "cell" in said and "[conductor]host_secret_key" in said and "own-word" not in said
    assert "of 0 cells" in said and "can be removed" not in said


def test_wrap_when_a_key_is_configured_later_then_the_generated_one_is_dropped(cloud: Options) -> None:
    record(cloud)
    assert urls(cloud) == [URLS]
    key = new_key()
    with_keys(cloud, [key])
    assert urls(cloud) == [URLS], "until they are encrypted again, the generated key decrypts them"
    wrapped(cloud)
    api = database_of(cloud, "api")
    with api.reading() as tx:
        assert not CELLS.kept(tx)
    assert urls(cloud) == [URLS]
    with_keys(cloud, [])
    with pytest.raises(Exception, match="cannot be decrypted"):
        urls(cloud)


def test_wrap_when_the_file_has_no_api_database_then_cells_are_left_to_others(cloud: Options) -> None:
    with_keys(cloud, [new_key()])
    record(cloud)
    cloud.set_override("connection", None, "api_database")  # type: ignore[attr-defined]
    assert "1 hosts and the URLs of 0 cells" in wrapped(cloud)


def test_revert_to_upstream_mode_when_the_key_is_removed_then_cells_can_be_read(cloud: Options) -> None:
    with_keys(cloud, [new_key()])
    record(cloud)
    commands._revert_all(cloud, database_of(cloud, "cell"), lambda _line: None)
    with_keys(cloud, [])
    assert urls(cloud) == [URLS]


def test_update_cell_when_its_urls_change_then_conductors_read_the_new_ones(cloud: Options) -> None:
    from nova.manage import main

    record(cloud)
    api = database_of(cloud, "api")
    with api.reading() as tx:
        [uuid] = cell_mappings.by_uuid(tx)
    changed = ("rabbit://nova:new-word@h2/nova", "mysql://nova:new-word@db2/nova")
    given = main.parser().parse_args(["cell_v2", "update_cell", "--cell_uuid", uuid, "--transport-url", changed[0],
                                      "--database_connection", changed[1]])
    assert given.command.run(cloud, given) == 0
    assert urls(cloud) == [changed]
