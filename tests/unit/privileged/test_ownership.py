"""What a daemon of root's has left is its user's, once it has one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nova.privileged.ownership import adopt

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

NOVA, QEMU = 54321, 54322


def adopted(*roots: Path) -> int:
    opened = [os.open(root, os.O_PATH | os.O_DIRECTORY) for root in roots]
    try:
        return adopt(opened, NOVA, NOVA)
    finally:
        for one in opened:
            os.close(one)


def owners(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): path.lstat().st_uid for path in top.rglob("*")}


def test_files_when_a_daemon_was_root_then_they_are_its_users_and_what_qemu_has_stays(tmp_path: Path) -> None:
    guest = tmp_path / "state" / "instances" / "guest"
    guest.mkdir(parents=True)
    for name in ("order.json", "disk", "console.log"):
        (guest / name).write_text(name)
    os.chown(guest / "disk", QEMU, QEMU)
    assert adopted(tmp_path / "state") == 5
    assert (tmp_path / "state").stat().st_uid == NOVA
    assert owners(tmp_path / "state") == {
        "instances": NOVA, "instances/guest": NOVA, "instances/guest/order.json": NOVA,
        "instances/guest/console.log": NOVA, "instances/guest/disk": QEMU}
    assert adopted(tmp_path / "state") == 0


def test_files_when_links_lead_elsewhere_then_what_is_there_stays_roots(tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    for folder in (state, elsewhere):
        folder.mkdir()
    (elsewhere / "file").write_text("root's")
    (state / "folder").symlink_to(elsewhere)
    (state / "file").symlink_to(elsewhere / "file")
    os.link(elsewhere / "file", state / "second")
    (tmp_path / "link").symlink_to(elsewhere)
    assert adopted(state) == 1, "the folder itself"
    assert set(owners(elsewhere).values()) == {0}
