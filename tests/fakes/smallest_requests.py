"""The smallest valid request of any operation, from the code's tables of routes and bodies."""

from __future__ import annotations

import uuid
from typing import Any

from nova.api import versions
from nova.api.routing import Route
from nova.web.schema import SchemaNode
from nova.web.specs import Spec, problem_of


def made_up(name: str) -> str:
    """Return a constant uuid for a part of a path."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def body_of(route: Route, version: str) -> Any:
    """Return the smallest valid body. (Another test compares the tables of bodies with the contract.)"""
    if route.body is None:
        return {route.action: None} if route.action else {}
    node = route.body.compiled(versions.number(version), False)
    if route.action:
        return {route.action: smallest(node.keys[route.action]) if route.action in node.keys else None}
    return smallest(node)


PROBES: tuple[Any, ...] = ("a", "1", 1, None, True, "YWJj", "192.0.2.1", "2020-01-01T00:00:00Z", "192.0.2.0/24",
                           "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", {"a": "b"}, {}, [], ["a"])


def smallest(node: SchemaNode) -> Any:
    """Return the smallest value that a compiled table accepts."""
    if "object" in node.spec.types:
        value = {name: smallest(child) for name, child in node.keys.items() if child.required}
        for pattern, child in node.patterns if not value else ():
            key = next(name for name in ("a", "1", "hw:a") if pattern.search(name))
            return {key: smallest(child)}
        wanted = [name for name in node.spec.any_key or list(node.keys)[:node.spec.min_keys or 0] if name in node.keys]
        return value or {name: smallest(node.keys[name]) for name in wanted[:max(1, node.spec.min_keys or 0)]}
    if "array" in node.spec.types:
        return [smallest(node.item)] * (node.spec.min_items or 0) if node.item else [] if not node.spec.min_items \
            else [_fitting(node.spec.items)]
    return _fitting(node.spec)


def _fitting(spec: Spec | None) -> Any:
    spec = spec or Spec()
    if "null" in spec.types:  # a named value may need a separate access rule
        return None
    return next(value for value in (*spec.allowed, *PROBES) if problem_of(spec, value) is None)


def versions_of(route: Route) -> list[str]:
    last = route.until or "2.104"
    return [route.since] if route.since == last else [route.since, last]


