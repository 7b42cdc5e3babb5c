"""A file that was opened before its path is handed on: whoever gets it uses the file, whatever the path leads to by
then."""

from __future__ import annotations

from typing import Self


class OpenedFile(str):
    """The path of a file or folder, as a tool shall see it, with the descriptor (O_PATH) by which it is reached."""

    fd: int

    def __new__(cls, path: str, fd: int) -> Self:
        made = super().__new__(cls, path)
        made.fd = fd
        return made

    @property
    def place(self) -> str:
        """Where this process finds that very file."""
        return f"/proc/self/fd/{self.fd}"


def descriptor_of(path: str) -> int | None:
    """None: the path is a plain one."""
    return path.fd if isinstance(path, OpenedFile) else None


__all__ = ["OpenedFile", "descriptor_of"]
