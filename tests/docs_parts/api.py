"""The page of the compute API's operations, from ``nova.api.routes`` and ``nova.api.absent``."""

from __future__ import annotations

from collections.abc import Iterable

from nova.api import legacy_v2, openapi, versions
from nova.api.absent import GONE, NOT_YET
from nova.api.routes import ROUTES
from nova.api.routing import Route
from tests.docs_parts import operations, rst

INTRO = """\
Operations of the compute API under ``/v2.1`` (and, as version {lowest}, under ``/v2``). Clients request a version with
the header ``OpenStack-API-Version: compute 2.N`` or ``X-OpenStack-Nova-API-Version: 2.N``; versions {lowest} to
{highest} are served. *Since* and *until* are the first and the last version that have an operation. *Policy* is the
first access rule that is checked; ``etc/nova/policy.yaml.sample`` has the defaults of all rules. Under ``/v2``, the API
also supports `XML <../migrating.rst#clients-that-speak-xml>`_.

Below the tables of all operations is an entry for each, with its parameters, body, answer and codes. Programs can use
an OpenAPI document of any version instead: ``nova-manage api schema --version 2.96``.
"""

REFERENCE = """\
Paths of fields: ``.`` separates an object from its key, ``[]`` means a list's items, ``/regex/`` and ``*`` mean keys
that the user chooses. *Sometimes*: the field depends on the caller's rights, or on the data. Any operation may answer
400, 401, 403, 404, 406, 501 and 503, with these meanings:
"""

LATER = """\
These operations are part of the contract and are planned for a later release. Until then they answer 501.
"""

NEVER = """\
These operations were removed from the API permanently. They answer 410 at every version.
"""

OLD_CLIENTS = """\
Under ``/v2``, which has no versions, these removed operations still work: see `certificates <../certificates.rst>`_.
"""


def page() -> str:
    intro = INTRO.format(lowest=versions.text(versions.MIN), highest=versions.text(versions.MAX))
    parts = [rst.MARK, rst.heading("Operations of the compute API"), intro]
    by_resource: dict[str, list[Route]] = {}
    for route in ROUTES:
        by_resource.setdefault(route.path.split("/")[1], []).append(route)
    for resource, routes in by_resource.items():
        parts += [rst.heading(resource, "-"), _table(routes)]
    errors = [(str(code), rst.plain(words)) for code, words in openapi.ERRORS.items()]
    parts += [rst.heading("Reference", "-"), REFERENCE, rst.compact_table(("Code", "When"), errors, (8, 92)),
              operations.entries(ROUTES)]
    later = [f"{id} ({_range(since, until)})" for since, until, ids in NOT_YET for id in ids]
    parts += [rst.heading("Not served yet", "-"), LATER, _list(sorted(later, key=_by_path))]
    parts += [rst.heading("Gone", "-"), NEVER, _list(sorted(GONE, key=_by_path)), OLD_CLIENTS,
              _list(sorted((route.id for route in legacy_v2.ROUTES), key=_by_path))]
    return "\n".join(parts)


def _table(routes: Iterable[Route]) -> str:
    rows = [(route.method, rst.literal(route.path), rst.literal(route.action) if route.action else "-", route.since,
             route.until or "-", _codes(route), rst.literal(route.policy) if route.policy else "-")
            for route in routes]
    return rst.compact_table(("Method", "Path", "Action", "Since", "Until", "Success", "Policy"), rows,
                             (8, 34, 14, 7, 7, 8, 34))


def _codes(route: Route) -> str:
    if isinstance(route.code, int):
        return str(route.code)
    return ", ".join(f"{code} ({_range(since, until)})" for since, until, code in route.code)


def _range(since: str | None, until: str | None) -> str:
    first, last = since or versions.text(versions.MIN), until or versions.text(versions.MAX)
    return f"at {first}" if first == last else f"to {last}" if since is None else \
        f"from {first}" if until is None else f"{first} to {last}"


def _list(lines: Iterable[str]) -> str:
    return "::\n\n" + "\n".join(f"    {line}" for line in lines) + "\n"


def _by_path(id: str) -> tuple[str, str]:
    method, _, path = id.partition(" ")
    return path, method
