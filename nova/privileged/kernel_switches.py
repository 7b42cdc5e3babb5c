"""Kernel settings that make bridges pass packets between guests to iptables."""

from __future__ import annotations

import logging
from pathlib import Path

from nova.privileged.client import forwarded

LOG = logging.getLogger(__name__)

BRIDGE_SWITCHES = Path("/proc/sys/net/bridge")
SWITCHES = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")


@forwarded("kernel_switches.filter_bridged", local=("switches",))
def filter_bridged(switches: Path = BRIDGE_SWITCHES) -> tuple[str, ...]:
    """Enable the settings; return why that failed, for each that failed."""
    return tuple(unset(switches, turn_on=True))


def unset(switches: Path = BRIDGE_SWITCHES, turn_on: bool = False) -> list[str]:
    """Return the settings that cannot be enabled, with the reason; without ``turn_on``, the settings that do not
    exist."""
    found = []
    for switch in (switches / name for name in SWITCHES):
        try:
            if switch.read_text().strip() == "1":
                continue
            if turn_on:
                switch.write_text("1\n")
                LOG.info("enabled %s, which was off", switch)
        except OSError as error:
            found.append(f"{switch}: {error.strerror}")
    return found


__all__ = ["BRIDGE_SWITCHES", "SWITCHES", "filter_bridged", "unset"]
