"""Which actions a server cannot have because of what it was built with: one table, read before anything is begun.

The conductor refuses such an action at once (``server.NotForIt``), the plan of a drain and ``nova-manage server show``
say the same words. All that is looked at is in a server's own row, so that a list of servers costs no more statements.
What is in no row here is admitted: whether a host can do it is the host's to say. Source: the public contract of the
Compute API, and what the libvirt driver can do (:mod:`nova.virt.libvirt.moves.live`, libvirt's managed save).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nova.model.network import port_requests
from nova.model.network.networks import Interface
from nova.model.numa import pci_aliases
from nova.model.numa.topology import PciRequest
from nova.model.scheduling.image_flavor_conflicts import YES
from nova.model.scheduling.requirements import DEVICES
from nova.model.server.servers import ServerDetail

Properties = Mapping[str, str]

#: Ports whose device libvirt cannot keep while the guest's memory is on the disk. A macvtap is made anew at resume.
UNSAVED_PORTS = frozenset(port_requests.KINDS) - {"macvtap"}


class BuiltWith(NamedTuple):
    """What the rules look at. ``image``: its properties; ``aliases``: ``[pci]alias`` by name, as the cloud has them
    now."""

    image: Properties = {}
    extra_specs: Properties = {}
    interfaces: Sequence[Interface] = ()
    aliases: Mapping[str, PciRequest] = {}


class Restriction(NamedTuple):
    """``what``: the server has, said after "it"; ``refuses``: actions of :mod:`nova.model.server.states`."""

    what: str
    has: Callable[[BuiltWith], bool]
    refuses: tuple[str, ...]


# -- what servers have


def has_tpm(image: Properties, extra_specs: Properties) -> bool:
    """Whether flavor or image ask for a TPM (``hw:tpm_version``, ``hw_tpm_version``)."""
    return bool(extra_specs.get("hw:tpm_version") or image.get("hw_tpm_version"))


def _has_tpm(server: BuiltWith) -> bool:
    return has_tpm(server.image, server.extra_specs)


def _has_users_tpm(server: BuiltWith) -> bool:
    """Its secret can be read by nobody but its user: not even by the host, once the guest has started."""
    return _has_tpm(server) and server.extra_specs.get("hw:tpm_secret_security") == "user"


def _has_encrypted_memory(server: BuiltWith) -> bool:
    said = (server.extra_specs.get("hw:mem_encryption", ""), server.image.get("hw_mem_encryption", ""))
    return any(text.strip().lower() in YES for text in said)


def _has_devices(server: BuiltWith) -> bool:
    return bool(server.extra_specs.get(DEVICES, "").strip())


def _has_unsaved_devices(server: BuiltWith) -> bool:
    """Devices that are not known to give their state away, which an alias says with ``live_migratable``."""
    names = [part.rpartition(":")[0].strip() for part in server.extra_specs.get(DEVICES, "").split(",") if part.strip()]
    return not all(name in server.aliases and pci_aliases.is_live_migratable(server.aliases[name]) for name in names)


def _has_device_ports(server: BuiltWith) -> bool:
    return any(one.vnic_type in port_requests.KINDS for one in server.interfaces)


def _has_unsaved_ports(server: BuiltWith) -> bool:
    return any(one.vnic_type in UNSAVED_PORTS for one in server.interfaces)


#: Shares, accelerators (Cyborg) and ports of those are refused by other clouds, too: no server of this cloud has any.
RESTRICTIONS: tuple[Restriction, ...] = (
    Restriction("has a virtual TPM, whose contents would be lost", _has_tpm,
                ("rebuild", "rescue", "shelve", "evacuate")),
    Restriction("has a virtual TPM whose secret is its user's own", _has_users_tpm, ("live-migration",)),
    Restriction("has encrypted memory, which no one else can read", _has_encrypted_memory,
                ("suspend", "live-migration")),
    Restriction("has PCI devices of its host (pci_passthrough:alias of its flavor), which do not move while it runs: "
                "migrate it cold", _has_devices, ("live-migration",)),
    Restriction("has PCI devices of its host (pci_passthrough:alias of its flavor), whose state cannot be saved: "
                "stop it or shelve it", _has_unsaved_devices, ("suspend",)),
    Restriction("has a port that is a device of its host (binding:vnic_type), which does not move while it runs: "
                "detach the port, or migrate the server cold", _has_device_ports, ("live-migration",)),
    Restriction("has a port that is a device of its host (binding:vnic_type), whose state cannot be saved: detach "
                "the port, or stop or shelve the server", _has_unsaved_ports, ("suspend",)),
)

#: The actions that any row refuses: of the others nobody needs to read what a server has.
RESTRICTED = frozenset(action for one in RESTRICTIONS for action in one.refuses)


def restriction(action: str, server: BuiltWith) -> str | None:
    """What the server has that ``action`` cannot take along or would destroy; None: nothing."""
    if action not in RESTRICTED:
        return None
    return next((one.what for one in RESTRICTIONS if action in one.refuses and one.has(server)), None)


def built_with(server: ServerDetail, aliases: Mapping[str, PciRequest] | None = None) -> BuiltWith:
    """Of a server as queries show it. ``aliases`` None: of no alias it is known that its devices can be saved."""
    return BuiltWith(server.image_properties, server.flavor.extra_specs, server.interfaces, aliases or {})


__all__ = ["RESTRICTED", "RESTRICTIONS", "BuiltWith", "Restriction", "built_with", "has_tpm", "restriction"]
