"""Files of a web directory: those in it, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nova.console.static import StaticFiles


@pytest.fixture
def web(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "ui.js").write_text("let x;")
    (folder / "app" / "some thing.unknown").write_text("?")
    (folder / "page.html").write_text("<html>")
    (folder / ".hidden").write_text("hidden")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "webbed").mkdir()
    (tmp_path / "webbed" / "x.txt").write_text("a sibling that begins alike")
    return folder


def test_file_is_found_with_its_type_and_content(web: Path) -> None:
    found = StaticFiles(str(web), ()).find("app/ui.js")
    assert found is not None
    assert (found.type, found.size) == ("text/javascript; charset=utf-8", 6)
    assert b"".join(found.parts()) == b"let x;"
    other = StaticFiles(str(web), ()).find("app/some thing.unknown")
    assert other is not None and other.type == "application/octet-stream"
    other.close()


@pytest.mark.parametrize("path", [
    "../secret.txt", "app/../../secret.txt", "app/../page.html", "..", ".", "", "app", "app/", "/etc/passwd",
    "app//ui.js", ".hidden", "app/.", "%2e%2e/secret.txt", "..\\secret.txt", "app\\ui.js", "page.html\0.js",
    "page.html/", "page.html/x", "none", "a" * 5000, "\xff\xfe",
])
def test_other_paths_name_nothing(web: Path, path: str) -> None:
    assert StaticFiles(str(web), ()).find(path) is None


def test_symlink_when_it_leads_to_a_package_beside_then_it_is_followed(web: Path, tmp_path: Path) -> None:
    (web / "lib.js").symlink_to(tmp_path / "webbed" / "x.txt")
    (web / "alias.html").symlink_to("page.html")
    files = StaticFiles(str(web), (str(tmp_path / "webbed"),))
    for name in ("lib.js", "alias.html"):
        found = files.find(name)
        assert found is not None
        found.close()


def test_symlink_when_it_leads_out_then_it_is_not_there(web: Path, tmp_path: Path) -> None:
    (web / "out.txt").symlink_to(tmp_path / "secret.txt")
    (web / "like").symlink_to(tmp_path / "webbed")
    files = StaticFiles(str(web), ())
    assert files.find("out.txt") is None
    assert files.find("like/x.txt") is None, "a directory that begins with the same letters is another"


def test_pipe_when_asked_for_then_it_is_no_file_and_holds_nobody(web: Path) -> None:
    os.mkfifo(web / "pipe")
    assert StaticFiles(str(web), ()).find("pipe") is None


def test_unchanged_follows_the_tag_before_the_date(web: Path) -> None:
    found = StaticFiles(str(web), ()).find("page.html")
    assert found is not None
    assert found.unchanged(found.etag, None) and found.unchanged(f'"x", W/{found.etag}', None)
    assert found.unchanged("*", None) and found.unchanged(None, found.modified)
    assert not found.unchanged('"x"', found.modified) and not found.unchanged(None, None)
    found.close()


def test_no_open_file_is_left_behind(web: Path) -> None:
    files = StaticFiles(str(web), ())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        found = files.find("page.html")
        assert found is not None
        list(found.parts())
        files.find("app")
        files.find("none")
    assert len(os.listdir("/proc/self/fd")) == before
