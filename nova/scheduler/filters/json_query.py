"""JsonFilter: the host meets the condition of the hint ``query``.

A condition is JSON: ``["and", [">=", "$free_ram_mb", 1024], ["=", "$hypervisor_type", "QEMU"]]``. A word with ``$`` is
a fact of the host, and dots select a member of a fact (``$cpu_info.vendor``). An invalid query refuses every host, and
the reason names the error.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Iterable, Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.filters.compute_capabilities import fact
from nova.scheduler.filters.host_limits import busy, servers
from nova.scheduler.views import HostView

HINT = "query"
NO_CONDITION = "a condition is a list that starts with an operator"
LONGEST, MOST_TERMS, DEEPEST = 4096, 64, 16  # the query is evaluated for every host, while other requests wait

Term = Callable[[HostView], object]
Compare = Callable[[float | str, float | str], bool]

#: Facts that also count pending decisions.
_OWN: dict[str, Term] = {"num_io_ops": busy, "num_instances": servers, "running_vms": servers}
_COMPARE: dict[str, Compare] = {"=": operator.eq, "<": operator.lt, ">": operator.gt, "<=": operator.le,
                                ">=": operator.ge}


class BadQuery(Exception):
    """Raised for an invalid query, with the error as text for the user."""


class JsonFilter(Filter):
    reads = ("hints",)
    public = True

    def wanted(self, request: PlacementRequest) -> bool:
        return bool(request.hints.get(HINT))

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        given = request.hints[HINT]
        try:
            if isinstance(given, dict):  # not converted to text for each host: it may be large
                raise BadQuery(NO_CONDITION)
            term = compiled(given if isinstance(given, str) else json.dumps(given))
        except (BadQuery, TypeError, ValueError, RecursionError) as error:
            return f"the hint {HINT} is invalid: {error if isinstance(error, BadQuery) else 'not JSON'}"
        return None if term(host) else f"does not meet the hint {HINT}"


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Term | BadQuery:
    if len(text) > LONGEST:
        return BadQuery(f"longer than {LONGEST} characters")
    try:
        return _Reader().condition(json.loads(text), 0)
    except BadQuery as problem:
        return problem
    except (ValueError, RecursionError):
        return BadQuery("it is not JSON")


def compiled(text: str) -> Term:
    """Return the query as a function, cached by its text because it is called for each host. Raises BadQuery."""
    found = _parsed(text)
    if isinstance(found, BadQuery):
        raise found
    return found


class _Reader:
    """Parser of one query, which counts the query's terms."""

    def __init__(self) -> None:
        self._terms = 0

    def condition(self, given: object, depth: int) -> Term:
        """Parse a list that starts with an operator."""
        if not isinstance(given, list) or not given or not isinstance(given[0], str):
            raise BadQuery(NO_CONDITION)
        if depth > DEEPEST:
            raise BadQuery("nested too deeply")
        name, terms = given[0], [self._term(one, depth) for one in given[1:]]
        make = _OPERATORS.get(name)
        if make is None:
            raise BadQuery(f"unknown operator {name[:32]!r}; valid operators: {' '.join(_OPERATORS)}")
        if len(terms) < (1 if name in _JOIN else 2):
            raise BadQuery(f"{name} has too few operands")
        return make(name, terms)

    def _term(self, given: object, depth: int) -> Term:
        self._terms += 1
        if self._terms > MOST_TERMS:
            raise BadQuery(f"more than {MOST_TERMS} terms")
        if isinstance(given, list):
            return self.condition(given, depth + 1)
        if isinstance(given, dict):
            raise BadQuery("an object is neither a condition nor a value")
        if isinstance(given, str) and given.startswith("$"):
            return _variable(given[1:])
        return lambda host: given


def _variable(name: str) -> Term:
    path = name.split(".")
    return _OWN.get(name) or (lambda host: fact(host, path))


def _compared(name: str, terms: Sequence[Term]) -> Term:
    """Return a term that compares the first operand with each of the others."""
    compare = _COMPARE[name]

    def ask(host: HostView) -> bool:
        first = terms[0](host)
        return all(_related(compare, first, other(host)) for other in terms[1:])
    return ask


def _related(compare: Compare, left: object, right: object) -> bool:
    """Compare numbers, also in text form, as numbers, and others as text. A comparison with an unknown fact is
    False."""
    if left is None or right is None:
        return False
    try:
        return compare(float(left), float(right))  # type: ignore[arg-type]  # other types raise TypeError
    except (TypeError, ValueError, OverflowError):
        return compare(str(left), str(right))


def _among(name: str, terms: Sequence[Term]) -> Term:
    """Return a term that is True if the first operand equals one of the others."""
    def ask(host: HostView) -> bool:
        first = terms[0](host)
        return any(_related(operator.eq, first, other(host)) for other in terms[1:])
    return ask


_JOIN: dict[str, Callable[[Iterable[object]], bool]] = {"and": all, "or": any, "not": lambda found: not any(found)}


def _joined(name: str, terms: Sequence[Term]) -> Term:
    join = _JOIN[name]
    return lambda host: join(term(host) for term in terms)


_OPERATORS: dict[str, Callable[[str, Sequence[Term]], Term]] = {
    **dict.fromkeys(_COMPARE, _compared), "in": _among, **dict.fromkeys(_JOIN, _joined)}
