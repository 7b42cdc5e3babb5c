"""Notifications: the only package that sends events.

``operations`` follows the runner; ``calls`` is a table of the calls that change a resource directly. Both check
``deps.notifier.on`` first: while notifications are off, nothing is read, built or queued.
"""

from nova.conductor.engine.announce.calls import CALLS, announced, registered
from nova.conductor.engine.announce.operations import Operations
from nova.conductor.engine.announce.resources import CacheProgress, once, server, turning

__all__ = ["CALLS", "CacheProgress", "Operations", "once", "registered", "server", "announced", "turning"]
