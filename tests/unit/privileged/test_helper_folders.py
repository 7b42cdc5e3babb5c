"""Files that the helper opens: below its folders, by no link but root's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nova import errors
from nova.privileged.helper.folders import HelperFolders
from nova.privileged.opened_files import OpenedFile

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "instances" / "guest").mkdir(parents=True)
    (tmp_path / "instances" / "guest" / "disk").write_text("disk")
    return tmp_path / "instances"


@pytest.fixture
def folders(top: Path):
    made = HelperFolders([top])
    yield made
    made.close()


def test_file_when_it_lies_below_then_it_is_opened_and_is_its_path_still(folders, top) -> None:
    opened = folders.file(f"{top}/guest/disk")
    assert isinstance(opened, OpenedFile) and opened == f"{top}/guest/disk"
    (top / "guest" / "disk").rename(top / "guest" / "old")
    (top / "guest" / "disk").symlink_to("/etc/passwd")
    assert Path(opened.place).read_text() == "disk"


@pytest.mark.parametrize("path", ["{top}", "{top}/", "/", "/etc/passwd", "{top}x/disk", "guest/disk", "",
                                  "{top}/guest/../../../etc/passwd", "{top}/guest/di\0sk", "{top}" + "/x" * 100])
def test_path_when_it_is_not_one_below_then_it_is_refused(folders, top, path) -> None:
    for opening in (folders.file, folders.folder, folders.made):
        with pytest.raises(errors.host.HelperRefused):
            opening(path.format(top=top))


def test_file_when_it_is_none_or_has_another_name_then_it_is_refused(folders, top) -> None:
    guest = top / "guest"
    os.mkfifo(guest / "pipe")
    os.link(guest / "disk", guest / "again")
    (guest / "link").symlink_to(guest / "pipe")
    for name in ("pipe", "again", "disk", "link"):
        with pytest.raises(errors.host.HelperRefused):
            folders.file(f"{guest}/{name}")
    with pytest.raises(errors.host.HelperRefused):
        folders.folder(f"{guest}/pipe")


@root_only
def test_folder_when_a_thief_puts_a_link_in_its_place_then_it_is_not_followed(folders, top) -> None:
    (top.parent / "elsewhere").mkdir()
    (top.parent / "elsewhere" / "disk").write_text("root's")
    os.chown(top, 65534, 65534)
    (top / "guest").rename(top / "old")
    (top / "guest").symlink_to(top.parent / "elsewhere")
    for opening in (folders.file, folders.made):
        with pytest.raises(errors.host.HelperRefused, match="link"):
            opening(f"{top}/guest/disk")


@root_only
def test_folder_when_root_has_put_a_link_then_it_is_followed(top, tmp_path) -> None:
    (tmp_path / "data").mkdir()
    top.rename(tmp_path / "data" / "instances")
    top.symlink_to(tmp_path / "data" / "instances")
    folders = HelperFolders([top])
    assert Path(folders.file(f"{top}/guest/disk").place).read_text() == "disk"
    folders.close()


@root_only
def test_file_when_it_is_made_then_it_belongs_to_whose_the_folder_is(folders, top) -> None:
    os.chown(top / "guest", 65534, 65534)
    made = folders.made(f"{top}/guest/new")
    facts = os.stat(made.place)
    assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o777) == (65534, 65534, 0o600)
    assert folders.made(f"{top}/guest/new") == made


def test_descriptors_when_they_are_handed_on_then_no_folder_on_the_way_is_among_them(folders, top) -> None:
    opened = folders.file(f"{top}/guest/disk")
    assert folders.descriptors() == (opened.fd,)
    folders.close()
    with pytest.raises(OSError):
        os.fstat(opened.fd)
