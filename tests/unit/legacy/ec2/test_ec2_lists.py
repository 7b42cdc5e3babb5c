"""Filters over what would be answered, and pages of it."""

from __future__ import annotations

import fnmatch
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error
from nova.legacy.ec2.parameters import AskedFilter, Ec2Listing

PATHS = {"name": "name", "state": "state.name", "volume-id": "devices.ebs.volumeId", "is-public": "isPublic"}
ITEM = {"name": "web", "state": {"name": "running"}, "isPublic": True, "devices": [
    {"ebs": {"volumeId": "vol-1"}}, {"ebs": {"volumeId": None}}], "tagSet": [{"key": "a", "value": "1"},
                                                                             {"key": "b", "value": "2"}]}


def holds(name: str, *values: str, has_tags: bool = True) -> bool:
    return lists.tester((AskedFilter(name, values),), PATHS, has_tags)(ITEM)


def test_filter_when_it_looks_at_each_place_then_any_value_there_will_do() -> None:
    assert holds("name", "no", "web") and holds("state", "running") and holds("volume-id", "vol-1")
    assert holds("is-public", "true") and not holds("is-public", "True")
    assert not holds("name", "we") and not holds("name", "WEB") and not holds("name") and not holds("volume-id", "None")


def test_filters_when_there_are_several_then_all_must_hold() -> None:
    both = (AskedFilter("name", ("web",)), AskedFilter("state", ("stopped",)))
    assert not lists.tester(both, PATHS)(ITEM) and lists.tester(both[:1], PATHS)(ITEM)
    assert lists.tester((), PATHS)(ITEM)


def test_tags_when_they_are_filtered_then_key_and_value_belong_together() -> None:
    assert holds("tag:a", "1") and not holds("tag:a", "2") and not holds("tag:c", "*")
    assert holds("tag-key", "b") and holds("tag-value", "1") and not holds("tag-key", "1")
    assert not lists.tester((AskedFilter("tag:a", ("1",)),), PATHS, has_tags=True)({"name": "untagged"})


def test_filter_when_its_value_has_markup_then_it_is_the_text_that_counts() -> None:
    item = {"name": "a&b <c>", "state": {"name": 'x"y'}}
    for name, value in (("name", "a&b <c>"), ("name", "*&b*"), ("state", 'x"y')):
        assert lists.tester((AskedFilter(name, (value,)),), PATHS)(item)


@pytest.mark.parametrize("name", ["colour", "tag:a", "tag-key", ""])
def test_filter_when_there_is_none_of_the_name_then_it_is_named(name: str) -> None:
    with pytest.raises(Ec2Error, match=f"The filter '{name}' is invalid") as raised:
        holds(name, "x", has_tags=False)
    assert raised.value.aws_code == "InvalidParameterValue"


@pytest.mark.parametrize(("pattern", "text", "fits"), [
    ("w*b", "web", True), ("w?b", "web", True), ("*", "", True), ("?", "", False), ("w\\*b", "w*b", True),
    ("w\\*b", "web", False), ("a\\", "a\\", True), ("\\\\*", "\\x", True), ("a.c", "abc", False), ("[ab]", "a", False),
    ("a*", "a\nb", True), ("ü?", "üß", True), ("(", "(", True)])
def test_pattern_when_it_has_wildcards_then_they_are_the_only_ones(pattern: str, text: str, fits: bool) -> None:
    item = {"name": text}
    assert lists.tester((AskedFilter("name", (pattern,)),), PATHS)(item) is fits


@settings(deadline=None)
@given(pattern=st.text("ab*?", max_size=8), text=st.text("ab", max_size=8))
def test_pattern_when_it_is_of_stars_and_marks_then_it_is_as_a_shells(pattern: str, text: str) -> None:
    assert lists.tester((AskedFilter("name", (pattern,)),), PATHS)({"name": text}) is fnmatch.fnmatchcase(text, pattern)


@settings(deadline=None)
@given(pattern=st.text(max_size=20), text=st.text(max_size=20))
def test_pattern_when_it_is_any_text_then_it_is_tested(pattern: str, text: str) -> None:
    try:
        lists.tester((AskedFilter("name", (pattern,)),), PATHS)({"name": text})
    except Ec2Error as error:
        assert error.aws_code == "InvalidParameterValue"


@pytest.mark.parametrize("letter", ["a", "*", "?", "ü"])
def test_pattern_when_it_is_as_long_as_may_be_then_it_holds_and_a_longer_one_is_refused(letter: str) -> None:
    longest = letter * lists.LONGEST_VALUE
    assert lists.tester((AskedFilter("name", (longest,)),), PATHS)({"name": longest})
    with pytest.raises(Ec2Error, match="InvalidParameterValue|exceeds"):
        lists.tester((AskedFilter("name", (longest + letter,)),), PATHS)


def test_pattern_when_it_is_made_to_take_long_then_it_does_not() -> None:
    began = time.monotonic()
    assert not lists.tester((AskedFilter("name", ("*a" * 30 + "b",)),), PATHS)({"name": "a" * 20000})
    assert time.monotonic() - began < 2


# -- pages

ITEMS = [{"id": f"i-{number}"} for number in range(7)]


def paged(**asked: object) -> lists.Listed:
    return lists.chosen(ITEMS, Ec2Listing(**asked), {}, "id")  # type: ignore[arg-type]


@settings(deadline=None)
@given(size=st.integers(1, 9))
def test_pages_when_they_are_followed_then_each_item_comes_once_and_none_is_empty(size: int) -> None:
    found, token = [], None
    while True:
        page = paged(max_results=size, next_token=token)
        assert page.items
        found += page.items
        token = page.next_token
        if token is None:
            break
    assert found == ITEMS


def test_page_when_no_size_is_said_then_it_has_all() -> None:
    assert paged() == lists.Listed(ITEMS, None)
    assert paged(max_results=lists.MOST_RESULTS * 10).items == ITEMS


@pytest.mark.parametrize("size", [0, -1])
def test_page_when_its_size_is_none_then_it_is_refused(size: int) -> None:
    with pytest.raises(Ec2Error, match="MaxResults"):
        paged(max_results=size)


@settings(deadline=None)
@given(token=st.text(min_size=1, max_size=20) | st.sampled_from(["aS05", "aS0x", "////", "_w=="]))
def test_token_when_it_is_none_of_ours_then_it_is_refused_or_goes_on(token: str) -> None:
    try:
        assert paged(next_token=token).items == ITEMS[2:]  # aS0x is of i-1
    except Ec2Error as error:
        assert error.aws_code == "InvalidNextToken"


def test_ids_when_a_size_is_said_too_then_both_are_refused() -> None:
    lists.check_not_both(("a",), Ec2Listing(), "Id")
    lists.check_not_both((), Ec2Listing(max_results=5), "Id")
    with pytest.raises(Ec2Error) as raised:
        lists.check_not_both(("a",), Ec2Listing(max_results=5), "Id")
    assert raised.value.aws_code == "InvalidParameterCombination"
