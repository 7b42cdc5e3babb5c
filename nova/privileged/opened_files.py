"""Files that are opened before their path is passed on, so that the receiver uses that file even if the path
changes."""

from __future__ import annotations

from typing import Self


class OpenedFile(str):
    """The path of a file or directory, as a tool should see it, with the descriptor (O_PATH) by which it is reached."""

    fd: int

    def __new__(cls, path: str, fd: int) -> Self:
        made = super().__new__(cls, path)
        made.fd = fd
        return made

    @property
    def place(self) -> str:
        """Path by which this process reaches the opened file."""
        return f"/proc/self/fd/{self.fd}"


def descriptor_of(path: str) -> int | None:
    """Return the descriptor; None if the path is a plain one."""
    return path.fd if isinstance(path, OpenedFile) else None


__all__ = ["OpenedFile", "descriptor_of"]
