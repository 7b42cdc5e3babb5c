"""The form of a mutation: one edit of the checkout that takes one property away."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """``file``: of the checkout. ``old`` is in it once, ``new`` stands there instead. ``spreads``: ids of tests in the
    same files as the row's that cannot but fail, too, and ``why``."""

    file: str
    old: str
    new: str
    spreads: tuple[str, ...] = ()
    why: str = ""

    def problem(self, text: str) -> str:
        """Why it cannot be made in a file of this text; empty when it can."""
        count = text.count(self.old)
        if count != 1:
            return f"{self.file} has the old text {count} times"
        return "the new text is the old one" if self.new == self.old else ""

    def made(self, text: str) -> str:
        """The text with it."""
        return text.replace(self.old, self.new)
