"""Which way a daemon has done what root alone may: in its own process, by the helper's socket, or by sudo."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from nova import errors
from nova.conf.base import Options
from nova.privileged import client, ownership
from nova.privileged.about import About, about
from nova.privileged.helper_socket import SocketHelper

LOG = logging.getLogger(__name__)

STATUS = Path("/proc/self/status")
NET_ADMIN, DAC_OVERRIDE, SYS_ADMIN = 12, 1, 21  # capabilities(7)


def choose(options: Options) -> None:
    """For all calls of this process, once at its start. host.NoHelper: there is no way."""
    if is_privileged():
        return
    helper = way(options)
    client.use(helper)
    LOG.info("what needs root's rights is done by the helper, by %s", helper.name)
    _check(options, about())
    _say_adopted(ownership.adopt((), os.geteuid(), os.getegid()))


def take_over(options: Options) -> None:
    """Have what root has left in this daemon's folders given to this user, where a helper answers: for a daemon that
    needs nothing else of it."""
    path = Path(options.privileged.socket)
    if not is_privileged() and path.is_socket():
        with contextlib.suppress(errors.Unavailable):  # another user's helper
            _say_adopted(client.ask(SocketHelper(path), "ownership.adopt", {}, int))


def _say_adopted(count: int) -> None:
    if count:
        LOG.info("%d files and folders of root's, from when this daemon was root, are this user's now", count)


def _check(options: Options, helper: About) -> None:
    """Say where the helper has read another nova.conf."""
    for name in ("instances_path", "state_path", "networks_path"):
        own, theirs = str(Path(getattr(options, name)).absolute()), getattr(helper, name)
        if own != theirs:
            LOG.error("%s is %s here and %s in the helper, which refuses what lies elsewhere: start nova-privileged "
                      "anew, or let it read the same nova.conf", name, own, theirs)


def way(options: Options) -> client.Helper:
    """The one that a process without rights has. host.NoHelper."""
    path = Path(options.privileged.socket)
    if path.is_socket():
        return SocketHelper(path)
    from nova.privileged import privsep

    if reason := privsep.can_be_started(options):
        raise errors.host.NoHelper(reason=f"{path} is not there, and {reason}")
    return privsep.PrivsepHelper(options)


def is_privileged() -> bool:
    """Whether this process needs no helper: it is root, or has been given root's capabilities."""
    if os.geteuid() == 0:
        return True
    found = next(line for line in STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    held = int(found.split()[1], 16)
    return all(held >> one & 1 for one in (NET_ADMIN, DAC_OVERRIDE, SYS_ADMIN))


__all__ = ["choose", "is_privileged", "take_over", "way"]
