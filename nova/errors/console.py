"""Errors about consoles."""

from __future__ import annotations

from nova.errors import kinds

#: Words for a page, which anybody may open: they name no machine. ``away``: what does not answer.
CannotTell = kinds.Unavailable.row("console.can_not_tell",
    "It cannot be told now whether this console address is good, for {away} does not answer. Try again in a minute.")
Elsewhere = kinds.Unavailable.row("console.elsewhere",
    "The host of this server says that the console is at an address that is not the host's.",
    "Its log line on the conductor has the address; `nova-manage host enroll HOST --console-address` says which are.")
Ended = kinds.NotFound.row("console.ended",
    "This console address is not good any more: its server was stopped, moved, rebuilt or deleted after it was given "
    "out. Ask for a new one.")
Expired = kinds.NotFound.row("console.expired", "This console address has expired: ask for a new one.")
HostAway = kinds.Unavailable.row("console.host_away",
    "The host of instance {server} does not answer: ask for its console again later.",
    "See whether nova-compute of that host runs (`openstack compute service list`).")
HostTooOld = kinds.Unavailable.row("console.host_too_old",
    "The host of instance {server} runs an older release, which cannot show consoles: it has to be upgraded.",
    "Upgrade nova-compute of that host.")
Moving = kinds.WrongState.row("console.moving",
    "Instance {server} is being changed or moved just now: ask for its console again when that is done.")
NotReady = kinds.Conflict.row("console.not_ready", "Instance {server} has no {type} console now: {reason}")
NotSupported = kinds.NotSupported.row("console.not_supported",
    "The hypervisor of instance {server} has no {type} consoles.")
Off = kinds.NotFound.row("console.off",
    "The server does not run, so it has no console to show. Start it, and ask for a new address.")
OtherKind = kinds.Invalid.row("console.other_kind",
    "This address is for another kind of console ({type}), which is served elsewhere. Ask for a new one.")
TypeUnavailable = kinds.Invalid.row("console.type_unavailable", "Unavailable console type {type}.")
Unknown = kinds.NotFound.row("console.unknown",
    "This console address is not known. It may be old, or its server may be gone: ask for a new one.")
Used = kinds.Conflict.row("console.used", "This console address was used already, and serves once. Ask for a new one.")
