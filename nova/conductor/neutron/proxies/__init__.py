"""What old versions of our API ask of networks, floating addresses and security groups, passed on to Neutron.

Reads and writes carry the user's own token: Neutron decides what they may. Its refusals become those the API tells.
"""

from __future__ import annotations

from nova.conductor.neutron.proxies.floating import Floating
from nova.conductor.neutron.proxies.groups import Groups
from nova.conductor.neutron.proxies.networks import Networks

__all__ = ["Floating", "Groups", "Networks"]
