"""All calls of the helper; importing their modules registers them in the table."""

from __future__ import annotations

from nova.privileged.helper import disk_calls, filter_calls, network_calls, state_calls, volume_calls
from nova.privileged.helper.calling import TABLE, arguments_of, dispatch

MODULES = (disk_calls, filter_calls, network_calls, state_calls, volume_calls)

__all__ = ["MODULES", "TABLE", "arguments_of", "dispatch"]
