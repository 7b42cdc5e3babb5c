"""What conductors agree on by the database: the security mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.hosts.security import agree_on_mode
from nova.db.host import enrolments, security
from nova.db.models.cell import enrolments as enrolments_table
from nova.model.security.security_modes import SecurityMode
from tests.fakes.small_cloud import SmallCloud

B, U = SecurityMode.BOUNDED, SecurityMode.UPSTREAM


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
