"""Why Neutron's networks, ports or groups cannot be had, in the words that clients know."""

from __future__ import annotations



