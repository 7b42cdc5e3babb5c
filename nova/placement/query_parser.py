"""Parsing of provider queries: text parameters become the groups of a request. Pure functions.

Source: the public reference of Placement's GET /resource_providers and GET /allocation_candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nova import errors
from nova.model.placement.providers import MOST_PARTS, RequestGroup, ResourceRequest, Traits
from nova.model.placement.traits import is_resource_class, is_trait
from nova.placement import versions
from nova.placement.request import canonical
from nova.placement.schemas import MAX_INT
from nova.web.formats import is_uuid
from nova.web.schema import Values

PARTS = ("resources", "required", "member_of", "in_tree")
_SUFFIXED = re.compile(f"({'|'.join(PARTS)})(.*)", re.DOTALL)


def group(query: Values, version: int, suffix: str = "") -> RequestGroup:
    """Return the group with this suffix. Raises placement.QueryBadValue."""
    texts = query.all(f"required{suffix}")
    required, forbidden = traits(f"required{suffix}", texts if versions.may_require_any_of(version) else texts[-1:],
                                 version)
    member_of, not_member_of = aggregates(f"member_of{suffix}", query.all(f"member_of{suffix}"), version)
    resources, tree = query.one(f"resources{suffix}"), query.one(f"in_tree{suffix}")
    return RequestGroup(
        suffix=suffix, required=required, forbidden=forbidden, member_of=member_of, not_member_of=not_member_of,
        resources={} if resources is None else amounts(f"resources{suffix}", resources),
        in_tree=None if tree is None else _uuid(f"in_tree{suffix}", tree))


def amounts(name: str, text: str) -> dict[str, int]:
    """Parse amounts such as ``VCPU:2,MEMORY_MB:512``. Raises placement.QueryBadValue."""
    found: dict[str, int] = {}
    for part in text.split(","):
        resource_class, colon, written = part.partition(":")
        amount = written.strip()
        if not colon or not amount.isascii() or not amount.isdecimal():
            raise errors.placement.QueryBadValue(name=name, reason=f"'{part[:80]}' is not of the form CLASS:AMOUNT.")
        if not is_resource_class(resource_class):
            raise errors.placement.QueryBadValue(name=name,
                                                 reason=f"'{resource_class[:80]}' is not a valid resource class.")
        if resource_class in found:
            raise errors.placement.QueryBadValue(name=name, reason=f"{resource_class} is given more than once.")
        if len(amount) > 10 or not 0 < int(amount) <= MAX_INT:
            raise errors.placement.QueryBadValue(name=name, reason=f"the amount of {resource_class} must be between "
                                                 f"1 and {MAX_INT}.")
        found[resource_class] = int(amount)
    return found


def traits(name: str, texts: Iterable[str], version: int) -> tuple[tuple[Traits, ...], Traits]:
    """Parse ``A,!B`` and ``in:A,B``; return (tuples with at least one required trait each, forbidden traits). Raises
    placement.QueryBadValue."""
    required: list[Traits] = []
    forbidden: list[str] = []
    for text in texts:
        if text.startswith("in:") and versions.may_require_any_of(version):
            required.append(tuple(_trait(name, part) for part in text.removeprefix("in:").split(",")))
            continue
        for part in text.split(","):
            if part.startswith("!") and versions.may_forbid_traits(version):
                forbidden.append(_trait(name, part.removeprefix("!")))
            else:
                required.append((_trait(name, part),))
    for trait in forbidden:
        if (trait,) in required:
            raise errors.placement.QueryBadValue(name=name, reason=f"{trait} is both required and forbidden.")
    return tuple(required), tuple(forbidden)


def _trait(name: str, text: str) -> str:
    if not is_trait(text):
        raise errors.placement.QueryBadValue(name=name, reason=f"'{text[:80]}' is not a valid trait.")
    return text


def aggregates(name: str, texts: Iterable[str], version: int) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Parse ``UUID``, ``in:..``, ``!..`` and ``!in:..``; return (tuples with membership required in one each, forbidden
    ones)."""
    member_of: list[tuple[str, ...]] = []
    not_member_of: list[str] = []
    for text in texts:
        forbids = text.startswith("!") and versions.may_forbid_aggregates(version)
        listed = text.removeprefix("!") if forbids else text
        parts = listed.removeprefix("in:").split(",") if listed.startswith("in:") else [listed]
        uuids = tuple(_aggregate(name, part) for part in parts)
        if forbids:
            not_member_of += uuids
        else:
            member_of.append(uuids)
    return tuple(member_of), tuple(not_member_of)


