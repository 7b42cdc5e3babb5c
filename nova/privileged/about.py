"""Self-description of the helper: shows whether it answers, and whether it has read the same nova.conf."""

from __future__ import annotations

import msgspec

from nova.privileged.client import forwarded


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The helper's release and settings. ``user``: the user whose daemons may call it."""

    release: str = ""
    instances_path: str = ""
    state_path: str = ""
    networks_path: str = ""
    user: str = ""


@forwarded("about")
def about() -> About:
    """Return the helper's description; empty if the call runs in this process. Raises host.NoHelper,
    host.HelperDied."""
    return About()


__all__ = ["About", "about"]
