"""The machine's serial number, which its firmware provides and only root may read."""

from __future__ import annotations

from pathlib import Path

from nova.privileged.client import forwarded

PRODUCT_UUID = Path("/sys/class/dmi/id/product_uuid")


@forwarded("dmi.product_uuid")
def product_uuid() -> str:
    """Return the product UUID. Raises OSError if there is none."""
    return PRODUCT_UUID.read_text().strip()


__all__ = ["PRODUCT_UUID", "product_uuid"]
