"""Release number. doc/releases.rst explains its meaning for upgrades, and the changes of each release."""

from __future__ import annotations

#: The first number is that of the upstream release whose APIs, options, commands and files this release supports;
#: deployment tools compare it. The second changes with each release. The third changes with a release that changes
#: neither tables nor messages between services.
RELEASE = "34.0.0"
#: The oldest release whose services work together with those of this one.
OLDEST_BESIDE = "0.2.0"


def is_too_old(release: str) -> bool:
    """Return whether services of that release cannot work together with this one's. An empty, unreported release is
    accepted."""
    return bool(release) and _numbers(release) < _numbers(OLDEST_BESIDE)


def is_older(release: str) -> bool:
    """Return whether a release is older than this one. Empty: not reported, as by the oldest services."""
    return _numbers(release) < _numbers(RELEASE)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(word) if word.isdigit() else 0 for word in release.split(".")[:3])
