"""A host that does not answer: what it owes, who may go on, and what stays claimed."""

from __future__ import annotations

from nova import errors
from nova.model.orders import Permission
from tests.fakes.small_cloud import SmallCloud, refused, silent


def test_boot_works_and_leaves_nothing_after_delete(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    assert cloud.server(uuid).host == "a" and cloud.claims() == {("a", uuid)}
    cloud.delete(uuid)
    assert not cloud.claims() and not cloud.addresses() and not cloud.open_ledger()
