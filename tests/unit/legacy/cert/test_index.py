"""``index.txt``: lines of openssl's, there and back."""

from __future__ import annotations

import datetime

import pytest

from nova.legacy.cert import index

LINES = ("V\t270101000000Z\t\t10\tunknown\t/C=US/CN=a\n"
         "R\t20510101000000Z\t260301120000Z,keyCompromise\t11\tunknown\t/CN=b\n"
         "E\t250101000000Z\t\tFFEE\tunknown\t/CN=c\n")


def test_read_when_written_again_then_it_is_the_same() -> None:
    entries = index.read(LINES)
    assert index.written(entries) == LINES and list(entries) == [0x10, 0x11, 0xFFEE]
    assert entries[0x11].revoked_at == datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("year", [1999, 2026, 2049, 2050, 2051])
def test_stamp_when_read_then_it_is_the_same_time(year: int) -> None:
    when = datetime.datetime(year, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    assert index.moment(index.stamp(when)) == when


@pytest.mark.parametrize("line", [
    "V\t270101000000Z\t\t10\tunknown", "X\t270101000000Z\t\t10\tunknown\t/CN=a", "V\t2701\t\tzz\tunknown\t/CN=a",
    "R\t270101000000Z\t\t10\tunknown\t/CN=a", "R\t270101000000Z\tnever\t10\tunknown\t/CN=a",
    "V\t270101000000Z\t260101000000Z\t10\tunknown\t/CN=a", "\x00\x00"])
def test_read_when_a_line_is_damaged_then_the_error_names_it(line: str) -> None:
    with pytest.raises(ValueError, match="line 4 is damaged"):
        index.read(f"{LINES}{line}\n")
