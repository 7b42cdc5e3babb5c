"""Whether a guest fits into a host's cells and devices, and how: the one rule for the scheduler, for the claim that
decides, and for the host that checks its orders.

Pure: never two guests on one pinned processor, one page, or one device; what is free is the total less all guests'.
"""

from __future__ import annotations

from collections.abc import Iterable

from nova.model.topology import HostTopology, Packing, Wanted


def pack(host: HostTopology | None, guests: Iterable[Packing], wanted: Wanted) -> Packing | str:
    """What the guest gets beside the others; or why it does not fit, in a few words without the host's name."""
    raise NotImplementedError
