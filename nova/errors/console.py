"""Errors about consoles."""

from __future__ import annotations

from nova.errors import kinds

#: Text of a page that anyone can open, so it names no host. ``away``: the service that does not answer.
CannotTell = kinds.Unavailable.row("console.cannot_tell",
    "This console address cannot be validated now, because {away} does not answer. Try again in a minute.")
Elsewhere = kinds.Unavailable.row("console.elsewhere",
    "The host of this server reported a console address that does not belong to the host.",
    "The conductor's log has the address; `nova-manage host enroll HOST --console-address` sets the allowed ones.")
Ended = kinds.NotFound.row("console.ended",
    "This console address is no longer valid: its server was stopped, moved, rebuilt or deleted after the address was "
    "issued. Request a new one.")
Expired = kinds.NotFound.row("console.expired", "This console address has expired: request a new one.")
HostAway = kinds.Unavailable.row("console.host_away",
    "The host of instance {server} does not answer: request its console again later.",
    "Check whether nova-compute runs on that host (`openstack compute service list`).")
HostTooOld = kinds.Unavailable.row("console.host_too_old",
    "The host of instance {server} runs an older release, which cannot show consoles: it has to be upgraded.",
    "Upgrade nova-compute on that host.")
Moving = kinds.WrongState.row("console.moving",
    "Instance {server} is being changed or moved: request its console again when that has ended.")
NotReady = kinds.Conflict.row("console.not_ready", "Instance {server} has no {type} console now: {reason}")
NotSupported = kinds.NotSupported.row("console.not_supported",
    "The hypervisor of instance {server} has no {type} consoles.")
Off = kinds.NotFound.row("console.off",
    "The server is not running, so it has no console to show. Start it, and request a new address.")
OtherKind = kinds.Invalid.row("console.other_kind",
    "This address is for another console type ({type}), which another proxy serves. Request a new one.")
TypeUnavailable = kinds.Invalid.row("console.type_unavailable", "Unavailable console type {type}.")
Unknown = kinds.NotFound.row("console.unknown",
    "Unknown console address. It may be old, or its server may be deleted: request a new one.")
Used = kinds.Conflict.row("console.used",
    "This console address was used already, and is valid only once. Request a new one.")
