"""Users named by a request. Who they are is the identity service's business; here only what can be kept is taken."""

from __future__ import annotations

from nova import errors
from nova.web.formats import is_printable

LONGEST = 255  # characters of an id


def sane_user(user_id: str | None) -> str | None:
    """The same, or api.BadUser."""
    if user_id and (len(user_id) > LONGEST or not is_printable(user_id)):
        raise errors.api.BadUser(longest=LONGEST)
    return user_id
