"""Versions of Placement's API: 1.0 to 1.39. Inside, a version is the number N of 1.N.

Fields, parameters and routes carry their versions in tables; what behaves otherwise is a named function here.
Source: the public REST API version history of Placement.
"""

from __future__ import annotations

import re

from nova import errors
from nova.web.microversions import HEADER, Microversions

MIN, MAX = 0, 39
SERIES = Microversions("placement", 1, MIN, MAX, re.compile(r"(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})"),
                       errors.placement.VersionMalformed, errors.placement.VersionOutOfRange)
text = SERIES.text


def answer_headers(version: str) -> list[tuple[str, str]]:
    return [(HEADER.lower(), f"{SERIES.service} {version}"), ("vary", HEADER.lower())]


# What behaves differently, not only looks different.

def classes_are_ensured(version: int) -> bool:
    """From 1.7 PUT of a class makes it, and has no body; before, it renames."""
    return version >= 7


def allocations_are_keyed(version: int) -> bool:
    """From 1.12 allocations are objects by the provider's uuid; before, lists."""
    return version >= 12


def answers_have_times(version: int) -> bool:
    """From 1.15 answers carry last-modified and cache-control."""
    return version >= 15


def created_provider_is_answered(version: int) -> bool:
    """From 1.20 POST of a provider answers with it."""
    return version >= 20


def errors_have_codes(version: int) -> bool:
    return version >= 23


def reserved_may_be_total(version: int) -> bool:
    return version >= 26


def summaries_show_all_classes(version: int) -> bool:
    """From 1.27 a provider's summary has all classes; before, those that were asked for."""
    return version >= 27


def consumers_have_generations(version: int) -> bool:
    return version >= 28


def candidates_are_nested(version: int) -> bool:
    return version >= 29


def may_forbid_aggregates(version: int) -> bool:
    return version >= 32


def may_forbid_traits(version: int) -> bool:
    return version >= 22


def groups_may_lack_resources(version: int) -> bool:
    """From 1.36 a named group may ask for traits, aggregates or a tree alone, when a same_subtree names it."""
    return version >= 36


def may_reparent(version: int) -> bool:
    return version >= 37


def usages_are_by_type(version: int) -> bool:
    return version >= 38


def may_require_any_of(version: int) -> bool:
    """From 1.39 ``required`` may be ``in:A,B``, and be there several times."""
    return version >= 39
