"""Schemas of bodies and queries as tables, and the formats of names in all of them."""

from __future__ import annotations

from nova.web.specs import Rules

MAX_INT = 0x7FFFFFFF
UUID = "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
CLASS = "^[A-Z0-9_]{1,255}$"
SUFFIX = "^[a-zA-Z0-9_-]{0,64}$"
NAME: Rules = {"min_length": 1, "max_length": 255, "pattern": "^[A-Z0-9_]+$"}  # of a class, a trait, a type
GENERATION: Rules = {"min": 0, "max": MAX_INT}
