"""Doctor check of nova-network's networks."""

from __future__ import annotations

from nova.conf._options import Options
from nova.manage.doctor.finding import BAD, OK, Finding, asked, some
from nova.model.base import Scope
from nova.model.network import bridges


def networks(options: Options) -> Finding:
    """Find networks that share a bridge with another network: servers on them cannot start."""
    from nova.conf.network import neutron_in_use
    from nova.model.network.network_managers import named

    if neutron_in_use(options):
        return Finding(OK, "networks are Neutron's")
    if not named(options.network_manager).dhcp:
        return Finding(OK, "this network_manager has no DHCP, so networks may share a bridge")
    found = asked(options, lambda conductor: conductor.list_networks(Scope()))
    if isinstance(found, Finding):
        return found
    pairs = list(bridges.shared(sorted(found, key=lambda network: network.id)))
    if not pairs:
        return Finding(OK, f"each of {len(found)} networks has its own bridge")
    named_ = some([f"{newer.label} ({newer.uuid}) is on {newer.bridge}, which serves {older.label}"
                   for older, newer in pairs])
    return Finding(BAD, f"no server with one of these networks can start: {named_}",
                   "nova-manage network delete UUID, and create it again with its own bridge")


__all__ = ["networks"]
