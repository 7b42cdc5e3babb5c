"""What hosts of libvirt within nova-all need of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova import errors
from nova.devel.nova_all import hosts
from nova.devel.nova_all.hosts import NEEDS


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all of them."""
    monkeypatch.setattr(hosts, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(hosts, "LIBEXEC", str(tmp_path))
    for need in NEEDS:
        (tmp_path / need.programs[-1]).touch(0o755)
    return tmp_path


def test_programs_when_all_are_there_then_nothing_is_said(programs: Path) -> None:
    hosts.check_programs()


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.package)
def test_program_when_missing_then_the_start_is_refused_with_its_package(programs: Path, need: hosts.Need) -> None:
    (programs / need.programs[-1]).unlink()
    with pytest.raises(errors.service.CannotStart, match=f"--driver libvirt requires .*: apt install {need.package}$"):
        hosts.check_programs()


def test_programs_when_several_are_missing_then_one_command_installs_all(programs: Path) -> None:
    for path in programs.iterdir():
        path.unlink()
    with pytest.raises(errors.service.CannotStart) as caught:
        hosts.check_programs()
    assert caught.value.message.endswith(f"apt install {' '.join(need.package for need in NEEDS)}")
