"""What conductors agree on by the database: the security mode, and the key of hosts' secrets that nobody configured."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.hosts.security import agree_on_mode, generated_key, keep_key
from nova.db.host import enrolments, security
from nova.db.models.cell import enrolments as enrolments_table
from nova.model.security.security_modes import SecurityMode
from tests.fakes.small_cloud import SmallCloud

B, U = SecurityMode.BOUNDED, SecurityMode.UPSTREAM
PASSWORDS = {"broker": "of the broker", "database": "of the database"}


@pytest.fixture
def new(cloud: SmallCloud) -> SmallCloud:
    """A cloud whose first conductor starts: nobody is enrolled."""
    cloud.cell.transact(lambda tx: tx.execute(sa.delete(enrolments_table)))
    return cloud


def recorded(cloud: SmallCloud) -> SecurityMode | None:
    with cloud.cell.reading() as tx:
        return security.mode(tx)


# -- the mode

@pytest.mark.parametrize("asked", [B, U])
def test_mode_when_the_first_conductor_starts_then_what_it_asks_for_is_recorded(
        new: SmallCloud, asked: SecurityMode) -> None:
    assert recorded(new) is None
    assert agree_on_mode(new.cell, asked) is asked and recorded(new) is asked


def test_mode_when_two_conductors_start_at_once_then_both_have_the_one_on_record(new: SmallCloud) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _number: agree_on_mode(new.cell, U), range(12)))
    assert set(found) == {U} and recorded(new) is U


def test_mode_of_a_cloud_of_an_earlier_release_when_hosts_are_enrolled_then_it_is_bounded(cloud: SmallCloud) -> None:
    cloud.cell.transact(lambda tx: enrolments.enroll(tx, "a", ("nova-compute",), ""))
    assert recorded(cloud) is B
    with pytest.raises(errors.config.LeavesBoundedMode, match=r"Set \[DEFAULT\]hosts_transport_url, \[conductor\]host"):
        agree_on_mode(cloud.cell, U)
    assert agree_on_mode(cloud.cell, B) is B


def test_mode_when_a_bounded_cloud_loses_its_options_then_no_conductor_starts(new: SmallCloud) -> None:
    agree_on_mode(new.cell, B)
    with pytest.raises(errors.config.Wrong) as refused:
        agree_on_mode(new.cell, U)
    assert errors.config.exit_status(refused.value) == 2 and recorded(new) is B


def test_mode_when_conductors_are_given_options_of_bounded_mode_then_the_record_stays(
        new: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    agree_on_mode(new.cell, U)
    assert agree_on_mode(new.cell, B) is U and recorded(new) is U
    assert "nova-manage host isolate HOST" in caplog.text


# -- the key

def start(cloud: SmallCloud, **passwords: str) -> str:
    agree_on_mode(cloud.cell, U)
    return generated_key(cloud.cell, PASSWORDS | passwords)


def kept(cloud: SmallCloud) -> dict[str, str]:
    with cloud.cell.reading() as tx:
        return security.key_copies(tx)


def test_key_when_many_conductors_start_at_once_then_they_have_the_same_one(new: SmallCloud) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _number: start(new), range(6)))
    assert len(set(found)) == 1 and len(kept(new)) == 2


def test_key_when_the_database_is_read_without_a_password_then_it_is_not_in_it(new: SmallCloud) -> None:
    key = start(new)
    assert all(key not in copy for copy in kept(new).values())
    assert len(set(kept(new).values())) == 2  # each has a salt of its own


@pytest.mark.parametrize("changed", ["broker", "database"])
def test_key_when_one_password_was_changed_then_it_opens_by_the_other_and_then_by_both(
        new: SmallCloud, changed: str) -> None:
    key = start(new)
    other = "database" if changed == "broker" else "broker"
    assert start(new, **{changed: "another"}) == key
    assert start(new, **{changed: "another", other: "changed later"}) == key
    assert len(kept(new)) == 2


def test_key_when_both_passwords_were_changed_then_the_conductor_says_what_to_do(new: SmallCloud) -> None:
    key, before = start(new), kept(new)
    with pytest.raises(errors.config.GeneratedKey, match="one of the old passwords") as refused:
        start(new, broker="x", database="y")
    assert "x" not in refused.value.data.values() and kept(new) == before and start(new) == key


@pytest.mark.parametrize("copy", ["", "nonsense", "A$B", "$", "é$aesgcm:é"])
def test_key_when_a_copy_is_damaged_then_it_is_written_anew(new: SmallCloud, copy: str) -> None:
    key = start(new)
    new.cell.transact(lambda tx: security.keep_key_copies(tx, {"broker": copy}))
    assert start(new) == key and kept(new)["broker"] != copy
    assert start(new, database="another") == key


def test_key_when_a_configured_one_is_kept_then_conductors_without_it_have_it(new: SmallCloud) -> None:
    agree_on_mode(new.cell, B)
    keep_key(new.cell, PASSWORDS, ("Y29uZmlndXJlZA==", "older"))
    assert generated_key(new.cell, PASSWORDS) == "Y29uZmlndXJlZA=="
