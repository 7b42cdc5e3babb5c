"""Error codes of consoles that several services share. Callers compare the code to tell these errors from others."""

from __future__ import annotations



