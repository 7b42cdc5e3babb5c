"""Log lines: one event is one line, whatever a client put into it."""

from __future__ import annotations

import logging

import pytest

from nova.logs import LONGEST, OneLine, OneObject


@pytest.mark.parametrize(("said", "shown"), [
    ("two\nlines", "two | lines"), ("back\rto the start", "back\\x0dto the start"), ("\x1b[2J", "\\x1b[2J"),
    ("next\x85line", "next\\x85line"), ("line\u2028and paragraph\u2029", "line\\u2028and paragraph\\u2029"),
    ("tab\tand ä \N{SNOWMAN}", "tab\tand ä \N{SNOWMAN}")])
def test_line_when_a_client_chose_its_words_then_it_stays_one_line(said: str, shown: str) -> None:
    line = OneLine().format(logging.makeLogRecord({"msg": "event %s", "args": (said,), "name": "nova.x"}))
    assert line.endswith(f"nova.x [-] event {shown}") and len(line.splitlines()) == 1


def test_line_when_it_is_huge_then_its_beginning_and_its_end_are_kept() -> None:
    record = logging.makeLogRecord({"msg": "begins %s ends", "args": ("x" * 100_000,), "name": "nova.x"})
    line = OneLine().format(record)
    assert "begins x" in line and line.endswith("x ends") and "characters are left out" in line
    assert len(line) < LONGEST + 200 and len(OneObject().format(record)) < LONGEST + 400
