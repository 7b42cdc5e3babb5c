"""Proxies to Neutron for old versions of the Compute API: networks, floating addresses and security groups.

Reads and writes carry the user's own token: Neutron authorizes them. Its refusals are translated to errors of the API.
"""

from __future__ import annotations

from nova.conductor.neutron.proxies.floating import FloatingByNeutron
from nova.conductor.neutron.proxies.groups import GroupsByNeutron
from nova.conductor.neutron.proxies.networks import NetworksByNeutron

__all__ = ["FloatingByNeutron", "GroupsByNeutron", "NetworksByNeutron"]
