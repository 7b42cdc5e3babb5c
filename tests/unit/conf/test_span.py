"""Options that are lengths of time: days as upstream has them, or what is shorter."""

from __future__ import annotations

import datetime

import pytest
from oslo_config import cfg

from nova import conf
from nova.conf._span import TimeSpan


@pytest.mark.parametrize(("text", "seconds", "again"), [
    ("30", 30 * 86400, "30"), ("0", 0, "0"), ("1h", 3600, "1h"), (" 90m ", 5400, "90m"), ("45s", 45, "45s"),
    ("48h", 172800, "2"), ("3d", 259200, "3"), (7, 604800, "7")])
def test_span_when_it_is_written_then_it_is_a_length_of_time_and_is_written_again(
        text: object, seconds: int, again: str) -> None:
    found = TimeSpan()(text)
    assert found == datetime.timedelta(seconds=seconds)
    assert TimeSpan().format_defaults(found) == [again]


@pytest.mark.parametrize("text", ["", "h", "-1", "1.5", "1w", "1 h", "٣", "999999999", "1h30m"])
def test_span_when_it_is_none_then_the_error_says_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: write a number of days, or a number with s, m, h or d"):
        TimeSpan()(text)


def test_span_when_it_must_be_above_0_then_0_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        TimeSpan(positive=True)("0")


def test_retention_when_nothing_is_said_then_it_is_30_days() -> None:
    found = conf.register(cfg.ConfigOpts())
    found([], default_config_files=[])
    assert found.deleted_retention == datetime.timedelta(days=30)
    found.set_override("deleted_retention", "2h")
    assert found.deleted_retention == datetime.timedelta(hours=2)
