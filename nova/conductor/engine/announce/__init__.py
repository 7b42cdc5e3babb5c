"""Telling others what happened: the one place from which events go out.

``operations`` follows what the runner does; ``calls`` is a table of the calls that change something at once. Both look
at ``deps.notifier.on`` first: while notifications are off, nothing is read, built or queued.
"""

from nova.conductor.engine.announce.calls import CALLS, announced, registered
from nova.conductor.engine.announce.operations import Operations
from nova.conductor.engine.announce.resources import CacheProgress, once, server, turning

__all__ = ["CALLS", "CacheProgress", "Operations", "once", "registered", "server", "announced", "turning"]