def _aggregate(name: str, text: str) -> str:
    """Check a UUID but keep its spelling, in which aggregates are stored."""
    _uuid(name, text)
    return text


def _uuid(name: str, text: str) -> str:
    if not is_uuid(text):
        raise errors.placement.QueryBadValue(name=name, reason=f"'{text[:80]}' is not a valid UUID.")
    return canonical(text)


# -- requests of several groups

def request(query: Values, version: int) -> ResourceRequest:
    """Return all groups of a query for candidates. Raises placement.QueryBadValue, placement.QueryMissingValue."""
    groups = [group(query, version, suffix) for suffix in _suffixes(query)]
    subtrees = tuple(_subtree(text, groups) for text in query.all("same_subtree"))
    _check_resources(groups, subtrees, version)
    named = [one for one in groups if one.suffix and one.resources]
    if len(named) > 1 and "group_policy" not in query:
        raise errors.placement.QueryMissingValue(reason="The group_policy parameter is required when there is more "
                                                 "than one named group.")
    root_required, root_forbidden = traits("root_required", query.all("root_required"), version)
    if any(len(any_of) > 1 for any_of in root_required):
        raise errors.placement.QueryBadValue(name="root_required", reason="'in:' is not supported here.")
    made = ResourceRequest(groups=tuple(groups), group_policy=query.one("group_policy", "none"), same_subtree=subtrees,
                           root_required=tuple(one for one, in root_required), root_forbidden=root_forbidden)
    if made.parts > MOST_PARTS:
        raise errors.placement.QueryBadValue(name="resources",
                                             reason=f"a request may have {MOST_PARTS} parts at most, not {made.parts}.")
    return made


def _suffixes(query: Values) -> list[str]:
    """Return the suffixes in the order of their first parameters, but the unnamed group first."""
    found = {match[2]: None for name in query if (match := _SUFFIXED.fullmatch(name)) is not None}
    return sorted(found, key=bool)


def _subtree(text: str, groups: Sequence[RequestGroup]) -> tuple[str, ...]:
    named = {one.suffix for one in groups if one.suffix}
    parts = tuple(dict.fromkeys(text.split(",")))
    for part in parts:
        if part not in named:
            raise errors.placement.QueryBadValue(name="same_subtree",
                                                 reason=f"'{part[:80]}' is not the suffix of a group in this request.")
    return parts


def _check_resources(groups: Sequence[RequestGroup], subtrees: Sequence[tuple[str, ...]], version: int) -> None:
    """Check that groups have resources where they must. Raises placement.QueryBadValue, placement.QueryMissingValue."""
    if not any(one.resources for one in groups):
        raise errors.placement.QueryMissingValue(reason="At least one group of a request must have resources: add "
                                                 "a resources parameter.")
    in_subtrees = {suffix for suffixes in subtrees for suffix in suffixes}
    for one in groups:
        if one.resources or (one.suffix in in_subtrees and versions.groups_may_lack_resources(version)):
            continue
        hint = " or be named by a same_subtree" if versions.groups_may_lack_resources(version) and one.suffix else ""
        raise errors.placement.QueryBadValue(name=f"resources{one.suffix}",
                                             reason=f"the group '{one.suffix}' must have "
                                             f"resources{hint}.")
