"""What nova-manage placement audit would find of a cloud in which nothing runs any more."""

from __future__ import annotations

from typing import Any

from nova.conductor import auditing


def audited(cloud: Any) -> list[str]:
    """``cloud`` has both databases, as ``api`` and ``cell``."""
    stores = auditing.Stores(cloud.api, cloud.cell)
    return [f"audit: {one.words()}" for uuid in auditing.review(stores)
            for one in auditing.judge(stores, uuid).differences]
