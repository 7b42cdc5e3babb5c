"""What several daemons say of consoles, one code each: whoever must tell it from others of its kind compares that."""

from __future__ import annotations



