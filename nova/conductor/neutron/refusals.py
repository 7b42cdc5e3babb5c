"""Refusals of Neutron's networks, ports and groups, in the wording that clients know."""

from __future__ import annotations



