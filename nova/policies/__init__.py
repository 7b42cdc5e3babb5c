"""Access rules as data, a module a room of the API, and the one place that asks them."""

from __future__ import annotations

from nova.policies.enforcer import Policy, get_enforcer
from nova.policies.registry import list_rules

__all__ = ["Policy", "get_enforcer", "list_rules"]
