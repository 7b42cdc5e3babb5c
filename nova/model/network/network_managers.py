"""What the three managers of nova-network decide alike on all hosts (its configuration reference): a table."""

from __future__ import annotations

from dataclasses import dataclass

from nova import errors


@dataclass(frozen=True)
class NetworkKind:
    """``needs``: a new network's field that must be given, here or by an option. ``per_project``: a network is one
    project's, taken from those of nobody at first use. Reserved: addresses at the low and high end of each subnet."""

    path: str
    needs: str
    vlans: bool = False
    dhcp: bool = True
    floating: bool = True
    charges_quota: bool = True  # fixed_ips
    low_reserved: int = 2
    high_reserved: int = 1

    @property
    def per_project(self) -> bool:
        """Whether a network is one project's: so it is where each has a VLAN."""
        return self.vlans


FLAT = NetworkKind("nova.network.manager.FlatManager", "bridge", dhcp=False, floating=False)
FLAT_DHCP = NetworkKind("nova.network.manager.FlatDHCPManager", "bridge")
VLAN = NetworkKind("nova.network.manager.VlanManager", "bridge_interface", vlans=True, charges_quota=False,
                   low_reserved=3)  # one more for the VPN's guest

MANAGERS = {manager.path: manager for manager in (FLAT, FLAT_DHCP, VLAN)}


def named(path: str) -> NetworkKind:
    """By its class path in nova.conf. network.UnknownManager."""
    try:
        return MANAGERS[path]
    except KeyError:
        raise errors.network.UnknownManager(known=", ".join(MANAGERS)) from None
