"""Types of the calls' arguments. Values that need more than a pattern are checked by a function here, which the call
runs first.

A pattern ends with ``\\Z``: ``$`` would accept a trailing line end.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

from msgspec import Meta, Struct

from nova import errors, failures
from nova.privileged.links import SCOPES, Address, LinkRoute

#: The kernel's name of a network device; it can be neither an option of a tool nor a path.
Device = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,14}\Z")]
#: nova-network's own end of a network on another's switch (nova.network.drivers).
GatewayDevice = Annotated[str, Meta(pattern=r"\Agw-[0-9a-f-]{1,12}\Z")]
DeviceOrNone = Annotated[str, Meta(pattern=r"\A([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,14})?\Z")]
Mac = Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}\Z")]
Mtu = Annotated[int, Meta(ge=68, le=65535)]
VlanId = Annotated[int, Meta(ge=0, le=4094)]
Prefix = Annotated[int, Meta(ge=0, le=128)]
AddressText = Annotated[str, Meta(pattern=r"\A[0-9A-Fa-f.:]{2,45}\Z")]
AddressOrNone = Annotated[str, Meta(pattern=r"\A([0-9A-Fa-f.:]{2,45})?\Z")]
Number = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Uuid = Annotated[str, Meta(pattern=r"\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
PciAddress = Annotated[str, Meta(pattern=r"\A[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")]
#: Absolute, without a component that leads upwards; the helper's own directories determine where it may be.
HostPath = Annotated[str, Meta(pattern=r"\A(/(?!\.{1,2}(/|\Z))[^/\x00\n]{1,255})+\Z", max_length=4096)]
HostPathOrNone = Annotated[str, Meta(pattern=r"\A(/(?!\.{1,2}(/|\Z))[^/\x00\n]{1,255})*\Z", max_length=4096)]
#: File in a directory that another argument determines.
FileName = Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[^/\x00\n]{1,255}\Z")]
#: Name of a logical volume.
VolumeName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.+-]{0,126}\Z")]
Bytes = Annotated[int, Meta(ge=0, le=1 << 60)]
Seconds = Annotated[float, Meta(gt=0, le=7 * 86400)]
Label = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,15}\Z")]
DiskFormat = Annotated[str, Meta(pattern=r"\A(raw|qcow2|vhd|vhdx|vdi|vmdk|iso|ami|ari|aki)\Z")]
WritableFormat = Annotated[str, Meta(pattern=r"\A(raw|qcow2)\Z")]


class GivenAddress(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.links.Address``."""

    address: AddressText
    prefix: Prefix
    broadcast: AddressText | None = None
    scope: Annotated[int, Meta(ge=0, le=255)] = SCOPES["global"]


class GivenRoute(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.links.LinkRoute``."""

    destination: AddressOrNone
    prefix: Prefix
    gateway: AddressText | None = None
    metric: Number | None = None
    source: AddressText | None = None
    protocol: Annotated[int, Meta(ge=0, le=255)] = 3
    scope: Annotated[int, Meta(ge=0, le=255)] = 0


class GivenVlan(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.links.Vlan``."""

    name: Device
    parent: Device
    id: VlanId
    mac: Mac | None = None
    mtu: Mtu | None = None


class GivenTap(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.taps.Tap``; its owner is always root."""

    name: GatewayDevice
    mac: Mac | None = None
    mtu: Mtu | None = None
    bridge: Device | None = None
    owner: None = None


class GivenFunction(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.vfs.Function``."""

    parent: Device
    number: Annotated[int, Meta(ge=0, le=4095)]


def refused(call: str, reason: str) -> errors.HostRefused:
    """Return the error for arguments that a type alone cannot reject."""
    return errors.host.HelperRefused(call=call, reason=reason)


def address(text: str) -> str:
    """Return the address in canonical form. Raises host.HelperRefused if it is not valid."""
    with failures.replaced(ValueError, lambda _: refused("a call", f"{text!r} is not a valid address")):
        return str(ipaddress.ip_address(text))


def link_address(given: GivenAddress) -> Address:
    """Return the validated address. Raises host.HelperRefused."""
    checked = ipaddress.ip_address(address(given.address))
    if given.prefix > checked.max_prefixlen:
        raise refused("a call", f"{given.address} cannot have a prefix of {given.prefix} bits")
    broadcast = address(given.broadcast) if given.broadcast is not None else None
    return Address(given.address, given.prefix, broadcast, given.scope)


def link_route(given: GivenRoute) -> LinkRoute:
    """Return the validated route. Raises host.HelperRefused."""
    for text in filter(None, (given.destination, given.gateway, given.source)):
        address(text)
    return LinkRoute(given.destination, given.prefix, given.gateway, given.metric, given.source, given.protocol,
                     given.scope)
