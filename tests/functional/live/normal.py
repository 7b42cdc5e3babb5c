"""When is an answer like a published sample? Values are examples; the form is not.

1. Objects have the same keys. Where the keys are data (``FREE``: metadata, labels of networks, names of hosts), the
   values are alike instead, and emptiness is data too.
2. Lists: an empty list in the sample says nothing of its items. Otherwise ours has items; each is like one of the
   sample's, and each of the sample's is like one of ours.
3. JSON types are the same; integers and other numbers are one type. A null in the sample says nothing of the value
   that could stand there (the schemas judge it); a value in the sample wants a value, but for what is refused (NEVER).
4. Dates are in the sample's form (``Z``, microseconds, seconds, with a blank), ids that are uuids are uuids, links have
   the same version and path once host and ids are taken out, and at least the sample's query parameters (the scenario
   may filter), host ids have 56 digits.
5. Texts are of any wording.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.contract import rows

#: Objects whose keys are data, by the end of their path.
FREE = ("metadata", "extra_specs", "addresses", "meta", "hosts", "log", "cpu_pinning", "properties")
#: What no server of ours has, as it is refused when it is asked for: nobody verifies signatures of images.
NEVER = (".trusted_image_certificates",)
#: The hypervisor's own words, and the user's.
OPAQUE = (".cpu_info", ".scheduler_hints")
#: Keys whose uuids are examples of any text (hosts, users, projects).
NAMES = ("host", "user_id", "project_id", "tenant_id", "name", "hypervisor_hostname")
DATES = {"Z": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "microseconds": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}",
         "seconds": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "blank": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HOST_ID = re.compile(r"[0-9a-f]{56}")


def differences(sample: Any, ours: Any, where: str = "") -> list[str]:
    """``path: expected ..., got ...`` for all in which ``ours`` is not like ``sample``; empty when it is."""
    return list(_differences(sample, ours, where or "(body)"))


def _differences(sample: Any, ours: Any, where: str) -> Iterator[str]:
    if sample is None or (ours is None and where.endswith(NEVER)):
        return
    if kind(sample) != kind(ours):
        yield f"{where}: expected {kind(sample)} ({short(sample)}), got {kind(ours)} ({short(ours)})"
    elif where.endswith(OPAQUE):
        return
    elif isinstance(sample, dict):
        yield from _object(sample, ours, where)
    elif isinstance(sample, list):
        yield from _list(sample, ours, where)
    elif isinstance(sample, str):
        yield from _text(sample, ours, where)


def _object(sample: dict[str, Any], ours: dict[str, Any], where: str) -> Iterator[str]:
    if where.rsplit(".", 1)[-1] in FREE or re.search(r"\.hosts\.\*\[[^]]*\]$", where):
        if sample and ours:
            yield from _list(list(sample.values()), list(ours.values()), f"{where}.*")
        return
    for key in sorted(sample.keys() - ours.keys()):
        yield f"{where}.{key}: expected {short(sample[key])}, got nothing"
    for key in sorted(ours.keys() - sample.keys()):
        yield f"{where}.{key}: expected nothing, got {short(ours[key])}"
    for key in sample.keys() & ours.keys():
        yield from _differences(sample[key], ours[key], f"{where}.{key}")


def _list(sample: list[Any], ours: list[Any], where: str) -> Iterator[str]:
    if not sample:
        return
    if not ours:
        yield f"{where}: expected items, got an empty list"
    for index, item in enumerate(ours):
        yield from nearest(f"{where}[{index}]", sample, lambda one, item=item: (one, item))
    for index, item in enumerate(sample if ours else ()):
        found = list(nearest(f"{where}[sample's {index}]", ours, lambda one, item=item: (item, one)))
        yield from found if len(sample) > 1 else ()


def nearest(where: str, choices: list[Any], pair: Callable[[Any], tuple[Any, Any]]) -> list[str]:
    """The differences with the choice that is nearest."""
    return min((differences(*pair(choice), where) for choice in choices), key=len)


def _text(sample: str, ours: str, where: str) -> Iterator[str]:
    wanted, got = form(sample, where), form(ours, where)
    if wanted.startswith("a link") and got.startswith("a link"):
        (path, _, asked), (ours_path, _, ours_asked) = wanted.partition("?"), got.partition("?")
        if path == ours_path and set(asked.split("&")) <= {*ours_asked.split("&"), ""}:
            return
    if wanted and wanted != got:
        yield f"{where}: expected {wanted} ({short(sample)}), got {got or 'text'} ({short(ours)})"


def form(text: str, where: str) -> str:
    """What kind of text this is; empty where any text would do."""
    for name, pattern in DATES.items():
        if re.fullmatch(pattern, text):
            return f"a date ({name})"
    key = where.rsplit(".", 1)[-1].split("[")[0]
    if UUID.fullmatch(text):
        return "" if key in NAMES or where.endswith("]") else "a uuid"
    if HOST_ID.fullmatch(text):
        return "56 hexadecimal digits"
    if text.startswith(("http://", "https://")) and key == "href":
        return link(text)
    return ""


def link(url: str) -> str:
    """A link without what is an example in it: ``/v2.1/servers/*?limit&marker``."""
    parts = urlsplit(url)
    if parts.netloc.startswith("docs."):
        return f"a link to {parts.netloc}"
    words = [word for word in parts.path.split("/") if word]
    version = "/V" if words and re.fullmatch(r"v2(\.1)?", words[0]) else ""
    path = "/".join(word if word in vocabulary() else "*" for word in words[bool(version):])
    query = "&".join(sorted({name for name, _ in parse_qsl(parts.query)}))
    return f"a link {version}/{path}" + (f"?{query}" if query else "")


@functools.cache
def vocabulary() -> frozenset[str]:
    """The words of the API's paths; all else in a path is an id."""
    return frozenset(word for entry in rows.operations().values() for word in entry["path"].split("/"))


def kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return {dict: "object", list: "array", str: "string"}.get(type(value), "number")


def short(value: Any, size: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= size else f"{text[:size]}..."
