"""Moves of guests between hosts: off (``cold``) or running (``live``)."""
