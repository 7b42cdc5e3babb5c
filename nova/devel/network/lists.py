"""Lists of FakeNeutron's resources: filters, requested members, order and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

from nova import errors, failures
from nova.devel.network.kinds import NetworkError, NeutronKind, Record
from nova.devel.network.store import FakeNetworkStore
from nova.devel.service import FakeCall
from nova.web.query import query_pairs

Said = Mapping[str, Sequence[str]]
View = Mapping[str, object]  # a resource as a caller sees it
OF_THE_PAGE = ("fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir")
_TAGS: Mapping[str, Callable[[set[str], set[str]], bool]] = {
    "tags": lambda mine, wanted: wanted <= mine, "tags-any": lambda mine, wanted: bool(wanted & mine),
    "not-tags": lambda mine, wanted: not wanted <= mine, "not-tags-any": lambda mine, wanted: not wanted & mine}


def query_of(call: FakeCall) -> dict[str, list[str]]:
    """Return the query's values by name; a name may be repeated. Raises 400."""
    found: dict[str, list[str]] = {}
    with failures.replaced(errors.NovaError, lambda error: NetworkError(400, "HTTPBadRequest", error.message)):
        pairs = query_pairs(call.http.environ)
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def page(store: FakeNetworkStore, kind: NeutronKind[Record], call: FakeCall) -> dict[str, object]:
    """Return the body of a list. Raises 400, which names the parameter."""
    said = query_of(call)
    things = [store.shown(kind, one, call.caller) for one in store.of(kind).values()
              if store.may_see(kind, one, call.caller)]
    return page_of(things, kind.plural, said, call)


def page_of(things: Sequence[View], plural: str, said: Said, call: FakeCall) -> dict[str, object]:
    """Return the body of a list of resources that the caller may see."""
    found = [one for one in things if all(_fits(one, name, values) for name, values in said.items()
                                          if name not in OF_THE_PAGE)]
    _sort(found, said)
    limit = _number(said.get("limit", ["0"])[-1])
    begin = _after(found, said.get("marker", [""])[-1])
    shown = found[begin:begin + limit] if limit else found[begin:]
    body: dict[str, object] = {plural: [with_fields(one, said) for one in shown]}
    if limit and begin + limit < len(found):
        rest = [(name, value) for name, values in said.items() for value in values if name != "marker"]
        query = urlencode([*rest, ("marker", str(shown[-1]["id"]))])
        body[f"{plural}_links"] = [{"rel": "next", "href": f"{call.http.path_url}?{query}"}]
    return body


def with_fields(thing: View, said: Said) -> dict[str, object]:
    """Return only the requested members; all of them by default."""
    wanted = said.get("fields")
    return {name: value for name, value in thing.items() if not wanted or name in wanted}


def _fits(thing: View, name: str, values: Sequence[str]) -> bool:
    """Return whether the resource matches any of the values. Raises 400 for an unknown member."""
    if name in _TAGS:
        return _TAGS[name](set(_texts(thing.get("tags"))), {tag for value in values for tag in value.split(",")})
    if name not in thing:
        raise NetworkError(400, "HTTPBadRequest", f"['{name}'] is invalid attribute for filtering")
    if name == "fixed_ips":
        return any(_has_address(thing, *value.partition("=")[::2]) for value in values)
    value = thing[name]
    if isinstance(value, bool):
        return str(value).lower() in [{"1": "true", "0": "false"}.get(one, one.lower()) for one in values]
    return any(("" if one is None else str(one)) in values for one in (value if isinstance(value, list) else [value]))


def _has_address(thing: View, name: str, wanted: str) -> bool:
    """Match ``ip_address=10.0.0.3``, ``subnet_id=...``, or a part of an address."""
    given = thing["fixed_ips"]
    found: list[Mapping[str, str]] = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    if name == "ip_address_substr":
        return any(wanted in one["ip_address"] for one in found)
    return any(one.get(name) == wanted for one in found)


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise NetworkError(400, "HTTPBadRequest", f"Limit must be an integer 0 or greater and not '{text}'.")
    return int(text)


def _sort(things: list[View], said: Said) -> None:
    """Sort by pairs of sort_key and sort_dir; by default, in order of creation."""
    keys, directions = said.get("sort_key", ()), said.get("sort_dir", ())
    if directions and len(keys) != len(directions):
        raise NetworkError(400, "HTTPBadRequest", "The number of sort_keys and sort_dirs must be same")
    for at in reversed(range(len(keys))):
        key, direction = keys[at], directions[at] if directions else "asc"
        if direction not in ("asc", "desc"):
            raise NetworkError(400, "HTTPBadRequest", f"sort_dir {direction} must be asc or desc")
        if any(not isinstance(one.get(key), str | int | None) or key not in one for one in things):
            raise NetworkError(400, "HTTPBadRequest", f"'{key}' is invalid attribute for sort_keys")
        things.sort(key=_sortable(key), reverse=direction == "desc")


def _sortable(key: str) -> Callable[[View], tuple[bool, str | int]]:
    def sortable(one: View) -> tuple[bool, str | int]:
        value = one[key]
        return value is not None, value if isinstance(value, str | int) else ""
    return sortable


def _after(things: Sequence[View], marker: str) -> int:
    """Return the index at which the page begins. Raises 400 for an unknown marker."""
    if not marker:
        return 0
    found = [at for at, one in enumerate(things) if one["id"] == marker]
    if not found:
        raise NetworkError(400, "HTTPBadRequest", f"Invalid marker: {marker} is not in this list")
    return found[0] + 1
