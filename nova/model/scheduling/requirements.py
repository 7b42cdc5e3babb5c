"""Combined requirements of a flavor and an image on a host: resource classes, traits, NUMA cells and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova.model.flavor.flavors import Flavor
from nova.model.network import port_requests
from nova.model.network.networks import PortDemand
from nova.model.numa import pci_aliases
from nova.model.numa.topology import GuestTopology, PciRequest, Wanted
from nova.model.scheduling import resource_requests
from nova.model.scheduling.decisions import HostRequirements, Resources
from nova.model.scheduling.guest_topology import FlavorAndImage, guest_of
from nova.model.scheduling.requirement_syntax import choice, said

#: Prefixes of names that may require more than vcpus, MB and GB. Most servers have none of them.
SPECS = ("hw:", "resources", "trait", "pci_passthrough:", "group_policy", "same_subtree", "os:")
PROPERTIES = ("hw_", "trait", "os_secure_boot")
DEVICES = "pci_passthrough:alias"
#: A server without these extra specs and image properties holds none of its host's cells and devices.
HOLDING = frozenset({"hw:cpu_policy", "hw:numa_nodes", "hw:mem_page_size", DEVICES})
IMAGE_HOLDING = frozenset({"hw_cpu_policy", "hw_numa_nodes", "hw_mem_page_size"})


class Needs(NamedTuple):
    """Needs of a server. ``resources``: amounts of VCPU, MEMORY_MB and DISK_GB (0 if another class replaces it, as for
    pinned CPUs). ``requirements``: None for a server without other requirements."""

    resources: Resources
    requirements: HostRequirements | None


def may_require(flavor: Flavor, image: Mapping[str, str]) -> bool:
    """Return whether flavor or image may have other requirements than numbers; False for most servers. Only reads
    names."""
    return any(name.startswith(SPECS) for name in flavor.extra_specs) or \
        any(name.startswith(PROPERTIES) for name in image)


def may_hold(flavor: Flavor, image: Mapping[str, str]) -> bool:
    """Return whether the server may hold cells or devices of its host. Only reads names, so that it also works for
    servers whose aliases are no longer configured."""
    return not HOLDING.isdisjoint(flavor.extra_specs) or not IMAGE_HOLDING.isdisjoint(image)


def needs_of(flavor: Flavor, image: Mapping[str, str], aliases: Mapping[str, PciRequest] | None = None,
             more: Sequence[PciRequest] = (), ports: Sequence[PortDemand] = ()) -> Needs:
    """Return the needs of a server of this flavor and image (its properties). ``aliases``: ``[pci]alias`` by name, for
    one device each; ``more``: further devices; ``ports``: requirements of its ports.

    Raises Invalid, which names the extra spec or property: server.ImpossibleRequirement if no host can meet it, or
    host.PciNoSuchAlias for an unknown kind of device.
    """
    disk_gb = flavor.root_gb + flavor.ephemeral_gb + (flavor.swap_mb + 1023) // 1024
    plain = Resources(vcpus=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=disk_gb)
    more = (*more, *port_requests.devices(ports))
    if not ports and not more and not may_require(flavor, image):
        return Needs(plain, None)
    specs = flavor.extra_specs
    guest = guest_of(FlavorAndImage(flavor.vcpus, flavor.memory_mb, specs, image))
    amounts = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": disk_gb}
    request = resource_requests.request_of(amounts, specs, image, _dedicated(guest))
    devices = _devices(specs, image, aliases or {}, more)
    [unnamed] = [group.resources for group in request.groups if not group.suffix]
    resources = Resources(vcpus=unnamed.get("VCPU", 0), memory_mb=unnamed.get("MEMORY_MB", 0),
                          disk_gb=unnamed.get("DISK_GB", 0))
    if ports:
        request = msgspec.structs.replace(request, groups=(*request.groups, *port_requests.groups(ports)),
                                          same_subtree=(*request.same_subtree, *port_requests.subtrees(ports)))
    topology = Wanted(guest=guest, devices=devices)
    if not topology.anything and resource_requests.is_plain(request):
        return Needs(resources, None)
    return Needs(resources, HostRequirements(request=request, topology=topology))


def _dedicated(guest: GuestTopology | None) -> resource_requests.Dedicated:
    if guest is None:
        return resource_requests.Dedicated()
    return resource_requests.Dedicated(sum(len(cell.pinned) for cell in guest.cells), guest.emulator == "isolate")


def _devices(specs: Mapping[str, str], image: Mapping[str, str], aliases: Mapping[str, PciRequest],
             more: Sequence[PciRequest]) -> tuple[PciRequest, ...]:
    """Return the device requests. A policy of the flavor or the image overrides an alias's, but not a port's own
    policy."""
    mine, its = said(specs, "hw:pci_numa_affinity_policy"), said(image, "hw_pci_numa_affinity_policy")
    flavor, other = (choice(one, *pci_aliases.NUMA_POLICIES) for one in (mine, its))
    if mine is not None and its is not None and flavor != other:
        raise its.wrong(f"the flavor has {mine.name}={mine.value}")
    policy = flavor or other
    wanted = pci_aliases.requests(specs[DEVICES], aliases) if DEVICES in specs else ()
    if policy is None:
        return (*wanted, *more)
    return (*(msgspec.structs.replace(one, numa_policy=policy) for one in wanted),
            *(msgspec.structs.replace(one, numa_policy=policy)
              if one.numa_policy == pci_aliases.DEFAULT_POLICY else one for one in more))


__all__ = ["DEVICES", "Needs", "may_hold", "may_require", "needs_of"]
