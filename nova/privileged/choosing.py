"""Choice of the way in which a daemon runs privileged operations: in its own process, by the helper's socket, or by
sudo."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from nova import errors
from nova.conf._options import Options
from nova.privileged import client, ownership
from nova.privileged.about import About, about
from nova.privileged.helper_socket import SocketHelper

LOG = logging.getLogger(__name__)

STATUS = Path("/proc/self/status")
NET_ADMIN, DAC_OVERRIDE, SYS_ADMIN = 12, 1, 21  # capabilities(7)


def choose(options: Options) -> None:
    """Choose the way for all calls of this process, once at its start. Raises host.NoHelper if there is none."""
    if is_privileged():
        return
    helper = way(options)
    client.use(helper)
    LOG.info("privileged operations are done by the helper, via %s", helper.name)
    _check(options, about())
    _say_adopted(ownership.adopt((), os.geteuid(), os.getegid()))


def take_over(options: Options) -> None:
    """Give files that root left in this daemon's directories to this user, if a helper answers. For a daemon that needs
    the helper for nothing else."""
    path = Path(options.privileged.socket)
    if not is_privileged() and path.is_socket():
        with contextlib.suppress(errors.Unavailable):  # the helper serves another user
            _say_adopted(client.ask(SocketHelper(path), "ownership.adopt", {}, int))


def _say_adopted(count: int) -> None:
    if count:
        LOG.info("changed the owner of %d files and directories from root to this user; they date from when this "
                 "daemon ran as root", count)


def _check(options: Options, helper: About) -> None:
    """Log differences between this process's paths and the helper's, which show that it read another nova.conf."""
    for name in ("instances_path", "state_path", "networks_path"):
        own, theirs = str(Path(getattr(options, name)).absolute()), getattr(helper, name)
        if own != theirs:
            LOG.error("%s is %s here but %s in the helper, which refuses paths elsewhere: restart nova-privileged, or "
                      "let it read the same nova.conf", name, own, theirs)


def way(options: Options) -> client.Helper:
    """Return the helper for a process without privileges. Raises host.NoHelper if there is none."""
    path = Path(options.privileged.socket)
    if path.is_socket():
        return SocketHelper(path)
    from nova.privileged import privsep

    if reason := privsep.can_be_started(options):
        raise errors.host.NoHelper(reason=f"{path} does not exist, and {reason}")
    return privsep.PrivsepHelper(options)


def is_privileged() -> bool:
    """Return whether this process needs no helper: it is root, or has root's capabilities."""
    if os.geteuid() == 0:
        return True
    found = next(line for line in STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    held = int(found.split()[1], 16)
    return all(held >> one & 1 for one in (NET_ADMIN, DAC_OVERRIDE, SYS_ADMIN))


__all__ = ["choose", "is_privileged", "take_over", "way"]
