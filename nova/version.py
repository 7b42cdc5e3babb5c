"""The release. Its number's meaning for an upgrade, and what each release changed, are in doc/releases.rst."""

from __future__ import annotations

#: The first number is that of the upstream release whose APIs, options, commands and files this one serves: deployment
#: tools compare it. The second changes with each release, the third with one that changes neither tables nor what
#: daemons say to each other.
RELEASE = "34.0.0"
#: The oldest release whose daemons work beside those of this one.
OLDEST_BESIDE = "0.2.0"


def is_too_old(release: str) -> bool:
    """Whether daemons of that release cannot work beside those of this one. Empty: it does not say, which is fine."""
    return bool(release) and _numbers(release) < _numbers(OLDEST_BESIDE)


def is_older(release: str) -> bool:
    """Whether it is a release before this one. Empty: a daemon that did not say, as the oldest ones."""
    return _numbers(release) < _numbers(RELEASE)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(word) if word.isdigit() else 0 for word in release.split(".")[:3])
