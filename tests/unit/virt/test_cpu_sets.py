"""Sets of processors as operators write them."""

from __future__ import annotations

import pytest

from nova import errors
from nova.virt import cpu_sets


@pytest.mark.parametrize(("text", "cpus"), [
    ("3", {3}), ("0-3", {0, 1, 2, 3}), ("4-12,^8,15", {4, 5, 6, 7, 9, 10, 11, 12, 15}), (" 1 , 2-2 ,", {1, 2}),
    ("0-7,^2-5", {0, 1, 6, 7}), ("^1,0-1", {0})])
def test_parse_when_it_names_processors_then_these(text, cpus):
    assert cpu_sets.parse("[compute]cpu_shared_set", text) == cpus


@pytest.mark.parametrize(("text", "why"), [
    ("a", "part 1"), ("7,1-", "part 2"), ("-1", "part 1"), ("1..3", "part 1"), ("5-2", "reversed"),
    ("2,^2", "no CPU"), (",", "no CPU"), ("9999999", "part 1"), ("^^1", "part 1")])
def test_parse_when_it_cannot_be_read_then_option_and_reason_are_named(text, why):
    with pytest.raises(errors.config.CpuSet) as caught:
        cpu_sets.parse("[compute]cpu_dedicated_set", text)
    assert "[compute]cpu_dedicated_set" in str(caught.value) and why in str(caught.value)


@pytest.mark.parametrize(("cpus", "text"), [((), ""), ((3,), "3"), ((8, 0, 1, 2), "0-2,8"), ((1, 3), "1,3")])
def test_spec_when_processors_are_next_to_each_other_then_they_are_a_range(cpus, text):
    assert cpu_sets.spec(cpus) == text
    assert not cpus or cpu_sets.parse("x", text) == set(cpus)
