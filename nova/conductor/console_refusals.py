"""Why a console is not given out, or not opened: words for users."""

from __future__ import annotations

from nova import errors

# -- what a user who asks for a console is told


class NotOnHost(errors.Conflict):
    code, message = "server.no_host", "Instance {server} is not ready: it is on no host."


class NoGuest(errors.Conflict):
    code, message = "server.no_guest", "Instance {server} is not ready: its host has no guest of it."


class NoConsole(errors.Conflict):
    code, message = "console.not_ready", "Instance {server} has no {type} console now: {reason}"


class CanNot(errors.NotSupported):
    code, message = "console.not_supported", "The hypervisor of instance {server} has no {type} consoles."


class Moving(errors.WrongState):
    code = "console.moving"
    message = "Instance {server} is being changed or moved just now: ask for its console again when that is done."


class HostAway(errors.Unavailable):
    code = "console.host_away"
    message = "The host of instance {server} does not answer: ask for its console again later."


class HostTooOld(errors.Unavailable):
    code = "console.host_too_old"
    message = "The host of instance {server} runs an older release, which can not show consoles: it has to be upgraded."


# -- what stands on the page of who comes with a token


class UnknownToken(errors.NotFound):
    code = "console.unknown"
    message = "This console address is not known. It may be old, or its server may be gone: ask for a new one."


class Expired(errors.NotFound):
    code, message = "console.expired", "This console address has expired: ask for a new one."


class Ended(errors.NotFound):
    code = "console.ended"
    message = ("This console address is not good any more: its server was stopped, moved, rebuilt or deleted after it "
               "was given out. Ask for a new one.")


class Off(errors.NotFound):
    code = "console.off"
    message = "The server does not run, so it has no console to show. Start it, and ask for a new address."


class UsedUp(errors.Conflict):
    code = "console.used"
    message = "This console address was used already, and serves once. Ask for a new one."


class OtherKind(errors.Invalid):
    code = "console.other_kind"
    message = "This address is for another kind of console ({type}), which is served elsewhere. Ask for a new one."
