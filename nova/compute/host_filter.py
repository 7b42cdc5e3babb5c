"""This host's packet filters, brought to a state: frames by ebtables, packets by iptables and ip6tables.

Each of the three is written in one transaction of the kernel's, and only where it differs; one that is refused changes
nothing. So at any moment the old rules or the new ones hold, never none.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from nova.compute import frame_rules, packet_rules
from nova.compute.packet_rules import RuleOptions
from nova.model.security_groups import HostFirewall
from nova.privileged.ebtables import frame_filter
from nova.privileged.iptables import IPV4, IPV6, Foreign, PacketFilter
from nova.privileged.runner import Runner

LOG = logging.getLogger(__name__)

LOCK = "iptables.lock"  # in state_path: nova-network's, too, whose jumps stand in the same chains
BRIDGE_SWITCHES = Path("/proc/sys/net/bridge")
SWITCHES = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")


class HostFilter(Protocol):
    def apply(self, state: HostFirewall) -> bool:
        """Make the host hold the state's rules, and no others of ours; whether anything had to change. Repeats
        harmlessly. Unavailable: it could not be done, and what was there holds."""


class PacketFilters:
    """The kernel's. ``switches``: where it says whether bridges ask iptables about what they pass on."""

    def __init__(self, runner: Runner, state_path: Path, options: RuleOptions, foreign: Foreign | None = None,
                 switches: Path = BRIDGE_SWITCHES) -> None:
        lock = state_path / LOCK
        self._packets = {4: PacketFilter(runner, lock, foreign, IPV4), 6: PacketFilter(runner, lock, foreign, IPV6)}
        self._frames = frame_filter(runner, state_path)
        self._options, self._switches, self._complained = options, switches, False

    def apply(self, state: HostFirewall) -> bool:
        self._ask_for_bridged_packets()
        changed = self._frames.apply([frame_rules.table(state)])
        for version, packets in self._packets.items():
            changed |= packets.apply([packet_rules.table(state, self._options, version)])
        return changed

    def _ask_for_bridged_packets(self) -> None:
        """Without this, what one guest sends another on the same bridge passes every security group."""
        for name in SWITCHES:
            switch = self._switches / name
            try:
                if switch.read_text().strip() != "1":
                    switch.write_text("1\n")
                    LOG.info("%s was off, and is on", switch)
            except OSError as error:
                self._complain(switch, error)

    def _complain(self, switch: Path, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            LOG.error("SECURITY GROUPS DO NOT HOLD between guests on one bridge: %s can not be set (%s). Load the "
                      "kernel module br_netfilter.", switch, error.strerror)
