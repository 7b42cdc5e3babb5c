"""What old versions of our API ask of networks, floating addresses and security groups, passed on to Neutron.

Reads and writes carry the user's own token: Neutron decides what they may. Its refusals become those the API tells.
"""

from __future__ import annotations

from nova.conductor.neutron.proxies.floating import FloatingByNeutron
from nova.conductor.neutron.proxies.groups import GroupsByNeutron
from nova.conductor.neutron.proxies.networks import NetworksByNeutron

__all__ = ["FloatingByNeutron", "GroupsByNeutron", "NetworksByNeutron"]
