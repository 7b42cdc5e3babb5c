"""What nova-manage placement audit would find of a cloud in which nothing runs any more."""

from __future__ import annotations

from typing import Any

from nova.conductor.upkeep import allocation_audit


def audited(cloud: Any) -> list[str]:
    """``cloud`` has both databases, as ``api`` and ``cell``."""
    stores = allocation_audit.Stores(cloud.api, cloud.cell)
    return [f"audit: {one.words()}" for uuid in allocation_audit.review(stores)
            for one in allocation_audit.judge(stores, uuid).differences]
