"""User ids in requests. The identity service knows the users; this module only checks that an id can be stored."""

from __future__ import annotations

from nova import errors
from nova.web.formats import is_printable

LONGEST = 255  # maximum characters of an id


def sane_user(user_id: str | None) -> str | None:
    """Return the user id unchanged. Raises api.BadUser for an invalid one."""
    if user_id and (len(user_id) > LONGEST or not is_printable(user_id)):
        raise errors.api.BadUser(longest=LONGEST)
    return user_id
