"""Hashes of passwords as guests keep them in /etc/shadow. Python's own module for them is gone since 3.13."""

from __future__ import annotations

import ctypes


def crypt(password: str, kept: str) -> str:
    """The hash of the password with the method and salt of ``kept``; that one again, if it is of this password."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    return str(library.crypt(password.encode(), kept.encode()).decode())
