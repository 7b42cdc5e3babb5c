"""Actions that a server cannot have because of its flavor, image or ports: one table, checked before an action begins.

The conductor refuses such an action immediately (``server.NotForIt``); a drain's plan and ``nova-manage server show``
print the same text. The rules only read a server's own row, so that a list of servers needs no further queries. Actions
without a row here are admitted; the host decides whether it supports them. Source: the public contract of the Compute
API, and the limits of the libvirt driver (:mod:`nova.virt.libvirt.moves.live`, libvirt's managed save).
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

#: Ports whose device libvirt cannot keep in a managed save. A macvtap is created again at resume.
UNSAVED_PORTS = frozenset(port_requests.KINDS) - {"macvtap"}


class BuiltWith(NamedTuple):
    """Facts for the rules. ``image``: its properties; ``aliases``: the current ``[pci]alias`` by name."""

    image: Properties = {}
    extra_specs: Properties = {}
    interfaces: Sequence[Interface] = ()
    aliases: Mapping[str, PciRequest] = {}


class Restriction(NamedTuple):
    """A rule. ``what`` describes the cause, as text to follow "it"; ``refuses``: actions of
    :mod:`nova.model.server.states`."""

    what: str
    has: Callable[[BuiltWith], bool]
    refuses: tuple[str, ...]


# -- causes


def has_tpm(image: Properties, extra_specs: Properties) -> bool:
    """Return whether flavor or image request a TPM (``hw:tpm_version``, ``hw_tpm_version``)."""
    return bool(extra_specs.get("hw:tpm_version") or image.get("hw_tpm_version"))


def _has_tpm(server: BuiltWith) -> bool:
    return has_tpm(server.image, server.extra_specs)


def _has_users_tpm(server: BuiltWith) -> bool:
    """Return whether only the user can read the TPM's secret: not even the host can after the guest has started."""
    return _has_tpm(server) and server.extra_specs.get("hw:tpm_secret_security") == "user"


def _has_encrypted_memory(server: BuiltWith) -> bool:
    said = (server.extra_specs.get("hw:mem_encryption", ""), server.image.get("hw_mem_encryption", ""))
    return any(text.strip().lower() in YES for text in said)


def _has_devices(server: BuiltWith) -> bool:
    return bool(server.extra_specs.get(DEVICES, "").strip())


def _has_unsaved_devices(server: BuiltWith) -> bool:
    """Return whether some device's state cannot be saved; an alias with ``live_migratable`` says that it can."""
    names = [part.rpartition(":")[0].strip() for part in server.extra_specs.get(DEVICES, "").split(",") if part.strip()]
    return not all(name in server.aliases and pci_aliases.is_live_migratable(server.aliases[name]) for name in names)


def _has_device_ports(server: BuiltWith) -> bool:
    return any(one.vnic_type in port_requests.KINDS for one in server.interfaces)


def _has_unsaved_ports(server: BuiltWith) -> bool:
    return any(one.vnic_type in UNSAVED_PORTS for one in server.interfaces)


#: Other clouds also refuse servers with shares, accelerators (Cyborg) and their ports; this cloud has no such servers.
RESTRICTIONS: tuple[Restriction, ...] = (
    Restriction("has a virtual TPM, whose contents would be lost", _has_tpm,
                ("rebuild", "rescue", "shelve", "evacuate")),
    Restriction("has a virtual TPM whose secret only its user can read", _has_users_tpm, ("live-migration",)),
    Restriction("has encrypted memory, which its host cannot read", _has_encrypted_memory,
                ("suspend", "live-migration")),
    Restriction("has PCI devices of its host (pci_passthrough:alias of its flavor), which cannot move while it runs: "
                "use a cold migration", _has_devices, ("live-migration",)),
    Restriction("has PCI devices of its host (pci_passthrough:alias of its flavor), whose state cannot be saved: "
                "stop it or shelve it", _has_unsaved_devices, ("suspend",)),
    Restriction("has a port that is a device of its host (binding:vnic_type), which cannot move while it runs: "
                "detach the port, or use a cold migration", _has_device_ports, ("live-migration",)),
    Restriction("has a port that is a device of its host (binding:vnic_type), whose state cannot be saved: detach "
                "the port, or stop or shelve the server", _has_unsaved_ports, ("suspend",)),
)

#: Actions that some row refuses; all others need no check.
RESTRICTED = frozenset(action for one in RESTRICTIONS for action in one.refuses)


def restriction(action: str, server: BuiltWith) -> str | None:
    """Return the reason why the server cannot have ``action``; None if it can."""
    if action not in RESTRICTED:
        return None
    return next((one.what for one in RESTRICTIONS if action in one.refuses and one.has(server)), None)


def built_with(server: ServerDetail, aliases: Mapping[str, PciRequest] | None = None) -> BuiltWith:
    """Return the facts of a queried server. ``aliases`` None: no alias is assumed to have savable devices."""
    return BuiltWith(server.image_properties, server.flavor.extra_specs, server.interfaces, aliases or {})


__all__ = ["RESTRICTED", "RESTRICTIONS", "BuiltWith", "Restriction", "built_with", "has_tpm", "restriction"]
