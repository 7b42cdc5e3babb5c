"""The pages of consoles that nova-all finds, or fetches with npm: once, bounded, and never a reason not to start."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nova.devel.nova_all import console_pages
from nova.devel.nova_all.console_pages import ConsolePages

#: npm that installs both packages where it is told to.
WORKS = """for word; do case $word in --prefix=*) to=${word#--prefix=};; esac; done
mkdir -p $to/node_modules/@novnc/novnc/core $to/node_modules/@xterm/xterm/lib
touch $to/node_modules/@novnc/novnc/core/rfb.js; echo x > $to/node_modules/@xterm/xterm/lib/xterm.js"""
FAILS = "echo 'npm error code ENOTFOUND' >&2; exit 1"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The npm on the PATH, which the test writes; each call is a line of ``calls`` beside it."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def write(npm: Path, body: str) -> None:
    npm.write_text(f"#!/bin/sh\necho \"$@\" >> {npm.parent}/calls\n{body}\n")
    npm.chmod(0o755)


def calls(npm: Path) -> list[str]:
    kept = npm.parent / "calls"
    return kept.read_text().splitlines() if kept.exists() else []


def find(cache: Path) -> ConsolePages:
    """On a machine without Debian's packages."""
    return console_pages.find(cache, "/nowhere", "/nowhere", "/nowhere")


def test_pages_when_npm_works_then_they_are_fetched_once_and_nothing_else_is_left(npm: Path, tmp_path: Path) -> None:
    write(npm, WORKS)
    first, again = find(tmp_path / "cache"), find(tmp_path / "cache")
    assert first == again and os.path.isfile(f"{first.web}/core/rfb.js") and not first.lacks
    assert os.path.isfile(f"{first.xterm_path}/lib/xterm.js")
    [call] = calls(npm)
    assert "--ignore-scripts" in call and call.endswith(" ".join(console_pages.PACKAGES))
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_pages_when_debians_are_installed_then_npm_is_not_asked(npm: Path, tmp_path: Path) -> None:
    write(npm, WORKS)
    (tmp_path / "xterm.js").write_text("x")
    assert console_pages.find(tmp_path / "cache", str(tmp_path), str(tmp_path)) == ConsolePages()
    assert calls(npm) == [] and not (tmp_path / "cache").exists()


def test_pages_when_debian_has_one_of_them_then_npms_is_taken_for_the_other(npm: Path, tmp_path: Path) -> None:
    write(npm, WORKS)
    found = console_pages.find(tmp_path / "cache", str(tmp_path), "/nowhere", "/nowhere")
    assert found.web == "" and found.xterm_path


def test_pages_when_npm_fails_then_the_words_say_why_and_a_day_passes_until_it_is_asked_again(npm: Path, tmp_path: Path
                                                                                              ) -> None:
    write(npm, FAILS)
    first, again = find(tmp_path / "cache"), find(tmp_path / "cache")
    assert "ENOTFOUND" in first.lacks and "ENOTFOUND" in again.lacks and "remove" in again.lacks
    assert (first.web, first.xterm_path) == ("", "") and len(calls(npm)) == 1
    [failed] = (tmp_path / "cache").glob("*.failed")
    os.utime(failed, (0, time.time() - console_pages.AGAIN_S - 1))
    write(npm, WORKS)
    assert find(tmp_path / "cache").web


def test_pages_when_npm_does_not_answer_then_the_start_goes_on(npm: Path, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    write(npm, "exec sleep 60")
    monkeypatch.setattr(console_pages, "FETCH_S", 0.2)
    assert "took longer than" in find(tmp_path / "cache").lacks


def test_pages_when_there_is_no_npm_then_nothing_is_tried(npm: Path, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(npm.parent))
    assert find(tmp_path / "cache") == ConsolePages() and not (tmp_path / "cache").exists()


def test_pages_when_the_cache_cannot_be_written_then_the_words_name_it(npm: Path) -> None:
    write(npm, WORKS)
    assert "/proc/nobody" in find(Path("/proc/nobody")).lacks
