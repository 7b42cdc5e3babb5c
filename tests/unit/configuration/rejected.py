"""Values that the type of an option rejects, each with a canary in it, which no sentence may show."""

from __future__ import annotations

from collections.abc import Callable

from oslo_config import cfg, types

from nova.conf._span import TimeSpan
from nova.conf._urls import DatabaseUrl, Url
from nova.configuration.validation import ours

CANARY = "cAnArYs3cret"
REFERENCE = f"ab${CANARY}"


def _numbers(kind: types.Number) -> list[str]:
    """No number at all, and those just outside; digits that no sentence has by chance."""
    found = [CANARY]
    if kind.min is not None:
        found.append(str(kind.min - 7316207))
    if kind.max is not None:
        found.append(str(kind.max + 7316207))
    return found


def _texts(kind: types.String) -> list[str]:
    if kind.choices or kind.regex:
        return [CANARY]
    return [CANARY * (kind.max_length // len(CANARY) + 1)] if kind.max_length else []


#: What comes first counts.
_REJECTED: tuple[tuple[type, Callable[..., list[str]]], ...] = (
    (DatabaseUrl, lambda kind: [CANARY, f"{CANARY}://h/x", f"mysql+{CANARY}://h/x", f"mysql://u:p@h:{CANARY}/x",
                                f"mysql://u:{CANARY}@{CANARY}@h/x", f"mysql://u:{CANARY}@[h/x", f"sqlite://{CANARY}"]),
    (Url, lambda kind: [CANARY, f"{CANARY}://h", f"{kind.schemes[0]}://u:{CANARY}@h:{CANARY}/x",
                        f"{kind.schemes[0]}://u:{CANARY}/x@h/"]),
    (TimeSpan, lambda kind: [CANARY, f"7{CANARY}"]),
    (types.Number, _numbers), (types.String, _texts), (types.Boolean, lambda kind: [CANARY, f"true{CANARY}"]),
    (types.URI, lambda kind: [CANARY, f"{CANARY}://h"] if kind.schemes else [CANARY]),
    (types.List, lambda kind: values(kind.item_type)),
    (types.HostAddress, lambda kind: [f"{CANARY} {CANARY}", f"{CANARY}_!"]))


def values(kind: object) -> list[str]:
    """Values that the type rejects; none where it takes every text."""
    given = next((make(kind) for known, make in _REJECTED if isinstance(kind, known)), None)
    assert given is not None, f"{kind}: say what it rejects"
    return given


def rows() -> list[tuple[str, cfg.Opt, str]]:
    """(section, option, value) of every option, of every kind of value that it rejects."""
    return [(group, option, value) for group, option in dict.fromkeys(
            (group, option) for group, option in ours()) for value in [*values(option.type), REFERENCE]]
