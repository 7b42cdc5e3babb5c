"""Base of the values of a section of nova.conf."""

from __future__ import annotations

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a section, one field for each option, with the option's name. Its text has no values: some are
    secret."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
