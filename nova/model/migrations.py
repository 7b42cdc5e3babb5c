"""Moves of servers between hosts, and resizes, as the API shows them."""

from __future__ import annotations

from nova.model.base import Value


class MigrationProgress(Value):
    """How far a live migration has come. Amounts in bytes."""

    memory_total_bytes: int = 0
    memory_processed_bytes: int = 0
    memory_remaining_bytes: int = 0
    disk_total_bytes: int = 0
    disk_processed_bytes: int = 0
    disk_remaining_bytes: int = 0
