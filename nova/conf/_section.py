"""Base of the values of a section of nova.conf."""

from __future__ import annotations

from typing import Self

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a section, one field for each option, with the option's name. Its text has no values: some are
    secret."""

    @classmethod
    def of(cls, group: object) -> Self:
        """Return the values of oslo.config's object for the section."""
        return cls(**{name: getattr(group, name) for name in cls.__struct_fields__})

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
