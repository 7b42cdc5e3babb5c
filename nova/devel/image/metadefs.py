"""Metadata definitions of FakeGlance, which are read-only: Horizon offers them for images, flavors, aggregates and
servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nova.devel.image.store import FakeImageStore
from nova.devel.service import FakeCall, FakeError, FakeRoute

IMAGE, FLAVOR, AGGREGATE, SERVER = "OS::Glance::Image", "OS::Nova::Flavor", "OS::Nova::Aggregate", "OS::Nova::Server"
SINCE = "2026-01-01T00:00:00Z"


class MetadefUse(NamedTuple):
    """Association of a namespace with a resource type. ``prefix``: of its properties' names; ``target``: a server's
    metadata or scheduler hints."""

    prefix: str = ""
    target: str | None = None


class MetadefNamespace(NamedTuple):
    """A namespace of metadata definitions. ``uses``: by resource type. ``properties``: JSON schemas by name."""

    title: str
    description: str
    uses: Mapping[str, MetadefUse]
    properties: Mapping[str, Mapping[str, object]]


def _count(title: str) -> Mapping[str, object]:
    return {"title": title, "description": title, "type": "integer", "minimum": 1}


NAMESPACES: Mapping[str, MetadefNamespace] = {
    "OS::Compute::VirtCPUTopology": MetadefNamespace(
        "Virtual CPU Topology", "Numbers of sockets, cores and threads of the guest.",
        {IMAGE: MetadefUse("hw_"), FLAVOR: MetadefUse("hw:")},
        {"cpu_sockets": _count("vCPU Sockets"), "cpu_cores": _count("vCPU Cores"),
         "cpu_threads": _count("vCPU Threads")}),
    "OS::Operations::Notes": MetadefNamespace(
        "Notes", "Contact and purpose.", {AGGREGATE: MetadefUse(), SERVER: MetadefUse("", "metadata")},
        {name: {"title": name.title(), "description": name.title(), "type": "string"} for name in ("contact", "use")}),
    "OS::Nova::SchedulerHints": MetadefNamespace(
        "Scheduler Hints", "Placement of a server relative to others.", {SERVER: MetadefUse("", "scheduler_hints")},
        {name: {"title": title, "description": title, "type": "string"}
         for name, title in (("same_host", "Same host as this server"), ("different_host", "Other host than it"))})}
#: For the models of clients: members of any type.
SCHEMAS: Mapping[str, Mapping[str, object]] = {
    name: {"name": name, "properties": {member: {} for member in members}, "additionalProperties": True}
    for name, members in {"namespace": ("namespace", "display_name", "description", "visibility", "properties"),
                          "namespaces": ("namespaces", "first", "next", "schema"),
                          "resource_type": ("name", "prefix", "properties_target"),
                          "property": ("name", "title", "type"),
                          "object": ("name", "properties"), "tag": ("name",)}.items()}


def list_namespaces(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/metadefs/namespaces: list namespaces of the requested resource types (``resource_types``)."""
    wanted = {one for one in call.http.GET.get("resource_types", "").split(",") if one}
    found = [_shown(name) for name, one in sorted(NAMESPACES.items()) if not wanted or wanted & one.uses.keys()]
    if call.http.GET.get("marker"):
        found = [one for one in found if str(one["namespace"]) > call.http.GET["marker"]]
    return {"namespaces": found, "first": "/v2/metadefs/namespaces", "schema": "/v2/schemas/metadefs/namespaces"}


def show_namespace(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET one namespace, with its properties, whose names have the prefix of ``resource_type``. Raises 404."""
    name = call.named["name"]
    if name not in NAMESPACES:
        raise FakeError(404, f"Metadata definition namespace {name} was not found.")
    prefix = NAMESPACES[name].uses.get(call.http.GET.get("resource_type", ""), MetadefUse()).prefix
    return {**_shown(name), "objects": [], "tags": [],
            "properties": {f"{prefix}{one}": {**schema, "name": f"{prefix}{one}"}
                           for one, schema in NAMESPACES[name].properties.items()}}


def list_types(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/metadefs/resource_types: list resource types."""
    return {"resource_types": [{"name": name, "created_at": SINCE, "updated_at": SINCE}
                               for name in (AGGREGATE, FLAVOR, IMAGE, SERVER)]}


def show_schema(store: FakeImageStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2/schemas/metadefs/{name}: show a JSON schema. Raises 404."""
    if call.named["name"] not in SCHEMAS:
        raise FakeError(404, f"Unknown schema {call.named['name']}.")
    return SCHEMAS[call.named["name"]]


def _shown(name: str) -> dict[str, object]:
    one = NAMESPACES[name]
    return {"namespace": name, "display_name": one.title, "description": one.description, "visibility": "public",
            "protected": True, "owner": "admin", "created_at": SINCE, "updated_at": SINCE,
            "self": f"/v2/metadefs/namespaces/{name}", "schema": "/v2/schemas/metadefs/namespace",
            "resource_type_associations": [
                {"name": kind, "prefix": use.prefix, "properties_target": use.target, "created_at": SINCE}
                for kind, use in one.uses.items()]}


_NAMESPACES = "/v2/metadefs/namespaces"
ROUTES: tuple[FakeRoute[FakeImageStore], ...] = (
    FakeRoute("GET", _NAMESPACES, list_namespaces),
    FakeRoute("GET", f"{_NAMESPACES}/{{name}}", show_namespace),
    FakeRoute("GET", "/v2/metadefs/resource_types", list_types),
    FakeRoute("GET", "/v2/schemas/metadefs/{name}", show_schema),
)
