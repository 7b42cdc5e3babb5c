"""Keys that nobody configured: conductors generate them, and find them again by the passwords that they have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from nova import errors
from nova.conductor.hosts.generated_keys import generated_key, keep_key, kept_key
from nova.db.host.generated_keys import CELLS, HOSTS
from tests.fakes.small_cloud import SmallCloud

PASSWORDS = {"broker": "of the broker", "database": "of the database"}


def start(cloud: SmallCloud, **passwords: str) -> str:
    return generated_key(cloud.cell, HOSTS, PASSWORDS | passwords)


def kept(cloud: SmallCloud) -> dict[str, str]:
    with cloud.cell.reading() as tx:
        return HOSTS.kept(tx)


def test_key_when_many_conductors_start_at_once_then_they_have_the_same_one(cloud: SmallCloud) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _number: start(cloud), range(6)))
    assert len(set(found)) == 1 and len(kept(cloud)) == 2


def test_key_when_the_database_is_read_without_a_password_then_it_is_not_in_it(cloud: SmallCloud) -> None:
    key = start(cloud)
    assert all(key not in copy for copy in kept(cloud).values())
    assert len(set(kept(cloud).values())) == 2  # each has a salt of its own


@pytest.mark.parametrize("changed", ["broker", "database"])
def test_key_when_one_password_was_changed_then_it_opens_by_the_other_and_then_by_both(
        cloud: SmallCloud, changed: str) -> None:
    key = start(cloud)
    other = "database" if changed == "broker" else "broker"
    assert start(cloud, **{changed: "another"}) == key
    assert start(cloud, **{changed: "another", other: "changed later"}) == key
    assert len(kept(cloud)) == 2


def test_key_when_both_passwords_were_changed_then_the_conductor_says_what_to_do(cloud: SmallCloud) -> None:
    key, before = start(cloud), kept(cloud)
    with pytest.raises(errors.config.GeneratedKey, match="one of the old passwords") as refused:
        start(cloud, broker="x", database="y")
    assert "x" not in refused.value.data.values() and kept(cloud) == before and start(cloud) == key


@pytest.mark.parametrize("copy", ["", "nonsense", "A$B", "$", "é$aesgcm:é"])
def test_key_when_a_copy_is_damaged_then_it_is_written_anew(cloud: SmallCloud, copy: str) -> None:
    key = start(cloud)
    cloud.cell.transact(lambda tx: HOSTS.keep(tx, {"broker": copy}))
    assert start(cloud) == key and kept(cloud)["broker"] != copy
    assert start(cloud, database="another") == key


def test_key_when_a_configured_one_is_kept_then_conductors_without_it_have_it(cloud: SmallCloud) -> None:
    keep_key(cloud.cell, HOSTS, PASSWORDS, ("Y29uZmlndXJlZA==", "older"))
    assert generated_key(cloud.cell, HOSTS, PASSWORDS) == "Y29uZmlndXJlZA=="


def test_keys_of_cells_and_hosts_then_they_are_two_and_each_error_names_its_own_options(cloud: SmallCloud) -> None:
    key = generated_key(cloud.api, CELLS, {"api_database": "word"})
    assert generated_key(cloud.api, CELLS, {"api_database": "word"}) == key != start(cloud)
    with pytest.raises(errors.config.GeneratedCellKey, match=r"\[api_database\]connection"):
        generated_key(cloud.api, CELLS, {"api_database": "another"})


def test_key_when_it_was_kept_for_others_then_it_is_found_until_the_password_changes(
        cloud: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    assert kept_key(cloud.api, CELLS, {"api_database": "word"}) == ()
    key = generated_key(cloud.api, CELLS, {"api_database": "word"})
    assert kept_key(cloud.api, CELLS, {"api_database": "word"}) == (key,) and not caplog.text
    assert kept_key(cloud.api, CELLS, {"api_database": "another"}) == () and "wrap-secrets" in caplog.text
