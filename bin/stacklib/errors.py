"""The one error that ends a command: what went wrong, and what to do next."""

from __future__ import annotations


class StackError(Exception):
    """A foreseeable failure. `hint` is one sentence that says what the operator can do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}" if self.hint else self.message
