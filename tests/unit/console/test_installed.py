"""The pages of a proxy, whichever libraries are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova.console import installed, kinds

WEB_KINDS = (kinds.NOVNC, kinds.SPICE)


@pytest.mark.parametrize("kind", WEB_KINDS, ids=lambda kind: kind.binary)
def test_pages_when_the_library_is_absent_then_the_words_say_what_installs_it(kind: kinds.ConsoleKind, tmp_path: Path
                                                                              ) -> None:
    absent = kind._replace(web=str(tmp_path / Path(kind.web).name))
    found = installed.pages(absent, None, "")
    assert found.files is None and found.page is None
    assert f"Debian's package {Path(kind.web).name}" in found.lacks and "[DEFAULT]web" in found.lacks


@pytest.mark.parametrize("kind", WEB_KINDS, ids=lambda kind: kind.binary)
def test_pages_when_the_library_has_its_own_then_those_are_served(kind: kinds.ConsoleKind, tmp_path: Path) -> None:
    (tmp_path / kind.entries[-1]).touch()
    found = installed.pages(kind, str(tmp_path), "")
    assert found.files is not None and found.page is None and not found.lacks


def test_pages_when_there_is_novncs_module_alone_then_ours_shows_the_screen(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "rfb.js").touch()
    found = installed.pages(kinds.NOVNC, str(tmp_path), "")
    assert found.page is not None and b".nova/screen.js" in found.page and not found.lacks
    assert b"../core/rfb.js" in found.own["screen.js"].content and "session.js" in found.own


def test_pages_when_a_directory_has_neither_then_the_words_name_the_usual_ones(tmp_path: Path) -> None:
    found = installed.pages(kinds.NOVNC, str(tmp_path), "")
    assert "vnc_auto.html" in found.lacks and found.files is not None


def test_serial_pages_when_xterm_is_absent_then_a_plain_terminal_of_ours_is_used(tmp_path: Path) -> None:
    found = installed.pages(kinds.SERIAL, None, str(tmp_path), "/nowhere")
    assert found.page is not None and b"window.Terminal" in found.own["terminal.js"].content
    assert "plain terminal" in found.lacks and "libjs-xterm" in found.lacks


def test_serial_pages_when_xterm_is_npms_package_then_it_is_used(tmp_path: Path) -> None:
    for name in ("lib/xterm.js", "css/xterm.css"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    found = installed.pages(kinds.SERIAL, None, str(tmp_path))
    assert found.own["terminal.js"].content == b"lib/xterm.js" and not found.lacks


def test_serial_page_when_served_then_each_file_that_it_names_is_there() -> None:
    found = installed.pages(kinds.SERIAL, None, "/nowhere", "/nowhere")
    page = (found.page or b"").decode()
    named = [part.split('"')[0] for part in page.split(".nova/")[1:]]
    assert set(named) == set(found.own)
