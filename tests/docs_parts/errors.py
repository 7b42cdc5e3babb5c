"""The page of errors, from the catalogues in ``nova.errors``."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from nova import errors
from nova.console import target
from nova.db.sql import engine
from nova.errors import kinds
from tests.docs_parts import rst

INTRO = """\
Each error has a code with the same meaning in all daemons and releases. Logs show the code, and daemons use it to
identify errors. An API's answer has the HTTP status and the message. Words in braces are replaced. Errors of a *kind*
are handled in the same way. If an error has no cure in its row, use the cure of its kind.
"""

#: Modules outside of ``nova.errors`` that define errors, next to the code that raises them.
OF_ROOMS = (engine, target)


def page() -> str:
    of_kinds = ((rst.literal(kind), str(cls.status), rst.plain(cls.cure)) for kind, cls in errors.KINDS.items())
    parts = [rst.MARK, rst.heading("Errors"), INTRO, rst.heading("Kinds", "-"),
             rst.table(("Kind", "Status", "Cure"), of_kinds, (20, 10, 70))]
    for noun, rows in sorted(by_noun().items()):
        parts += [rst.heading(noun, "-"),
                  rst.table(("Code", "Kind", "Message", "Cure"), map(_row, rows), (20, 12, 40, 28))]
    return "\n".join(parts)


def by_noun() -> dict[str, list[type[errors.NovaError]]]:
    """Return all errors that can be raised, by their code's noun and in the order of codes."""
    found: dict[str, list[type[errors.NovaError]]] = {}
    for cls in sorted(_all(), key=lambda one: one.code):
        found.setdefault(cls.code.partition(".")[0], []).append(cls)
    return found


def _all() -> Iterator[type[errors.NovaError]]:
    nouns = (one for one in vars(errors).values() if isinstance(one, ModuleType) and one is not kinds)
    for room in (*nouns, *OF_ROOMS):
        yield from (cls for cls in vars(room).values() if isinstance(cls, type) and issubclass(cls, errors.NovaError))


def _row(cls: type[errors.NovaError]) -> tuple[str, ...]:
    kind = f"{rst.literal(cls.kind)} ({cls.status})"
    return rst.literal(cls.code), kind, rst.plain(cls.message), rst.plain(cls.cure if "cure" in vars(cls) else "")
