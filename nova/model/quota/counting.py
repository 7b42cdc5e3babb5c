"""Resources of a server that count for quotas, by resource class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from nova import errors
from nova.model.flavor.flavors import Flavor
from nova.model.scheduling.requirements import needs_of

PCI = "pci_passthrough:"  # PCI devices are not a resource class of flavors


def classes(flavor: Flavor, image: Mapping[str, str]) -> dict[str, int]:
    """Return resource class -> amount that a server of this flavor and image (its properties) needs. Invalid
    requirements (of a server older than a rule) count by the flavor's vcpus, memory and disk."""
    specs = {key: value for key, value in flavor.extra_specs.items() if not key.startswith(PCI)}
    try:
        needs = needs_of(msgspec.structs.replace(flavor, extra_specs=specs), image)
    except errors.Invalid:
        needs = needs_of(msgspec.structs.replace(flavor, extra_specs={}), {})
    if needs.requirements is None:
        found = {"VCPU": needs.resources.vcpus, "MEMORY_MB": needs.resources.memory_mb,
                 "DISK_GB": needs.resources.disk_gb}
    else:
        total: Counter[str] = Counter()
        for group in needs.requirements.request.groups:
            total.update(group.resources)
        found = dict(total)
    return {name: amount for name, amount in sorted(found.items()) if amount}


def larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the larger amount of each class."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in sorted({*one, *other})}


__all__ = ["classes", "larger"]
