"""The root elements of responses: by operation if JSON has no root or a different one, else by the key in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nova.legacy.xml import core_roots, extension_roots
from nova.legacy.xml.layouts import GENERIC, Root
from nova.legacy.xml.namespaces import EXTENSIONS
from nova.model.base import JsonValue

ROOTS: dict[str, Root] = {**extension_roots.ROOTS, **core_roots.ROOTS}
_PLAIN = Root(GENERIC)
Answer = dict[str, JsonValue]  # the JSON of a response


class Laid(NamedTuple):
    """A root element: its name, its layout, its value, and the pagination links at its end."""

    tag: str
    root: Root
    value: JsonValue
    links: tuple[Mapping[str, JsonValue], ...] = ()


def _whole(tag: str, root: Root) -> Callable[[Answer], Laid]:
    """Return a function that puts the complete response into the root."""
    return lambda answer: Laid(tag, root, answer)


def _created(answer: Answer) -> Laid:
    if "server" in answer:
        return Laid("server", core_roots.CREATED, answer["server"])
    return Laid("server", core_roots.RESERVED, answer)


def _extension(shown: JsonValue) -> JsonValue:
    """Return an extension with its published namespace and date; JSON has one namespace for all extensions."""
    if not isinstance(shown, dict):
        return shown
    known = EXTENSIONS.get(str(shown["alias"]))
    return {**shown, **known._asdict()} if known else dict(shown)


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


_HOST, _POWER = "/os-hosts/{host_name}", _whole("host", extension_roots.HOST_POWER)
_SPEC = "/flavors/{flavor_id}/os-extra_specs/{key}"

OPERATIONS: dict[str, Callable[[Answer], Laid]] = {
    "POST /servers": _created,
    "POST /os-volumes_boot": _created,
    "POST /servers/{server_id}/action#rescue": lambda answer: Laid("adminPass", _PLAIN, answer.get("adminPass", "")),
    "GET /servers/{server_id}/ips/{network_label}": _whole("network", core_roots.ONE_NETWORK),
    "GET /servers/{server_id}/diagnostics": _whole("diagnostics", core_roots.DIAGNOSTICS),
    f"GET {_SPEC}": _whole("extra_spec", extension_roots.EXTRA_SPEC),
    f"PUT {_SPEC}": _whole("extra_spec", extension_roots.EXTRA_SPEC),
    "GET /os-hypervisors/{hypervisor_hostname_pattern}/servers": lambda answer: Laid(
        "hypervisors", extension_roots.SERVERS_OF_HYPERVISORS, answer["hypervisors"]),
    f"GET {_HOST}": lambda answer: Laid("host", extension_roots.HOST_RESOURCES, answer["host"]),
    f"PUT {_HOST}": _POWER,
    f"GET {_HOST}/startup": _POWER,
    f"GET {_HOST}/shutdown": _POWER,
    f"GET {_HOST}/reboot": _POWER,
    "POST /os-cloudpipe": _whole("cloudpipe", _PLAIN),
    "GET /os-fping": lambda answer: Laid("servers", extension_roots.ALL_PINGED, answer["servers"]),
    "GET /os-fping/{server_id}": lambda answer: Laid("server", extension_roots.PINGED, answer["server"]),
    "GET /extensions": lambda answer: Laid("extensions", ROOTS["extensions"], list(map(_extension, _items(
        answer["extensions"])))),
    "GET /extensions/{alias}": lambda answer: Laid("extension", ROOTS["extension"], _extension(answer["extension"])),
}


def laid(answer: Answer, operation: str | None = None) -> Laid:
    """Return the root element for ``answer``; ``operation``: the operation's id in the table of routes."""
    if operation in OPERATIONS:
        return OPERATIONS[operation](answer)
    links = [key for key in answer if key == "links" or key.endswith("_links")]
    tag = next(key for key in answer if key not in links)
    return Laid(tag, ROOTS.get(tag, _PLAIN), answer[tag], tuple(
        link for key in links for link in _items(answer[key]) if isinstance(link, dict)))
