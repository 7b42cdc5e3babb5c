"""The three managers of nova-network (its configuration reference), as a table of properties that all hosts share."""

from __future__ import annotations

from dataclasses import dataclass

from nova import errors, failures


@dataclass(frozen=True)
class NetworkKind:
    """A network manager. ``needs``: a field that a new network requires, given in the request or by an option.
    ``per_project``: each network belongs to one project, which takes a free one at its first use. Reserved: addresses
    at the low and high end of each subnet."""

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
        """True if each network belongs to one project, as for managers with VLANs."""
        return self.vlans


FLAT = NetworkKind("nova.network.manager.FlatManager", "bridge", dhcp=False, floating=False)
FLAT_DHCP = NetworkKind("nova.network.manager.FlatDHCPManager", "bridge")
VLAN = NetworkKind("nova.network.manager.VlanManager", "bridge_interface", vlans=True, charges_quota=False,
                   low_reserved=3)  # one more for the VPN guest

MANAGERS = {manager.path: manager for manager in (FLAT, FLAT_DHCP, VLAN)}


def named(path: str) -> NetworkKind:
    """Return the manager of a class path in nova.conf. Raises network.UnknownManager."""
    with failures.replaced(KeyError, lambda _: errors.network.UnknownManager(known=", ".join(MANAGERS))):
        return MANAGERS[path]
