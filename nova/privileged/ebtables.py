"""Our own chains among the rules for frames on bridges: as :mod:`nova.privileged.iptables`, by ebtables.

Rules are texts as ebtables-save prints them (``-p IPv4 -i eth0 --ip-proto udp --ip-dport 67:68 -j DROP``; a target's
default is left out: ``-j redirect``). A chain of ours is left at its end (policy RETURN; ebtables' own default for a
new chain would accept what nobody asked about). Each of our programs has chains of its own, named after it, and the
others' are left alone. Debian's ebtables is that of the package iptables (nf_tables), whose restore is one transaction.
"""

from __future__ import annotations

from pathlib import Path

from nova.privileged.iptables import ETHERNET, PacketFilter
from nova.privileged.runner import CommandRunner

LOCK = "ebtables.lock"  # in state_path: one for all of our programs on the host


def frame_filter(runner: CommandRunner, state_path: Path) -> PacketFilter:
    """Applies tables (``sparse`` ones, lest empty chains be made on hosts without such rules)."""
    return PacketFilter(runner, state_path / LOCK, dialect=ETHERNET)
