"""Filtering and pagination of the Describe actions' responses.

Each list has a table of filters: filter name -> path of its values in an item of the response (``instanceState.name``;
a path through a list covers each of its items). ``tag:KEY``, ``tag-key`` and ``tag-value`` match ``tagSet``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import re2

from nova import failures
from nova.legacy.ec2.faults import Ec2Error
from nova.legacy.ec2.parameters import AskedFilter, Ec2Listing
from nova.legacy.ec2.xml import Tree, shown

FilterPaths = Mapping[str, str]
Test = Callable[[Tree], bool]

MOST_RESULTS = 1000
LONGEST_VALUE = 1024  # characters of a filter's value
MOST_VALUES = 200  # total of all filters in a request, AWS's limit: each value is matched against each item
MOST_NAMED = 200  # resources in a request that each need a separate call
_TAGS = {"tag-key": "tagSet.key", "tag-value": "tagSet.value"}
_MANY_LINES = re2.Options()
_MANY_LINES.dot_nl, _MANY_LINES.log_errors = True, False


class Listed(NamedTuple):
    """A page of items, and the token of the next page; None: this is the last page."""

    items: list[Tree]
    next_token: str | None


def chosen(items: Sequence[Tree], args: Ec2Listing, paths: FilterPaths, key: str, has_tags: bool = False) -> Listed:
    """Return the page that ``args`` request, after filtering. ``key``: the member that identifies an item.

    The items must have a stable order. Raises InvalidParameterValue for an unknown filter, InvalidNextToken.
    """
    test = tester(args.filter, paths, has_tags)
    return page([item for item in items if test(item)], args, key)


def page(items: list[Tree], args: Ec2Listing, key: str) -> Listed:
    """Return the slice after the item that the token identifies. Raises InvalidNextToken."""
    first, most = 0, page_size(args)
    if args.next_token:
        after = token_text(args.next_token)
        first = next((number + 1 for number, item in enumerate(items) if item[key] == after), -1)
        if first < 0:
            raise bad_token()
    if most is None or first + most >= len(items):
        return Listed(items[first:], None)
    return Listed(items[first:first + most], token(str(items[first + most - 1][key])))


def page_size(args: Ec2Listing) -> int | None:
    """Return the number of items requested; None: all. Raises InvalidParameterValue."""
    if args.max_results is None:
        return None
    if args.max_results < 1:
        raise Ec2Error("InvalidParameterValue", f"Value ({args.max_results}) for parameter MaxResults is invalid. It "
                                                f"must be 1 to {MOST_RESULTS}.")
    return min(args.max_results, MOST_RESULTS)


def check_not_both(ids: Sequence[str], args: Ec2Listing, name: str) -> None:
    """Refuse ids together with MaxResults: a request that names ids gets all of them.

    Raises InvalidParameterCombination.
    """
    if ids and args.max_results is not None:
        raise Ec2Error("InvalidParameterCombination", f"The parameter {name} cannot be used with the parameter "
                                                      "MaxResults")


def check_few(ids: Sequence[object], name: str) -> None:
    """Limit the number of ids that each need a call to another service. Raises InvalidParameterValue."""
    if len(ids) > MOST_NAMED:
        raise Ec2Error("InvalidParameterValue", f"The parameter {name} has more than {MOST_NAMED} values.")


def token(text: str) -> str:
    """Return the NextToken that represents the last item of a page."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def token_text(given: str) -> str:
    """Return the text encoded in a NextToken. Raises InvalidNextToken."""
    with failures.replaced((binascii.Error, ValueError), lambda _: bad_token()):
        return base64.b64decode(given.encode(), altchars=b"-_", validate=True).decode()


def bad_token() -> Ec2Error:
    """Return the error for a NextToken that is invalid or refers to a deleted item."""
    return Ec2Error("InvalidNextToken", "The token is invalid or has expired. Repeat the request without NextToken.")


# -- filters


def tester(filters: Sequence[AskedFilter], paths: FilterPaths, has_tags: bool = False) -> Test:
    """Return a predicate for items that match all filters.

    Raises InvalidParameterValue for an unknown filter, FilterLimitExceeded for too many values.
    """
    if sum(max(1, len(one.value)) for one in filters) > MOST_VALUES:
        raise Ec2Error("FilterLimitExceeded", f"The request's filters have more than {MOST_VALUES} values in total.")
    tests = [_test(one, paths, has_tags) for one in filters]
    return lambda item: all(test(item) for test in tests)


def _test(wanted: AskedFilter, paths: FilterPaths, has_tags: bool) -> Test:
    patterns = [_pattern(value) for value in wanted.value]
    if has_tags and wanted.name.startswith("tag:"):
        key = wanted.name.removeprefix("tag:")
        return lambda item: any(tag["key"] == key and _any(patterns, tag["value"]) for tag in _tags(item))
    path = paths.get(wanted.name) or (_TAGS.get(wanted.name) if has_tags else None)
    if path is None:
        raise Ec2Error("InvalidParameterValue", f"The filter '{wanted.name[:100]}' is invalid")
    steps = path.split(".")
    return lambda item: any(_any(patterns, shown(value)) for value in _values(item, steps))


def _tags(item: Tree) -> Sequence[Mapping[str, str]]:
    found = item.get("tagSet") or ()
    assert isinstance(found, (tuple, list))
    return found


def _values(value: object, steps: Sequence[str]) -> Iterator[object]:
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _values(one, steps)
    elif not steps:
        if value is not None:
            yield value
    elif isinstance(value, Mapping):
        yield from _values(value.get(steps[0]), steps[1:])


class Pattern(Protocol):
    """RE2's compiled pattern."""

    def fullmatch(self, text: str, /) -> object | None:
        """Return the match of the whole text; None if it does not match."""


def _any(patterns: Sequence[Pattern], text: str) -> bool:
    return any(pattern.fullmatch(text) is not None for pattern in patterns)


def _pattern(value: str) -> Pattern:
    """Compile a filter value: ``*`` matches any text, ``?`` any character; a backslash escapes a character.

    RE2 matches in linear time, also for hostile patterns. Raises InvalidParameterValue if the value is too long.
    """
    if len(value) > LONGEST_VALUE:
        raise Ec2Error("InvalidParameterValue", f"A filter value exceeds {LONGEST_VALUE} characters.")
    parts, letters = [], iter(value)
    for letter in letters:
        if letter == "\\":
            parts.append(re2.escape(next(letters, "\\")))
        else:
            parts.append({"*": ".*", "?": "."}.get(letter) or re2.escape(letter))
    compiled: Pattern = re2.compile("".join(parts), _MANY_LINES)
    return compiled
