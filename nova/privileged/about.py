"""What the helper says of itself: whether it answers, and whether it has read the same nova.conf."""

from __future__ import annotations

import msgspec

from nova.privileged.client import forwarded


class About(msgspec.Struct, frozen=True, kw_only=True):
    """``user``: whose daemons may ask."""

    release: str = ""
    instances_path: str = ""
    state_path: str = ""
    networks_path: str = ""
    user: str = ""


@forwarded("about")
def about() -> About:
    """Of this process itself there is nothing to be said. host.NoHelper, host.HelperDied."""
    return About()


__all__ = ["About", "about"]
