"""This host's packet filters: applies a state to frames by ebtables, and to packets by iptables and ip6tables.

Each of the three is written in one kernel transaction, and only if it differs; a rejected transaction changes nothing.
So at any moment either the old or the new rules apply, never none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from nova.compute.filter import flows, frame_rules, packet_rules
from nova.compute.filter.packet_rules import RuleOptions
from nova.model.network.forbidden_ranges import Forbidden
from nova.model.network.security_groups import HostFirewall
from nova.privileged.ebtables import frame_filter
from nova.privileged.iptables import IPV4, IPV6, LOCK, Foreign, PacketFilter
from nova.privileged.kernel_switches import BRIDGE_SWITCHES, filter_bridged
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

CURE = ("load the kernel module br_netfilter (modprobe br_netfilter, and a line in /etc/modules-load.d), or turn "
        "filtering off: [DEFAULT]firewall_driver = nova.virt.firewall.NoopFirewallDriver")


Forbids = Callable[[Iterable[str]], Forbidden]  # returns the ranges that guests with these addresses may not reach now


class HostFilter(Protocol):
    def apply(self, state: HostFirewall) -> bool:
        """Apply the state's rules, and remove any other rules of nova; return whether anything changed. Idempotent.
        Raises Unavailable if it failed; the previous rules then still apply."""

    def withdraw(self) -> bool:
        """Remove all rules of nova, including those of earlier processes; return whether there were any. Creates and
        enables nothing. Raises Unavailable if it failed."""

    def lacks(self) -> str:
        """Return why applied rules are not enforced; empty if they are."""


class PacketFilters:
    """The kernel's packet filters. ``switches``: the kernel settings that make bridges pass forwarded packets to
    iptables."""

    def __init__(self, runner: CommandRunner, state_path: Path, options: RuleOptions, foreign: Foreign | None = None,
                        switches: Path = BRIDGE_SWITCHES) -> None:
        self.forbids: Forbids = lambda addresses: Forbidden()  # until a caller sets it
        lock = state_path / LOCK
        self._packets = {4: PacketFilter(runner, lock, foreign, IPV4), 6: PacketFilter(runner, lock, foreign, IPV6)}
        self._frames, self._runner = frame_filter(runner, state_path), runner
        self._applied: HostFirewall | None = None
        self._options, self._switches, self._lacks = options, switches, ""

    def apply(self, state: HostFirewall) -> bool:
        self._ask_for_bridged_packets()
        changed = self._frames.apply([frame_rules.table(state)])
        forbidden = self.forbids(_addresses(state))
        rewritten = [packets.apply([packet_rules.table(state, self._options, version, forbidden)])
                     for version, packets in self._packets.items()]
        before, self._applied = self._applied, state
        if before is not None:
            flows.recheck(self._runner, flows.narrowed(before, state))
        elif any(rewritten):  # any rules from before this process were different
            flows.recheck(self._runner, flows.everybody(state))
        return changed or any(rewritten)

    def withdraw(self) -> bool:
        self._applied, self._lacks = None, ""
        found = [self._frames.remove(frame_rules.TABLE, packet_rules.OWN)]
        found += [packets.remove(packet_rules.TABLE, packet_rules.OWN) for packets in self._packets.values()]
        return any(found)

    def lacks(self) -> str:
        return self._lacks

    def _ask_for_bridged_packets(self) -> None:
        """Make bridges pass packets to iptables; otherwise traffic between guests on the same bridge bypasses every
        security group."""
        lacks = "; ".join(filter_bridged(self._switches))
        if lacks and not self._lacks:
            LOG.error("SECURITY GROUPS ARE NOT ENFORCED between guests on one bridge; no guest is started here (%s). "
                      "To fix it, %s", lacks, CURE)
        self._lacks = lacks


def _addresses(state: HostFirewall) -> Iterator[str]:
    for guest in state.guests:
        for interface in guest.interfaces:
            yield from interface.addresses
