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
    """Two headers that every versioned answer carries: the version (as text), and that answers differ by it."""
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
    """From 1.23 errors have a ``code``, such as ``placement.concurrent_update``."""
    return version >= 23


def reserved_may_be_total(version: int) -> bool:
    """From 1.26 an inventory may be reserved whole; before, ``reserved`` must be less than ``total``."""
    return version >= 26


def summaries_show_all_classes(version: int) -> bool:
    """From 1.27 a provider's summary has all classes; before, those that were asked for."""
    return version >= 27


def consumers_have_generations(version: int) -> bool:
    """From 1.28 who writes a consumer's allocations says its generation; before, nothing is compared."""
    return version >= 28


def candidates_are_nested(version: int) -> bool:
    """From 1.29 a candidate may take resources from several providers of one tree."""
    return version >= 29


def may_forbid_aggregates(version: int) -> bool:
    """From 1.32 ``member_of`` may be ``!UUID`` or ``!in:UUID,...``: no provider of these aggregates."""
    return version >= 32


def may_forbid_traits(version: int) -> bool:
    """From 1.22 ``required`` may have ``!TRAIT``: no provider with that trait."""
    return version >= 22


def groups_may_lack_resources(version: int) -> bool:
    """From 1.36 a named group may ask for traits, aggregates or a tree alone, when a same_subtree names it."""
    return version >= 36


def may_reparent(version: int) -> bool:
    """From 1.37 a provider may be put below another parent, or below none; before, only a root below one."""
    return version >= 37


def usages_are_by_type(version: int) -> bool:
    """From 1.38 a project's usage is grouped by the consumers' type."""
    return version >= 38


def may_require_any_of(version: int) -> bool:
    """From 1.39 ``required`` may be ``in:A,B``, and be there several times."""
    return version >= 39
