from __future__ import annotations

import os

import pytest

from nova.virt.libvirt.guest import console_log


@pytest.fixture
def log(tmp_path):
    (tmp_path / "console.log.1").write_bytes(b"one\r\ntwo\r\nthr")
    (tmp_path / "console.log.0").write_bytes(b"ee\r\nfour\r\n")
    (tmp_path / "console.log").write_bytes(b"five\r\nsix\r\n")
    return tmp_path / "console.log"


@pytest.mark.parametrize(("lines", "expected"), [
    (None, "one\ntwo\nthree\nfour\nfive\nsix\n"), (1, "six\n"), (2, "five\nsix\n"), (3, "four\nfive\nsix\n"),
    (4, "three\nfour\nfive\nsix\n"), (100, "one\ntwo\nthree\nfour\nfive\nsix\n"), (0, ""), (-1, ""),
])
def test_tail_reads_across_rotated_parts(log, lines, expected):
    assert console_log.tail(log, lines) == expected


def test_tail_counts_an_unfinished_line(log):
    log.write_bytes(b"five\nlogin: ")
    assert console_log.tail(log, 1) == "login: "
    assert console_log.tail(log, 2) == "five\nlogin: "


def test_tail_right_after_a_rotation_reads_the_older_part(log):
    log.unlink()
    assert console_log.tail(log, 1) == "four\n"


def test_tail_without_a_log_is_none(tmp_path):
    assert console_log.tail(tmp_path / "console.log", None) is None


def test_tail_of_odd_bytes_is_text(tmp_path):
    (tmp_path / "console.log").write_bytes(b"a\xff\x85b\x0bc\n\xe2\x80\xa8d\n")
    assert console_log.tail(tmp_path / "console.log", 1) == "\u2028d\n"
    assert console_log.tail(tmp_path / "console.log", 2) == "a\ufffd\ufffdb\x0bc\n\u2028d\n"


def test_tail_does_not_follow_a_link_or_wait_at_a_pipe(tmp_path):
    (tmp_path / "console.log").symlink_to("/etc/passwd")
    assert console_log.tail(tmp_path / "console.log", None) is None
    os.mkfifo(tmp_path / "pipe")
    assert console_log.tail(tmp_path / "pipe", None) is None


def test_tail_of_a_giant_log_is_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(console_log, "MOST_BYTES", 10)
    (tmp_path / "console.log").write_bytes(b"x" * 100 + b"end")
    assert console_log.tail(tmp_path / "console.log", None) == "xxxxxxxend"
