"""What this machine says of its uptime."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from nova.model.base import utcnow
from nova.virt.libvirt.host.report import uptime_of


@pytest.mark.parametrize("size", [384, 400])
def test_uptime_when_users_are_logged_in_then_they_are_counted(tmp_path: Path, size: int) -> None:
    (tmp_path / "uptime").write_text("93784.21 12345.60\n")
    records = [2, 7, 8, 7, 1]
    (tmp_path / "utmp").write_bytes(b"".join(bytes([kind]) + bytes(size - 1) for kind in records))
    uptime = uptime_of(tmp_path, tmp_path / "utmp")
    assert uptime.users == 2 and len(uptime.load) == 3
    assert abs(utcnow() - uptime.booted_at - datetime.timedelta(seconds=93784)) < datetime.timedelta(seconds=3)


def test_uptime_when_nobody_keeps_who_is_logged_in_then_nobody_is(tmp_path: Path) -> None:
    (tmp_path / "uptime").write_text("1.00 1.00\n")
    assert uptime_of(tmp_path, tmp_path / "utmp").users == 0
