"""Policy rules as data, one module for each part of the API, and the enforcer that checks them."""

from __future__ import annotations

from nova.policies.enforcer import Policy, get_enforcer
from nova.policies.registry import list_rules

__all__ = ["Policy", "get_enforcer", "list_rules"]
