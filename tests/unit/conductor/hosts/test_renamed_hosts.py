"""A host is who its id says: under another name, or another machine under its name, it is refused with the cure."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as cell_tables
from nova.model.host.services import Registration
from tests.fakes.small_cloud import SmallCloud, node_id


def register(cloud: SmallCloud, host: str, host_id: str) -> None:
    cloud.hosts.register(host, Registration(host=host, binary="nova-compute", topic="compute", host_id=host_id))


def test_register_when_a_host_was_renamed_then_it_is_refused_and_told_its_old_name(cloud: SmallCloud) -> None:
    cloud.active()
    cloud.enroll("a-renamed")
    with pytest.raises(errors.Conflict, match=r"registered as host 'a'.*Set \[DEFAULT\]host = a"):
        register(cloud, "a-renamed", node_id("a"))
    table = cell_tables.services
    assert not cloud.rows("cell", sa.select(table).where(table.c.host == "a-renamed"))
    register(cloud, "a", node_id("a"))


def test_register_when_another_machine_has_its_name_then_it_is_refused_with_both_cures(cloud: SmallCloud) -> None:
    with pytest.raises(errors.Conflict, match=r"restore state_path/host_id \(write .* or delete the old service"):
        register(cloud, "a", node_id("x"))
