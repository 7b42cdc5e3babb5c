"""The error that ends a command, with its cause and the next step for the operator."""

from __future__ import annotations


class StackError(Exception):
    """An expected failure. `hint` is one sentence that tells the operator what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}" if self.hint else self.message
