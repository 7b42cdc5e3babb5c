"""The query of allocation candidates. Parameters of a named group have its suffix in their names.

Of repeated parameters that are accepted without a meaning of repetition, the last one applies: ``limit``,
``group_policy``, and ``required`` before 1.39.
"""

from __future__ import annotations

from nova.web.schema import Param, Query, param

NUMBER, WORD = "[1-9][0-9]*", "[a-zA-Z0-9_-]{1,64}"


def _grouped(name: str, *spans: tuple[str | None, str | None, bool], suffixed: str = "1.25") -> tuple[Param, ...]:
    """Return the plain parameter and that of named groups; ``spans``: (since, until, may be repeated)."""
    found = []
    for since, until, repeat in spans:
        found.append(param(name, repeat=repeat, since=since, until=until))
        minor = int(since.partition(".")[2]) if since else 0
        last = int(until.partition(".")[2]) if until else 999
        for form, first, final in ((NUMBER, int(suffixed.partition(".")[2]), 32), (WORD, 33, 999)):
            low, high = max(minor, first), min(last, final)
            if low <= high:
                found.append(param(f"/^{name}{form}$/", repeat=repeat, since=f"1.{low}", until=f"1.{high}"))
    return tuple(found)


LIST_QUERY = Query(
    param("limit", "integer_like", since="1.16", min_length=1, min=1, huge=True),
    param("group_policy", since="1.25", allowed=("none", "isolate")),
    param("root_required", repeat=False, since="1.35"),
    param("same_subtree", since="1.36"),
    *_grouped("resources", ("1.10", None, False)),
    *_grouped("required", ("1.17", None, True)),
    *_grouped("member_of", ("1.21", "1.23", False), ("1.24", None, True)),
    *_grouped("in_tree", ("1.31", None, False), suffixed="1.31"),
    refuse_unknown="1.0")
