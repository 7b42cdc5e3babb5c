"""What the owner of a guest is told when its host fails."""

from __future__ import annotations

import errno
import os

import pytest

from nova.compute import order_table
from nova.compute.orders import outcomes
from nova.compute.orders.kind import OrderKind

UUID = "6a2b9a4e-7a58-4d2f-9b0e-3a5d6c1f2e47"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("kind", [order_table.BUILD, order_table.REBOOT, order_table.RESUME], ids=str)
def test_failure_when_the_disk_is_full_then_it_says_so(kind: OrderKind, number: int) -> None:
    reported = outcomes.failure(UUID, OSError(number, os.strerror(number), "/var/lib/nova/instances/x"), kind)
    assert reported.error_code == "host.disk_full" and reported.error_kind == "host_refused"
    assert reported.error_message == f"There is no space left for the guest's files on {os.uname().nodename}."


def test_failure_when_a_file_cannot_be_removed_then_it_is_no_full_disk() -> None:
    reported = outcomes.failure(UUID, PermissionError(errno.EPERM, "no"), order_table.DESTROY)
    assert reported.error_message == "The host failed to destroy the guest (PermissionError)."
