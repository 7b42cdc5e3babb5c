"""What several daemons say of consoles, one code each: whoever must tell it from others of its kind compares that."""

from __future__ import annotations

from nova import errors


class TypeUnavailable(errors.Invalid):
    code, message = "console.type_unavailable", "Unavailable console type {type}."


class CanNotTell(errors.Unavailable):
    """Words for a page, which anybody may open: they name no machine. ``away``: what does not answer."""

    code = "console.can_not_tell"
    message = ("It can not be told now whether this console address is good, for {away} does not answer. "
               "Try again in a minute.")
