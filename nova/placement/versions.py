"""Versions of the Placement API: 1.0 to 1.39. In code, a version is the number N of 1.N.

Fields, parameters and routes have their versions in tables; other differences are named functions here. Source: the
public REST API version history of Placement.
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
    """Return the headers of every versioned response: the version (as text), and Vary."""
    return [(HEADER.lower(), f"{SERIES.service} {version}"), ("vary", HEADER.lower())]


# Differences in behavior, not only in format.

def classes_are_ensured(version: int) -> bool:
    """True from 1.7: PUT of a class creates it, without a body; before, it renames the class."""
    return version >= 7


def allocations_are_keyed(version: int) -> bool:
    """True from 1.12: allocations are objects by provider UUID; before, lists."""
    return version >= 12


def answers_have_times(version: int) -> bool:
    """True from 1.15: responses have Last-Modified and Cache-Control headers."""
    return version >= 15


def created_provider_is_answered(version: int) -> bool:
    """True from 1.20: POST of a provider returns it."""
    return version >= 20


def errors_have_codes(version: int) -> bool:
    """True from 1.23: errors have a ``code``, such as ``placement.concurrent_update``."""
    return version >= 23


def reserved_may_be_total(version: int) -> bool:
    """True from 1.26: ``reserved`` may equal ``total``; before, it must be less."""
    return version >= 26


def summaries_show_all_classes(version: int) -> bool:
    """True from 1.27: a provider's summary has all classes; before, only requested ones."""
    return version >= 27


def consumers_have_generations(version: int) -> bool:
    """True from 1.28: writes of a consumer's allocations include its generation; before, none is compared."""
    return version >= 28


def candidates_are_nested(version: int) -> bool:
    """True from 1.29: a candidate may take resources from several providers of one tree."""
    return version >= 29


def may_forbid_aggregates(version: int) -> bool:
    """True from 1.32: ``member_of`` may be ``!UUID`` or ``!in:UUID,...``: no provider of these aggregates."""
    return version >= 32


def may_forbid_traits(version: int) -> bool:
    """True from 1.22: ``required`` may have ``!TRAIT``: no provider with that trait."""
    return version >= 22


def groups_may_lack_resources(version: int) -> bool:
    """True from 1.36: a named group may request only traits, aggregates or a tree if a same_subtree names it."""
    return version >= 36


def may_reparent(version: int) -> bool:
    """True from 1.37: a provider's parent may be changed or removed; before, only a root can get a parent."""
    return version >= 37


def usages_are_by_type(version: int) -> bool:
    """True from 1.38: a project's usage is grouped by consumer type."""
    return version >= 38


def may_require_any_of(version: int) -> bool:
    """True from 1.39: ``required`` may be ``in:A,B``, and may be repeated."""
    return version >= 39
